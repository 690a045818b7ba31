"""What `jorth solve` does: read files, solve, write X and the record, and print the answer."""

from __future__ import annotations

import hashlib
import re
import textwrap
import time
import warnings
from ast import literal_eval
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, Literal, cast

import click
import numpy as np
import torch
from numpy.typing import NDArray

from jorth import __version__
from jorth._files import make_folder, replacing, to_json
from jorth._inputs import is_sparse
from jorth._matrices import WRITABLE, Matrix, read, write
from jorth.group import component, residual
from jorth.group.gradient import gradient_norm
from jorth.group.time_column import warn_of_other_time
from jorth.linalg import eigh, hsvd
from jorth.objectives import HyperbolicEigenvalue, Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import (
    AbstractSolver,
    Evaluations,
    Interrupt,
    Result,
    Status,
    minimize,
    procrustes,
    resolve,
)
from jorth.terminal import WIDTH


@dataclass(frozen=True)
class Request:
    """One problem to solve: the options of the command."""

    problem: Literal["eigen", "procrustes", "quadratic"]
    matrices: dict[str, Path]  # files by the names of the matrices in the formulas
    command: str  # the command line, for the record
    signature: str
    output: Path
    key: str | None = None
    quiet: bool = False
    method: str | None = None
    start: Path | None = None
    options: tuple[str, ...] = ()
    max_iterations: int | None = None
    max_time: float | None = None
    tolerance: float | None = None
    seed: int = 0
    checkpoint: Path | None = None
    progress: bool = False

    @property
    def everywhere(self) -> bool:
        """Return whether all components of O(p, q) are searched, by `jorth.procrustes`."""
        return self.problem == "procrustes" and self.method is None and self.start is None

    def inputs(self) -> dict[str, Path]:
        """Return all files that are read, by their names in the record."""
        return self.matrices | ({} if self.start is None else {"x0": self.start})

    def outputs(self) -> dict[str, Path]:
        """Return all files that are written; the record comes last."""
        name = f"{self.output.stem}_eigenvalues{self.output.suffix}"
        values = {"values": self.output.with_name(name)} if self.problem == "eigen" else {}
        return {"x": self.output, **values, "record": self.output.with_suffix(".json")}


def run(request: Request) -> Status:
    """Solve the problem, write all files, print the answer, and return how the run ended.

    Raises:
        click.UsageError: An option is invalid; nothing was done.
        ValueError: A file, or the combination of matrices, does not fit the problem.
    """
    outputs = request.outputs()
    if request.output.suffix.lower() not in WRITABLE:
        found = f"{', '.join(WRITABLE)}, got {request.output}"
        raise click.UsageError(f"--output must end in {found}")
    for path, source in product(outputs.values(), request.inputs().values()):
        if path.exists() and path.samefile(source):
            raise click.UsageError(f"--output must not replace an input: {path} is {source}")
    solver = _solver(request)
    matrices = {name: read(path, key=request.key) for name, path in request.matrices.items()}
    signature = _signature(request.signature.strip(), next(iter(matrices.values())).shape[1])
    start = None if request.start is None else _dense(read(request.start))
    make_folder(request.output.parent, "--output")
    with Interrupt() as interrupt, warnings.catch_warnings():
        if request.quiet:
            warnings.simplefilter("ignore")
        interrupt.hold()  # there are results to save, so Ctrl-C only ends the iterations
        values = None
        if request.problem == "eigen":
            result, values = _solve_directly(matrices, signature)
        else:
            result = _iterate(request, matrices, signature, start, solver)
        write(outputs["x"], result.x)
        if values is not None:
            write(outputs["values"], values)
        record = _record(request, signature, solver, result)
        if request.problem == "procrustes":
            record |= _fit(matrices, result.x)
        with replacing(outputs["record"]) as stream:
            stream.write(to_json(record, indent=2) + b"\n")
    if not request.quiet:
        _show(request, signature, record, values)
    return result.status


# -- options and files


def _solver(request: Request) -> AbstractSolver:
    """Return the method with its options: numbers, None, True, False or text."""
    if request.everywhere and request.checkpoint is not None:
        found = f"{request.checkpoint} for a search of all components"
        raise click.UsageError(f"--checkpoint must be given with --method, got {found}")
    options: dict[str, Any] = {}
    for text in request.options:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise click.UsageError(f"--option must be name=value, got {text!r}")
        options[name] = value
        with suppress(ValueError, SyntaxError):
            options[name] = literal_eval(value)
    try:
        return resolve(request.method or "auto", options)
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"--method and --option: {error}") from error


