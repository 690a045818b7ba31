"""What `jorth solve` does: check a request, read its files, and run the method."""

from __future__ import annotations

import os
import re
import time
import warnings
from ast import literal_eval
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import click
import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from jorth import _matrices as files
from jorth._matrices import Matrix, read, stored
from jorth.group import component, residual
from jorth.group.gradient import gradient_norm
from jorth.group.time_column import OtherTimeWarning, message, other_time
from jorth.linalg import eigh, hsvd
from jorth.objectives import AbstractObjective, HyperbolicEigenvalue, Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import AbstractSolver, Evaluations, Result, Status, minimize, procrustes, resolve

Component: TypeAlias = tuple[int, int]
COUNTS = re.compile(r"(\d+)\s*,\s*(\d+)")
SIGNS = re.compile("[+-]+")
LORENTZ: dict[str, Literal["first", "last"]] = {
    "lorentz": "first",
    "lorentz-first": "first",
    "lorentz-last": "last",
}


@dataclass(frozen=True)
class Request:
    """One problem to solve: the options of the command."""

    problem: Literal["eigen", "procrustes", "quadratic"]
    matrices: dict[str, Path]  # files by the names of the matrices in the formulas
    signature: str  # a text for `signature_from`
    output: Path  # for X
    key: str | None = None  # of all .npz files
    method: str | None = None  # of `minimize`, for a single run
    start: Path | None = None
    options: tuple[str, ...] = ()  # of the method, as name=value
    max_iterations: int | None = None
    max_time: float | None = None
    tolerance: float = 1e-7
    seed: int = 0
    checkpoint: Path | None = None
    progress: bool = False
    command: str = ""  # the command line, for the record

    @property
    def everywhere(self) -> bool:
        """Return whether all components of O(p, q) are searched, by `jorth.procrustes`."""
        return self.problem == "procrustes" and self.method is None and self.start is None

    def inputs(self) -> dict[str, Path]:
        """Return all files that are read, by their names in the record."""
        others = {"x0": self.start, "signature": signature_file(self.signature)}
        return self.matrices | {name: path for name, path in others.items() if path is not None}

    def outputs(self) -> dict[str, Path]:
        """Return all files that are written; the record comes last."""
        found = {"x": self.output}
        if self.problem == "eigen":
            name = f"{self.output.stem}_eigenvalues{self.output.suffix}"
            found["eigenvalues"] = self.output.with_name(name)
        return {**found, "record": self.output.with_suffix(".json")}


@dataclass(frozen=True)
class Loaded:
    """What the files of a request hold."""

    matrices: dict[str, Matrix]
    signature: Signature
    start: NDArray[Any] | None
    solver: AbstractSolver
    note: str  # what looks wrong with the files


@dataclass(frozen=True)
class Solved:
    """A result, and the eigenvalues (n,) of the problem that has some."""

    result: Result
    eigenvalues: NDArray[np.floating] | None = None


def load(request: Request) -> Loaded:
    """Check the options, read the files, and make the folder of the output.

    Raises:
        click.UsageError: An option is invalid; nothing was done.
        ValueError: A file, or the combination of matrices, does not fit the problem.
    """
    _check_output(request)
    solver = _solver(request)
    matrices = {
        name: _double(read(path, key=request.key if path.suffix.lower() == ".npz" else None))
        for name, path in request.matrices.items()
    }
    first = next(iter(matrices.values()))
    signature = signature_from(request.signature, first.shape[1])
    there = other_time(signature, *matrices.values()) if request.problem == "procrustes" else None
    if "A" in matrices and first.shape[0] != first.shape[1]:
        found = f"{first.shape[0]} rows and {first.shape[1]} columns"
        raise ValueError(f"A must be square, got {found}; if it holds data D, pass --data")
    if "data" in matrices and first.shape[0] < first.shape[1]:
        raise ValueError(f"data must have at least as many rows as columns, got {first.shape}")
    start = None if request.start is None else _dense(_double(read(request.start)))
    parent = request.output.parent
    parent.mkdir(parents=True, exist_ok=True)
    if not os.access(parent, os.W_OK):
        raise click.UsageError(f"--output must be in a writable folder, got {request.output}")
    note = message(there, f"-s lorentz-{there}") if there else ""
    return Loaded(matrices, signature, start, solver, note)


def _check_output(request: Request) -> None:
    if request.output.suffix.lower() not in files.WRITABLE:
        endings = ", ".join(files.WRITABLE)
        raise click.UsageError(f"--output must end in {endings}, got {request.output}")
    for path, source in product(request.outputs().values(), request.inputs().values()):
        if path.exists() and source.exists() and path.samefile(source):
            raise click.UsageError(f"--output must not replace an input: {path} is {source}")


