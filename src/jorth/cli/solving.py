"""What `jorth solve` does: check a request, read its files, and run the method."""

from __future__ import annotations

import hashlib
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from jorth import _matrices as files
from jorth._matrices import Matrix, entries, read, stored
from jorth.cli.options import DIRECT, EVERY
from jorth.group import component, residual
from jorth.group.gradient import gradient_norm
from jorth.group.time_column import OtherTimeWarning, message, other_time
from jorth.linalg import eigh, hsvd
from jorth.objectives import AbstractObjective, HyperbolicEigenvalue, Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import (
    METHODS,
    AbstractSolver,
    Evaluations,
    Interrupt,
    Result,
    Status,
    best_of,
    minimize,
    procrustes,
    resolve,
)

Component: TypeAlias = tuple[int, int]
Tell: TypeAlias = Callable[[str], object]
COUNTS = re.compile(r"(\d+)\s*,\s*(\d+)")
SIGNS = re.compile("[+-]+")
LORENTZ: dict[str, Literal["first", "last"]] = {
    "lorentz": "first",
    "lorentz-first": "first",
    "lorentz-last": "last",
}
CONSTANTS = {"None": None, "True": True, "False": False}


class OptionError(ValueError):
    """An invalid option; the message names it, what it got and what it expects."""

    def __init__(self, option: str, message: str) -> None:
        super().__init__(f"{option} {message}")


@dataclass(frozen=True)
class Request:
    """One problem to solve."""

    problem: Literal["eigen", "procrustes", "quadratic"]
    matrices: dict[str, Path]  # files by the names of the matrices in the formulas
    signature: str  # a text for `signature_from`
    output: Path  # for X
    method: str  # of `minimize`, or DIRECT, or EVERY
    start: Path | None = None
    keys: tuple[str, ...] = ()  # variables of the .npz files: one for each, or for all
    options: tuple[str, ...] = ()  # of the method, as name=value
    limits: dict[str, float | None] = field(default_factory=dict)  # arguments of `minimize`
    tolerance: float = 1e-7
    seed: int = 0
    checkpoint: Path | None = None
    progress: bool = False
    command: str = ""  # the command line, for the record

    @property
    def direct(self) -> bool:
        """Whether no iterations are needed."""
        return self.method == DIRECT

    @property
    def everywhere(self) -> bool:
        """Whether all components of O(p, q) are searched."""
        return self.method == EVERY

    def inputs(self) -> dict[str, Path]:
        """Return all files that are read, by their names in messages."""
        others = {"x0": self.start, "signature": file_of(self.signature)}
        return self.matrices | {name: path for name, path in others.items() if path is not None}

    def outputs(self) -> dict[str, Path]:
        """Return all files that are written; the record comes last."""
        found = {"x": self.output}
        if self.direct:
            name = f"{self.output.stem}_eigenvalues{self.output.suffix}"
            found["eigenvalues"] = self.output.with_name(name)
        return {**found, "record": self.output.with_suffix(".json")}

    def key_of(self) -> dict[str, str | None]:
        """Return the variable to read from each of the matrices."""
        containers = [name for name, path in self.matrices.items() if path.suffix.lower() == ".npz"]
        if self.keys and not (containers and len(self.keys) in {1, len(containers)}):
            often = f"once, or once for each .npz file ({len(containers)} here)"
            raise OptionError("--key", f"must be given {often}, got {', '.join(self.keys)}")
        keys = self.keys * len(containers) if len(self.keys) == 1 else self.keys
        return dict.fromkeys(self.matrices) | dict(zip(containers, keys, strict=False))

    def check(self) -> None:
        """Check the options alone, before any work is done."""
        _check_ending("--output", self.output, files.WRITABLE)
        for name, path in self.matrices.items():
            _check_ending(name.upper(), path, files.READABLE)
        choices = [DIRECT if self.problem == "eigen" else EVERY, *METHODS]
        if self.method not in choices:
            known = ", ".join(choices)
            raise OptionError("--method", f"must be one of {known}, got {self.method!r}")
        others: dict[str, Any] = {"start": self.start, "option": self.options or None}
        if self.direct:
            others |= {"checkpoint": self.checkpoint, **self.limits}
        for name, value in others.items():
            if value is not None and self.method in (DIRECT, EVERY):
                option = f"--{name.replace('_', '-')}"
                raise OptionError(option, f"needs another --method, got {self.method}")
        self.key_of()
        for path, source in product(self.outputs().values(), self.inputs().values()):
            if path.resolve() == source.resolve() or (path.exists() and path.samefile(source)):
                raise OptionError("--output", f"must not replace an input: {path} is {source}")


