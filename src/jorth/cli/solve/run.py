"""Solve a request: read its files, and run the method."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from jorth.cli.solve.everywhere import minimize_everywhere
from jorth.cli.solve.fit import Fit, Search, fit_of, search_of
from jorth.cli.solve.request import DIRECT, EVERY, OptionError, Request, signature_from
from jorth.clock import Clock
from jorth.group import residual
from jorth.group.slopes import gradient_norm
from jorth.group.time_column import OtherTimeWarning, message, other_time
from jorth.linalg import eigh, hsvd
from jorth.objectives import AbstractObjective, HyperbolicEigenvalue, Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import (
    METHODS,
    AbstractSolver,
    Evaluations,
    Result,
    Status,
    minimize,
    procrustes,
    resolve,
)
from jorth.storage.checks import check_size, dense, most_bytes
from jorth.storage.matrices import Matrix, checksum, entries, read
from jorth.suggestions import suggestion

CONSTANTS = {"None": None, "True": True, "False": False}
"""Values of options as Python writes them; "none" in lower case is a choice of some options."""


@dataclass(frozen=True)
class Solved:
    """A result and what is recorded with it."""

    result: Result
    signature: Signature
    solver: AbstractSolver | None  # with its options; None if DIRECT or EVERY
    checksums: dict[str, str]  # the sha256 of every file that was read
    eigenvalues: NDArray[np.floating] | None = None  # (n,), of the direct method
    fit: Fit | None = None  # of procrustes
    search: Search | None = None  # None where all components are alike, and for a thin X
    notes: tuple[str, ...] = ()  # what was decided about the files, or looks wrong with them


def solve(
    request: Request,
    *,
    before_iterations: Callable[[], object] = lambda: None,
    tell: Callable[[str], object] = lambda note: None,
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
        name: _cast(
            read(path, key=keys[name], layout=request.layout, tell=note), path, request.dtype
        )
        for name, path in request.matrices.items()
    }
    signature = signature_from(request.signature, next(iter(matrices.values())).shape[1])
    if request.problem == "procrustes":
        there = other_time(signature, matrices["source"], matrices["target"])
        if there is not None:
            note(message(there, f"-s lorentz-{there}"))
    if "data" in matrices:
        _check_data(matrices["data"], request.matrices["data"], note)
    request.make_folders()
    eigenvalues = None
    fit = search = None
    with _files_named(request):
        if "A" in matrices and request.problem == "eigen":
            _check_square(matrices["A"])
        if request.direct:
            result, eigenvalues = _direct(matrices, signature)
        else:
            result = _iterate(request, matrices, signature, solver, before_iterations)
    aligned = request.problem == "procrustes"
    if aligned:
        fit = fit_of(matrices["source"], _dense(matrices["target"]), result.x)
    if aligned or (request.problem == "quadratic" and not _are_alike(matrices)):
        everywhere = request.everywhere
        search = search_of(result, signature, starts=everywhere, bounds=everywhere and aligned)
    return Solved(
        result, signature, solver, checksums, eigenvalues, fit, search, notes=tuple(notes)
    )


def _check_square(A: Matrix) -> None:
    m, n = A.shape
    if m != n:
        advice = "if it holds data D (m, n), with A = D^T D, pass --data"
        raise ValueError(f"A must be square, got {m} rows and {n} columns; {advice}")


def _check_data(D: Matrix, path: Path, note: Callable[[str], object]) -> None:
    """Check that D^T D can be definite, and tell if D looks like A."""
    m, n = D.shape
    if m < n:
        found = f"{path} has {m} rows and {n} columns"
        raise ValueError(f"--data needs at least as many rows as columns, {found}")
    if m == n and not abs(D - D.T).max() > 0:
        note(f"{path} is symmetric, and A is its square; if it holds A, leave --data out")


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
        checkpoint=request.checkpoint,
        **request.limits,
    )
    if request.everywhere and request.problem == "procrustes":
        target = _dense(matrices["target"])
        before_iterations()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OtherTimeWarning)  # told already, as a note
            return procrustes(matrices["source"], target, **settings)
    objective = _objective(request, matrices)
    x0 = _start(request, objective, signature)
    before_iterations()
    if solver is not None:
        return minimize(objective, x0, method=solver, **settings)
    if _are_alike(matrices):
        return minimize(objective, x0, **settings)
    return minimize_everywhere(objective, dtype=request.dtype, **settings)


def _are_alike(matrices: dict[str, Matrix]) -> bool:
    """Whether f is the same in all components: X may change the signs of its columns."""
    if "C" in matrices:
        return False
    D = _dense(matrices["D"]) if "D" in matrices else np.zeros((1, 1))
    return bool((np.diag(np.diagonal(D)) == D).all())


def _cast(matrix: Matrix, path: Path, dtype: np.dtype[Any]) -> Matrix:
    """The matrix, dense or sparse, in the precision of the run."""
    with np.errstate(over="ignore"):
        if scipy.sparse.issparse(matrix):
            cast = matrix.astype(dtype)
        else:
            cast = np.array(matrix, dtype=dtype, order="C")
    if not np.isfinite(entries(cast)).all():
        message = f"must be left out: {path} has entries beyond the range of {dtype}"
        raise OptionError("--float32", message)
    return cast


def _dense(matrix: Matrix) -> NDArray[Any]:
    return dense(matrix, most_bytes()) if scipy.sparse.issparse(matrix) else matrix


@contextmanager
def _files_named(request: Request) -> Iterator[None]:
    """Add the names of the files to errors, which speak of A and x0."""
    try:
        yield
    except OptionError:
        raise
    except ValueError as error:
        files = {name: path for name, path in request.inputs().items() if name != "signature"}
        names = ", ".join(f"{name} is {path}" for name, path in files.items())
        raise ValueError(f"{error} ({names})") from error


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
        check_size(data.shape[1] ** 2 * data.dtype.itemsize, most_bytes())
        return HyperbolicEigenvalue((data.T @ data).toarray())
    return HyperbolicEigenvalue(data=data)


def _direct(
    matrices: dict[str, Matrix], signature: Signature
) -> tuple[Result, NDArray[np.floating]]:
    """Solve by `eigh` of A, or by `hsvd` of the data, which is more accurate."""
    clock = Clock()
    clock.start()
    if "A" in matrices:
        values, X = eigh(_dense(matrices["A"]), signature)
    else:
        factors = hsvd(_dense(matrices["data"]), signature)
        order = _ascending(signature)
        values = (signature.signs * factors.S**2)[order]
        X = np.ascontiguousarray(factors.X[:, order])
    clock.pause()
    point = torch.from_numpy(X)
    value, gradient = _eigenvalue(matrices).value_and_gradient(point)
    found = residual(X, signature)
    result = Result(
        x=X,
        value=value.item(),
        status=Status.CONVERGED,
        message=f"solved directly, without iterations{_extremum(values, signature)}",
        iterations=0,
        evaluations=Evaluations(),
        time=clock.seconds,
        gradient_norm=gradient_norm(point, gradient, signature.vector(point)),
        residual=found,
        violation=found,
        history={},
        method=DIRECT,
    )
    return result, values


def _extremum(values: NDArray[np.floating], signature: Signature) -> str:
    """A remark if the trace is at its maximum: the pencil is negative definite."""
    plus, minus = values[signature.positive], values[signature.negative]
    if plus.size and minus.size and plus.max() < minus.min():
        return "; the trace is at its maximum, and unbounded below"
    return ""


def _ascending(signature: Signature) -> NDArray[np.intp]:
    """The permutation that reverses the order within each sign, from that of `hsvd` to `eigh`."""
    order = np.empty(signature.n, dtype=np.intp)
    for positions in (signature.positive, signature.negative):
        order[positions] = positions[::-1]
    return order


def _solver(request: Request) -> AbstractSolver | None:
    """The method with its options, which it checks itself."""
    options = dict(_option(text) for text in request.options)
    if request.everywhere and options:
        raise OptionError("--option", f"needs a --method that has options, got {EVERY}")
    if request.direct or request.everywhere:
        return None
    name = request.method
    if name not in METHODS:
        choices = [DIRECT if request.problem == "eigen" else EVERY, *METHODS]
        found = f"{name!r}{suggestion(name, choices)}"
        raise OptionError("--method", f"must be one of {', '.join(choices)}, got {found}")
    try:
        return resolve(name, options)
    except (TypeError, ValueError) as error:
        raise OptionError("--option", f"{' '.join(request.options)}: {error}") from error


def _option(text: str) -> tuple[str, Any]:
    """The name and the value of an option: a number, None, True, False or text."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise OptionError("--option", f"must be name=value, got {text!r}")
    if value in CONSTANTS:
        return name, CONSTANTS[value]
    for kind in (int, float):
        with suppress(ValueError):
            return name, kind(value)
    return name, value


def _start(
    request: Request, objective: AbstractObjective, signature: Signature
) -> NDArray[np.floating]:
    """The requested start, or the identity; for a thin alignment its first columns."""
    dtype = request.dtype
    if request.start is not None:
        return _dense(_cast(read(request.start, layout=request.layout), request.start, dtype))
    columns = objective.shape()[1]
    if request.problem == "procrustes":
        return np.eye(signature.n, columns, dtype=dtype)
    if columns not in (None, signature.n):
        shape = f"{signature.n} rows and {columns} columns"
        raise OptionError("--start", f"must be given where X is thin: it has {shape} here")
    return np.eye(signature.n, dtype=dtype)
