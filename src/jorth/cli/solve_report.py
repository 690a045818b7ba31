"""The answer of `jorth solve`: on the terminal, and in files."""

from __future__ import annotations

import hashlib
import platform
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from jorth import __version__
from jorth import _matrices as files
from jorth._files import replacing, to_json
from jorth.cli.solving import Loaded, Request, Solved, component_of, fit_of
from jorth.signature import Signature
from jorth.solvers import Result, Status
from jorth.tables import WIDTH, NumberTable
from jorth.tables import show as show_tables

MOST_SIGNS = 24
"""Longer signatures are shown by their counts alone, so that they fit a line."""
MOST_EIGENVALUES = 10
"""Of each type; of more, the first and the last half of so many are shown."""


def show(request: Request, loaded: Loaded, solved: Solved) -> None:
    """Print the runs, what is known about the answer, and the files."""
    show_tables(_table(request, loaded, solved))
    if solved.eigenvalues is not None:
        show_tables(_eigenvalue_table(solved.eigenvalues, loaded.signature))
    for name, text in _facts(request, loaded, solved):
        _say(f"{name:<10}{text}", indent=10)
    _say(solved.result.message)
    click.echo(f"written: {', '.join(str(path) for path in request.outputs().values())}")


def _say(text: str, indent: int = 0) -> None:
    click.echo(textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False))


def _table(request: Request, loaded: Loaded, solved: Solved) -> NumberTable:
    """Return one row per run: value, status, gradient norm, residual, norm, time."""
    rows, columns = solved.result.x.shape
    signature = loaded.signature
    signs = "".join("+" if sign > 0 else "-" for sign in signature)
    counts = f"p = {signature.p}, q = {signature.q}"
    counts += f" ({signs})" if signature.n <= MOST_SIGNS else ""
    size = f"{loaded.matrices['source'].shape[0]} rows, " if "source" in loaded.matrices else ""
    runs = _runs(solved.result)
    first = ["X in"] if len(runs) > 1 else []
    headings = [*first, "method", "value", "status", "gradient", "residual", "norm", "seconds"]
    title = f"{request.problem}, {size}X {rows} x {columns}, {counts}"
    table = NumberTable(headings, names=(0, len(first), len(first) + 2), title=title)
    for run in runs:
        table.add(
            *(_short(component_of(run.x, signature)) for _ in first),
            run.method,
            f"{run.value:.6g}",
            run.status.name.lower().replace("_", " "),
            f"{run.gradient_norm:.1e}",
            f"{run.residual:.1e}",
            f"{_norm(run):.3g}",
            f"{run.time:.3g}",
        )
    return table