def _signature(text: str, n: int) -> Signature:
    """Return the signature of n signs that a text describes."""
    if text in ("lorentz", "lorentz-last"):
        return Signature.lorentz(n, "first" if text == "lorentz" else "last")
    counts = re.fullmatch(r"(\d+)\s*,\s*(\d+)", text)
    if not (counts or re.fullmatch("[+-]+", text)):
        known = "p,q (like 12,8), signs (like ++--+), lorentz or lorentz-last"
        raise click.UsageError(f"--signature must be {known}, got {text:.40}")
    signature = Signature(int(counts[1]), int(counts[2])) if counts else Signature.of(text)
    if signature.n != n:
        expected = f"{n} signs, one per column of the data"
        raise click.UsageError(f"--signature must have {expected}, got {signature.n}")
    return signature


def _dense(matrix: Matrix) -> NDArray[Any]:
    array: NDArray[Any] = matrix.toarray() if is_sparse(matrix) else matrix
    return array


# -- solving


def _iterate(
    request: Request,
    matrices: dict[str, Matrix],
    signature: Signature,
    start: NDArray[Any] | None,
    solver: AbstractSolver,
) -> Result:
    """Search every component, or run the method from the start."""
    settings: dict[str, Any] = dict(signature=signature, gradient_tolerance=request.tolerance)
    settings |= dict(max_iterations=request.max_iterations, max_time=request.max_time)
    dense = {name: _dense(matrix) for name, matrix in matrices.items() if name != "source"}
    if request.everywhere:
        return cast("Result", procrustes(matrices["source"], dense["target"], **settings))
    settings |= dict(seed=request.seed, progress=request.progress, checkpoint=request.checkpoint)
    if request.problem == "procrustes":
        warn_of_other_time(signature, *matrices.values())
        clouds = Procrustes(matrices["source"], dense["target"])
        x0 = np.eye(signature.n, dense["target"].shape[1]) if start is None else start
        return minimize(clouds, x0, method=solver, **settings)
    objective = Quadratic(**dense)
    n, columns = signature.n, objective.shape()[1]
    if start is None and columns not in (None, n):
        shape = f"{n} rows and {columns} columns"
        raise click.UsageError(f"--start must be given where X is thin: it has {shape} here")
    x0 = np.eye(n) if start is None else start
    return cast("Result", minimize(objective, x0, method=solver, **settings))


def _solve_directly(
    matrices: dict[str, Matrix], signature: Signature
) -> tuple[Result, NDArray[np.floating]]:
    """Solve by `eigh` of A, or by `hsvd` of the data, which is more accurate."""
    began = time.perf_counter()
    ((name, matrix),) = ((name, _dense(matrix)) for name, matrix in matrices.items())
    if name == "A":
        if len(matrix) != signature.n:
            found = f"{len(matrix)} rows and {signature.n} columns"
            raise ValueError(f"A must be square, got {found}; if it holds data D, pass --data")
        values, X = eigh(matrix, signature)
    else:
        factors = hsvd(matrix, signature)
        order = np.empty(signature.n, dtype=np.intp)  # each sign ascending, as from `eigh`
        for positions in (signature.positive, signature.negative):
            order[positions] = positions[::-1]
        values = (signature.signs * factors.S**2)[order]
        X = np.ascontiguousarray(factors.X[:, order])
    seconds = time.perf_counter() - began
    point, given = torch.from_numpy(X), cast("dict[str, Any]", {name: matrix})
    value, gradient = HyperbolicEigenvalue(**given).value_and_gradient(point)
    error = residual(X, signature)
    result = Result(
        x=X,
        value=value.item(),
        status=Status.CONVERGED,
        message="solved directly, without iterations",
        iterations=0,
        evaluations=Evaluations(),
        time=seconds,
        gradient_norm=gradient_norm(point, gradient, signature.vector(point)),
        residual=error,
        violation=error,
        history={},
        method="direct",
    )
    return result, values


def _fit(matrices: dict[str, Matrix], X: NDArray[Any]) -> dict[str, float]:
    """Return R^2 as in `LorentzAligner.score`, and the same for the columns of the identity."""
    source, target = matrices["source"], _dense(matrices["target"])
    m, k = target.shape
    spread = np.square(target - target.mean(axis=0)).sum()
    misfits = [np.square(points - target).sum() for points in (source @ X, _dense(source[:, :k]))]
    kept = [1 - misfit / spread if spread > 0 else np.nan for misfit in misfits]
    value = misfits[1] / (2 * m)
    return dict(m=m, r_squared=kept[0], identity_value=value, identity_r_squared=kept[1])