def _solver(request: Request) -> AbstractSolver:
    """Return the method with its options, which it checks itself."""
    options = dict(_option(text) for text in request.options)
    try:
        return resolve(request.method or "auto", options)
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"--method and --option: {error}") from error


def _option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an option: a number, None, True, False or text."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise click.UsageError(f"--option must be name=value, got {text!r}")
    with suppress(ValueError, SyntaxError):
        return name, literal_eval(value)
    return name, value


def signature_file(signature: str) -> Path | None:
    """Return the file that the text of a signature names, or None if it names none."""
    text = signature.strip()
    if COUNTS.fullmatch(text) or SIGNS.fullmatch(text) or text in LORENTZ:
        return None
    return Path(text)


def signature_from(text: str, n: int) -> Signature:
    """Return the signature of n signs that a text or the file that it names describes."""
    text = text.strip()
    path, counts = signature_file(text), COUNTS.fullmatch(text)
    if text in LORENTZ:
        return Signature.lorentz(n, LORENTZ[text])
    if path is not None and not os.path.isfile(text):  # Path.is_file raises for long texts
        known = "p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last"
        expected = f"{known}, or a file of +1 and -1"
        raise click.UsageError(f"--signature must be {expected}; there is no file {text:.40}")
    signs = text if path is None else np.ravel(files.entries(stored(path)))
    found = int(counts[1]) + int(counts[2]) if counts else len(signs)
    if found != n:
        expected = f"{n} signs, one per column of the data"
        raise click.UsageError(f"--signature must have {expected}, got {found}")
    return Signature(int(counts[1]), int(counts[2])) if counts else Signature.of(signs)


def _double(matrix: Matrix) -> Matrix:
    sparse = scipy.sparse.issparse(matrix)
    return matrix.astype(float) if sparse else np.array(matrix, dtype=float, order="C")


def _dense(matrix: Matrix) -> NDArray[Any]:
    array: NDArray[Any] = matrix.toarray() if scipy.sparse.issparse(matrix) else matrix
    return array


# -- solving


def solve(request: Request, loaded: Loaded) -> Solved:
    """Solve directly, or search every component, or run the method from the start."""
    if request.problem == "eigen":
        return _solve_directly(loaded)
    settings: dict[str, Any] = dict(
        signature=loaded.signature,
        gradient_tolerance=request.tolerance,
        max_iterations=request.max_iterations,
        max_time=request.max_time,
        seed=request.seed,
        progress=request.progress,
        checkpoint=request.checkpoint,
    )
    dense = {name: _dense(matrix) for name, matrix in loaded.matrices.items() if name != "source"}
    objective: AbstractObjective
    if request.problem == "procrustes":
        clouds = loaded.matrices["source"], dense["target"]
        if request.everywhere:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OtherTimeWarning)  # told already, as a note
                return Solved(cast("Result", procrustes(*clouds, **settings)))
        objective = Procrustes(*clouds)
    else:
        objective = Quadratic(**dense)
    n, columns = loaded.signature.n, objective.shape()[1]
    if loaded.start is None and request.problem == "quadratic" and columns not in (None, n):
        shape = f"{n} rows and {columns} columns"
        raise click.UsageError(f"--start must be given where X is thin: it has {shape} here")
    x0 = np.eye(n, columns) if loaded.start is None else loaded.start
    return Solved(minimize(objective, x0, method=loaded.solver, **settings))


def component_of(X: NDArray[Any], signature: Signature) -> Component | None:
    """Return the component of X; None for a thin X, or one that has lost its digits."""
    if X.shape[0] == X.shape[1]:
        with suppress(ValueError):
            plus, minus = component(X, signature)
            return plus, minus
    return None


def fit_of(loaded: Loaded, X: NDArray[Any]) -> dict[str, float]:
    """Return R^2 as in `LorentzAligner.score`, and the same for the columns of the identity."""
    source, target = loaded.matrices["source"], _dense(loaded.matrices["target"])
    m, k = target.shape
    spread = np.square(target - target.mean(axis=0)).sum()
    misfits = [np.square(points - target).sum() for points in (source @ X, _dense(source[:, :k]))]
    kept = [1 - misfit / spread if spread > 0 else np.nan for misfit in misfits]
    value = misfits[1] / (2 * m)
    return dict(m=m, r_squared=kept[0], identity_value=value, identity_r_squared=kept[1])


def _solve_directly(loaded: Loaded) -> Solved:
    """Solve by `eigh` of A, or by `hsvd` of the data, which is more accurate."""
    began = time.perf_counter()
    matrices, signature = loaded.matrices, loaded.signature
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
    name, matrix = next(iter(matrices.items()))
    own: dict[str, Any] = {name: _dense(matrix)}
    objective = HyperbolicEigenvalue(**own)
    value, gradient = objective.value_and_gradient(point)
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
        method="direct",
    )
    return Solved(result, values)