def _facts(request: Request, loaded: Loaded, solved: Solved) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what is known about the answer beyond its runs."""
    result = solved.result
    yield "value", f"{result.value:.8g}"
    if request.problem == "procrustes":
        fit = fit_of(loaded, result.x)
        yield "identity", f"{fit['identity_value']:.8g}, R^2 {fit['identity_r_squared']:.6g}"
        squares = "1 - |SOURCE X - TARGET|^2 / |TARGET - column means|^2"
        yield "R^2", f"{fit['r_squared']:.6g} ({squares})"
        if fit["r_squared"] < fit["identity_r_squared"] - 1e-12:  # more than rounding
            yield "note", "the identity fits better than this X"
    if result.gap is not None:
        yield "gap", f"{result.gap:.2g}; no X has a value below {result.bound:.8g}"
    if request.problem != "eigen" and result.x.shape[0] == result.x.shape[1]:
        yield "component", _components(request, loaded, result)
    if request.problem == "quadratic" or result.x.shape[1] < len(result.x):
        yield "note", "there was one start, and others may end lower"


def _components(request: Request, loaded: Loaded, result: Result) -> str:
    """Return which component X is in, and which were searched."""
    signature = loaded.signature
    best = component_of(result.x, signature) or ()
    names = [name for name, n in (("X[+,+]", signature.p), ("X[-,-]", signature.q)) if n]
    signs = [sign for sign, n in zip(best, (signature.p, signature.q), strict=False) if n]
    dets = [f"det {name} {'<>'[sign > 0]} 0" for name, sign in zip(names, signs, strict=False)]
    text = f"{_short(best)}, {', '.join(dets)}"
    if not request.everywhere:
        return f"{text}; only this component was searched"
    searched = dict.fromkeys(_short(component_of(run.x, signature)) for run in _runs(result))
    text += f"; searched: {' '.join(searched)}"
    complete = result.bound is not None and result.status is not Status.INTERRUPTED
    return f"{text}; the others are ruled out by a bound" if complete else text


def _runs(result: Result) -> tuple[Result, ...]:
    return result.stages or (result,)


def _short(which: Sequence[int] | None) -> str:
    """Return a component like (+,-), by the signs of det X[+,+] and det X[-,-]."""
    return f"({','.join('+' if sign > 0 else '-' for sign in which or ())})"


def _eigenvalue_table(values: NDArray[np.floating], signature: Signature) -> NumberTable:
    """Return the eigenvalues of either type side by side, each with its column of X."""
    headings: list[str] = []
    cells: list[list[str]] = []
    for sign, positions in (("+1", signature.positive), ("-1", signature.negative)):
        headings += ["column", f"{len(positions)} with x^T J x = {sign}"]
        kept: list[int | None] = [*positions]
        if len(kept) > MOST_EIGENVALUES:
            half = MOST_EIGENVALUES // 2
            kept = [*kept[:half], None, *kept[-half:]]
        cells.append(["..." if j is None else str(j + 1) for j in kept])
        cells.append(["" if j is None else f"{values[j]:.8g}" for j in kept])
    table = NumberTable(headings, names=(), title="A x = lambda J x: eigenvalues by column of X")
    for row in range(max(map(len, cells))):
        table.add(*(column[row] if row < len(column) else "" for column in cells))
    return table


# -- in files


def write(request: Request, loaded: Loaded, solved: Solved) -> None:
    """Write all files of the request, the record last."""
    outputs = request.outputs()
    files.write(outputs["x"], solved.result.x)
    if solved.eigenvalues is not None:
        files.write(outputs["eigenvalues"], solved.eigenvalues)
    with replacing(outputs["record"]) as stream:
        stream.write(to_json(_record(request, loaded, solved), indent=2) + b"\n")


def _record(request: Request, loaded: Loaded, solved: Solved) -> dict[str, Any]:
    """Return everything that is needed to judge the run and to repeat it."""
    result, signature = solved.result, loaded.signature
    packages = {name: version(name) for name in ("numpy", "scipy", "torch", "numba")}
    found: dict[str, Any] = {
        "command": request.command,
        "problem": request.problem,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {"jorth": __version__, "python": platform.python_version(), **packages},
        "platform": platform.platform(),
        **_summary(result),
        "residual": result.residual,
        "violation": result.violation,
        "norm": _norm(result),
        "evaluations": vars(result.evaluations),
        "shape": list(result.x.shape),
        "component": component_of(result.x, signature),
        "signature": "".join("+" if sign > 0 else "-" for sign in signature),
        "options": asdict(loaded.solver),  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": {"max_iterations": request.max_iterations, "max_time": request.max_time},
        "seed": request.seed,
        "note": loaded.note,
        "runs": [_summary(run) for run in result.stages],
        "inputs": {
            name: {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for name, path in request.inputs().items()
        },
    }
    if request.problem == "procrustes":
        found |= fit_of(loaded, result.x)
    if result.gap is not None:
        found |= {"bound": result.bound, "gap": result.gap}
    return found


def _summary(result: Result) -> dict[str, Any]:
    names = ("method", "message", "value", "gradient_norm", "iterations", "time")
    return {"status": result.status.name, **{name: getattr(result, name) for name in names}}


def _norm(result: Result) -> float:
    """Return ||X||_2."""
    return float(np.linalg.norm(result.x, 2))