def _check_ending(option: str, path: Path, endings: tuple[str, ...]) -> None:
    ending = files.ending_of(path) if endings is files.READABLE else path.suffix.lower()
    if ending not in endings:
        raise OptionError(option, f"must end in {', '.join(endings)}, got {path}")


def checksum(path: Path) -> str:
    """Return the sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- signatures


def file_of(signature: str) -> Path | None:
    """Return the file that the text of a signature names, or None if it names none."""
    text = signature.strip()
    if COUNTS.fullmatch(text) or SIGNS.fullmatch(text) or text in LORENTZ:
        return None
    if not os.path.isfile(text):  # Path.is_file raises if the text is too long
        raise OptionError(
            "--signature",
            "must be p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last, "
            f"or a file of +1 and -1; got {text!r}, and there is no such file",
        )
    return Path(text)


def signature_from(text: str, n: int) -> Signature:
    """Return the signature of n signs that a text or the file that it names describes."""
    text = text.strip()
    path, counts = file_of(text), COUNTS.fullmatch(text)
    if text in LORENTZ:
        return Signature.lorentz(n, LORENTZ[text])
    found = len(text) if counts is None else int(counts[1]) + int(counts[2])
    if path is not None:
        signs = _signs_in(path)
        found = signs.n
    if found != n:
        one_each = f"must have {n} signs, one per column of the data"
        raise OptionError("--signature", f"{one_each}, got {text} with {found}")
    if path is not None:
        return signs
    if counts is not None:
        return Signature(int(counts[1]), int(counts[2]))
    return Signature.of([1 if sign == "+" else -1 for sign in text])


def _signs_in(path: Path) -> Signature:
    found = stored(path)
    signs = entries(found)
    if signs.size != max(found.shape, default=0) or signs.dtype.kind not in "fiu":
        row = f"must name a file with one row or column, got {path} of shape {found.shape}"
        raise OptionError("--signature", row)
    try:
        return Signature.of(np.ravel(signs))
    except ValueError as error:
        named = f"must name a file of +1 and -1, got {path}: {error}"
        raise OptionError("--signature", named) from error


# -- solving


@dataclass(frozen=True)
class Solved:
    """A result and what is shown and recorded with it."""

    result: Result
    signature: Signature
    solver: AbstractSolver | None  # with its options; None if DIRECT or EVERY
    checksums: dict[str, str]  # the sha256 of every file that was read
    eigenvalues: NDArray[np.floating] | None  # (n,), of the direct method
    fit: dict[str, float]  # of procrustes, see `_fit`
    searched: tuple[Component, ...]  # none where all are alike, and for a thin X
    left_out: tuple[Component, ...]  # a bound shows that they hold nothing lower
    notes: tuple[str, ...]  # what was decided about the files, or looks wrong with them

    @property
    def unknown(self) -> tuple[Component, ...]:
        """The components of which nothing is known."""
        known = (*self.searched, *self.left_out)
        return tuple(which for which in components(self.signature) if which not in known)


def solve(
    request: Request,
    *,
    before_iterations: Callable[[], object] = lambda: None,
    tell: Tell = lambda note: None,
) -> Solved:
    """Check the request, read its files, and solve.

    Args:
        request: The request.
        before_iterations: Called when everything is read and iterations begin.
        tell: Called with every note for the user, at once.

    Raises:
        OptionError: An option is invalid; nothing was done.
        ValueError: A file, or the combination of matrices, does not fit the problem.
    """
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        tell(text)

    request.check()
    solver = _solver(request)
    keys = request.key_of()
    checksums = {name: checksum(path) for name, path in request.inputs().items()}
    matrices = {
        name: _double(read(path, key=keys[name])) for name, path in request.matrices.items()
    }
    signature = signature_from(request.signature, next(iter(matrices.values())).shape[1])
    if request.problem == "procrustes":
        there = other_time(signature, matrices["source"], matrices["target"])
        if there is not None:
            note(message(there, f"-s lorentz-{there}"))
    if request.problem == "eigen":
        _check_shape(request, matrices, note)
    for path in request.outputs().values():
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise OptionError("--output", f"must be a writable place, which {path} is not")
    eigenvalues = None
    with _files_named(request):
        if request.direct:
            result, eigenvalues = _direct(matrices, signature)
        else:
            result = _iterate(request, matrices, signature, solver, before_iterations)
    aligned = request.problem == "procrustes"
    searched: tuple[Component, ...] = ()
    left_out: tuple[Component, ...] = ()
    if aligned or (request.problem == "quadratic" and not _are_alike(matrices)):
        searched = _searched(result, signature)
    if aligned and request.everywhere and searched and result.status is not Status.INTERRUPTED:
        left_out = tuple(which for which in components(signature) if which not in searched)
    return Solved(
        result,
        signature,
        solver,
        checksums,
        eigenvalues,
        _fit(matrices["source"], _dense(matrices["target"]), result.x) if aligned else {},
        searched,
        left_out,
        tuple(notes),
    )


def _solver(request: Request) -> AbstractSolver | None:
    """Return the method with its options, which it checks itself."""
    if request.direct or request.everywhere:
        return None
    options = dict(_option(text) for text in request.options)
    try:
        return resolve(request.method, options)
    except (TypeError, ValueError) as error:
        raise OptionError("--option", f"{' '.join(request.options)}: {error}") from error


def _option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option: a number, None, True, False or text."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise OptionError("--option", f"must be name=value, got {text!r}")
    if value in CONSTANTS:
        return name, CONSTANTS[value]
    for kind in (int, float):
        with suppress(ValueError):
            return name, kind(value)
    return name, value


def _double(matrix: Matrix) -> Matrix:
    sparse = scipy.sparse.issparse(matrix)
    return matrix.astype(float) if sparse else np.array(matrix, dtype=float, order="C")


def _dense(matrix: Matrix) -> NDArray[Any]:
    array: NDArray[Any] = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    return array


def _check_shape(request: Request, matrices: dict[str, Matrix], note: Tell) -> None:
    """Check that A is square, or that D^T D can be definite; tell if D looks like A."""
    ((name, path),) = request.matrices.items()
    m, n = matrices[name].shape
    if name == "A":
        if m != n:
            advice = "if it holds data D (m, n), with A = D^T D, pass --data"
            raise ValueError(f"A must be square, got {m} rows and {n} columns in {path}; {advice}")
        return
    D = matrices["data"]
    if m < n:
        found = f"{path} has {m} rows and {n} columns"
        raise ValueError(f"--data needs at least as many rows as columns, {found}")
    if m == n and not abs(D - D.T).max() > 0:
        note(f"{path} is symmetric, and A is its square; if it holds A, leave --data out")


@contextmanager
def _files_named(request: Request) -> Iterator[None]:
    """Add the names of the files to errors, which speak of A and x0."""
    try:
        yield
    except OptionError:
        raise
    except ValueError as error:
        named = {name: path for name, path in request.inputs().items() if name != "signature"}
        names = ", ".join(f"{name} is {path}" for name, path in named.items())
        raise ValueError(f"{error} ({names})") from error


def _iterate(
    request: Request,
    matrices: dict[str, Matrix],
    signature: Signature,
    solver: AbstractSolver | None,
    before_iterations: Callable[[], object],
) -> Result:
    """Run the method from the start, or search every component."""
    settings: dict[str, Any] = dict(
        signature=signature,
        gradient_tolerance=request.tolerance,
        seed=request.seed,
        progress=request.progress,
        **request.limits,
    )
    if request.everywhere and request.problem == "procrustes":
        target = _dense(matrices["target"])
        before_iterations()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OtherTimeWarning)  # told already, as a note
            return procrustes(matrices["source"], target, checkpoint=request.checkpoint, **settings)
    objective = _objective(request, matrices)
    columns = objective.shape()[1]
    if request.start is not None:
        x0 = _dense(_double(read(request.start)))
    elif request.problem != "procrustes" and columns not in (None, signature.n):
        shape = f"{signature.n} rows and {columns} columns"
        raise OptionError("--start", f"must be given where X is thin: it has {shape} here")
    else:
        x0 = np.eye(signature.n, columns)
    before_iterations()
    once = cast("Callable[..., Result]", partial(minimize, objective, **settings))
    if solver is not None:
        return once(x0, method=solver, checkpoint=request.checkpoint)
    if _are_alike(matrices):
        return once(x0, checkpoint=request.checkpoint)
    return _everywhere(once, signature, request.checkpoint)


def _everywhere(
    once: Callable[..., Result], signature: Signature, checkpoint: Path | None
) -> Result:
    """Return the best of the runs from the identity and its reflections in all components.

    None follows one that is interrupted, or one that finds the objective unbounded below.
    """
    runs: list[Result] = []
    with Interrupt() as interrupt:
        interrupt.hold()  # results must not be lost between two runs
        for which in components(signature):
            folder = None if checkpoint is None else checkpoint / "{:+d}{:+d}".format(*which)
            signs = np.ones(signature.n)
            for sign, own in zip(which, (signature.positive, signature.negative), strict=True):
                signs[own[-1:]] = sign
            runs.append(once(np.diag(signs), checkpoint=folder))
            if runs[-1].status in (Status.INTERRUPTED, Status.UNBOUNDED):
                break
    return best_of(runs)


def components(signature: Signature) -> list[Component]:
    """Return all components of O(p, q): an empty block has the sign +1 alone."""
    signs = [(1, -1) if count else (1,) for count in (signature.p, signature.q)]
    return [(plus, minus) for plus, minus in product(*signs)]


def component_of(X: NDArray[Any], signature: Signature) -> Component | None:
    """Return the component of X; None for a thin X, or one that has lost its digits."""
    if X.shape[0] == X.shape[1]:
        with suppress(ValueError):
            plus, minus = component(X, signature)
            return plus, minus
    return None


def _searched(result: Result, signature: Signature) -> tuple[Component, ...]:
    """Return the components that the runs were in."""
    found = (component_of(run.x, signature) for run in result.stages or (result,))
    return tuple(dict.fromkeys(which for which in found if which is not None))


def _are_alike(matrices: dict[str, Matrix]) -> bool:
    """Whether f is the same in all components: X may change the signs of its columns."""
    if "C" in matrices:
        return False
    D = _dense(matrices["D"]) if "D" in matrices else np.zeros((1, 1))
    return bool((np.diag(np.diagonal(D)) == D).all())


def _fit(source: Matrix, target: NDArray[Any], X: NDArray[Any]) -> dict[str, float]:
    """Return R^2 as in `LorentzAligner.score`, and the same for the columns of the identity."""
    m, k = target.shape
    spread = np.square(target - target.mean(axis=0)).sum()
    misfits = [np.square(points - target).sum() for points in (source @ X, _dense(source[:, :k]))]
    kept = [1 - misfit / spread if spread > 0 else np.nan for misfit in misfits]
    value = misfits[1] / (2 * m)
    return dict(m=m, r_squared=kept[0], identity_value=value, identity_r_squared=kept[1])


def _objective(request: Request, matrices: dict[str, Matrix]) -> AbstractObjective:
    if request.problem == "eigen":
        return _eigenvalue(matrices)
    if request.problem == "procrustes":
        return Procrustes(matrices["source"], _dense(matrices["target"]))
    return Quadratic(**{name: _dense(matrix) for name, matrix in matrices.items()})


def _eigenvalue(matrices: dict[str, Matrix]) -> AbstractObjective:
    if "A" in matrices:
        return HyperbolicEigenvalue(_dense(matrices["A"]))
    data = matrices["data"]
    if scipy.sparse.issparse(data):  # A = D^T D is dense
        return HyperbolicEigenvalue((data.T @ data).toarray())
    return HyperbolicEigenvalue(data=data)


def _direct(
    matrices: dict[str, Matrix], signature: Signature
) -> tuple[Result, NDArray[np.floating]]:
    """Solve by `eigh` of A, or by `hsvd` of the data, which is more accurate."""
    began = time.perf_counter()
    if "A" in matrices:
        values, X = eigh(_dense(matrices["A"]), signature)
    else:
        factors = hsvd(_dense(matrices["data"]), signature)
        order = np.empty(signature.n, dtype=np.intp)  # each sign ascending, as from `eigh`
        for positions in (signature.positive, signature.negative):
            order[positions] = positions[::-1]
        values = (signature.signs * factors.S**2)[order]
        X = np.ascontiguousarray(factors.X[:, order])
    seconds = time.perf_counter() - began
    point = torch.from_numpy(X)
    value, gradient = _eigenvalue(matrices).value_and_gradient(point)
    plus, minus = values[signature.positive], values[signature.negative]
    largest = plus.size and minus.size and plus.max() < minus.min()
    found = residual(X, signature)
    result = Result(
        x=X,
        value=value.item(),
        status=Status.CONVERGED,
        message="solved directly, without iterations"
        + ("; the trace is at its maximum, and unbounded below" if largest else ""),
        iterations=0,
        evaluations=Evaluations(),
        time=seconds,
        gradient_norm=gradient_norm(point, gradient, signature.vector(point)),
        residual=found,
        violation=found,
        history={},
        method=DIRECT,
    )
    return result, values