# -- the answer


def _record(
    request: Request, signature: Signature, solver: AbstractSolver, result: Result
) -> dict[str, Any]:
    """Return everything that is needed to judge the run and to repeat it."""
    names = ("method", "message", "value", "gradient_norm", "residual", "iterations", "time")
    where = None
    with suppress(ValueError):  # a thin X, or one that has lost its digits
        where = component(result.x, signature)
    return {
        "command": request.command,
        "problem": request.problem,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "jorth": __version__,
            **{name: version(name) for name in ("numpy", "scipy", "torch", "numba")},
        },
        "status": result.status.name,
        **{name: getattr(result, name) for name in names},
        "norm": float(np.linalg.norm(result.x, 2)),
        "evaluations": vars(result.evaluations),
        "shape": list(result.x.shape),
        "component": where,
        "signature": "".join("+" if sign > 0 else "-" for sign in signature),
        "options": asdict(solver),  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": {"max_iterations": request.max_iterations, "max_time": request.max_time},
        "seed": request.seed,
        "inputs": {
            name: {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for name, path in request.inputs().items()
        },
        **({} if result.gap is None else {"bound": result.bound, "gap": result.gap}),
    }


def _show(
    request: Request,
    signature: Signature,
    record: dict[str, Any],
    values: NDArray[np.floating] | None,
) -> None:
    """Print the problem, what is known about the answer, and the files."""
    n, columns = record["shape"]
    signs = f" ({record['signature']})" if n <= 24 else ""  # so that they fit a line
    rows = f"{record['m']} rows, " if "m" in record else ""
    counts = f"p = {signature.p}, q = {signature.q}{signs}"
    click.echo(f"{request.problem}, {rows}X {n} x {columns}, {counts}")
    facts = _facts(request, signature, record, values)
    lines = [(10, f"{name:<10}{text}") for name, text in facts]
    for indent, text in (*lines, (0, record["message"])):
        wrapped = textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False)
        click.echo(wrapped)
    click.echo(f"written: {', '.join(str(path) for path in request.outputs().values())}")


def _facts(
    request: Request,
    signature: Signature,
    record: dict[str, Any],
    values: NDArray[np.floating] | None,
) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what is known about the answer."""
    status = record["status"].lower().replace("_", " ")
    yield "method", f"{record['method']}, {status}, {record['time']:.3g} s"
    yield "value", f"{record['value']:.8g}"
    sizes = f"residual {record['residual']:.1e}, |X| {record['norm']:.3g}"
    yield "gradient", f"{record['gradient_norm']:.1e}, {sizes}"
    for name, own in (("lambda +", signature.positive), ("lambda -", signature.negative)):
        if values is not None and len(own):
            found, columns = _listed([f"{values[j]:.8g}" for j in own]), _listed(own + 1)
            yield name, f"{found} (x^T J x = {name[-1]}1, columns {columns} of X)"
    if request.problem == "procrustes":
        found, identity = record["r_squared"], record["identity_r_squared"]
        yield "identity", f"{record['identity_value']:.8g}, R^2 {identity:.6g}"
        squares = "1 - |SOURCE X - TARGET|^2 / |TARGET - column means|^2"
        yield "R^2", f"{found:.6g} ({squares})"
        if found < identity - 1e-12:  # more than rounding
            yield "note", "the identity fits better than this X"
    if "gap" in record:
        yield "gap", f"{record['gap']:.2g}; no X has a value below {record['bound']:.8g}"
    if request.problem != "eigen" and record["component"]:
        which = record["component"]
        signs = zip(("X[+,+]", "X[-,-]"), which, (signature.p, signature.q), strict=True)
        dets = [f"det {block} {'<>'[sign > 0]} 0" for block, sign, n in signs if n]
        text = f"({','.join('-+'[sign > 0] for sign in which)}), {', '.join(dets)}; "
        if not request.everywhere:
            text += "only this component was searched"
        elif record["status"] in ("INTERRUPTED", "MAX_TIME"):
            text += "cut short"
        else:
            text += "the others were searched, or ruled out by a bound"
        yield "component", text
    if request.problem == "quadratic" or record["shape"][0] > record["shape"][1]:
        yield "note", "there was one start, and others may end lower"


def _listed(entries: Iterable[object]) -> str:
    """Return the entries with commas; of more than ten, the first and the last five."""
    texts = [str(entry) for entry in entries]
    return ", ".join(texts if len(texts) <= 10 else [*texts[:5], "...", *texts[-5:]])
