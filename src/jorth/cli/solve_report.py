"""The answer of `jorth solve`: on the terminal, and in files."""

from __future__ import annotations

import platform
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from jorth import __version__
from jorth import _matrices as files
from jorth._files import replacing, to_json
from jorth.cli.solving import Component, Request, Solved, checksum, component_of
from jorth.signature import Signature
from jorth.solvers import Result

if TYPE_CHECKING:
    from rich.table import Table

WIDTH = 80
MOST_SIGNS = 24  # longer signatures are shown by their counts alone
MOST_EIGENVALUES = 10  # of each type; of more, the first and the last half of so many are shown


# -- on the terminal


def show(request: Request, solved: Solved) -> None:
    """Print the runs, what is known about the answer, and the files."""
    from rich.console import Console

    console = Console(width=WIDTH)  # a narrower terminal breaks the lines and cuts off no figure
    console.print(table(request, solved))
    if solved.eigenvalues is not None:
        console.print(eigenvalue_table(solved.eigenvalues, solved.signature))
    for name, text in facts(request, solved):
        click.echo(_wrapped(f"{name:<10}{text}", indent=10))
    click.echo(_wrapped(solved.result.message))
    click.echo(f"written: {', '.join(str(path) for path in request.outputs().values())}")


def _wrapped(text: str, indent: int = 0) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent=" " * indent, break_long_words=False)


def table(request: Request, solved: Solved) -> Table:
    """Return one row per run: value, status, gradient norm, residual, norm, time."""
    rows, columns = solved.result.x.shape
    runs = solved.result.stages or (solved.result,)
    where = [component_of(run.x, solved.signature) for run in runs]
    several = request.everywhere and bool(solved.searched)
    size = f"{solved.fit['m']:.0f} rows, " if solved.fit else ""
    made = _table(f"{request.problem}, {size}X {rows} x {columns}, {_signs(solved.signature)}")
    if several:
        made.add_column("X in", no_wrap=True)
    made.add_column("method", no_wrap=True)
    for heading in ("value", "status", "gradient", "residual", "norm", "seconds"):
        # only the status may wrap, so that the table fits into 80 characters
        made.add_column(heading, justify="right", no_wrap=heading != "status")
    for run, which in zip(runs, where, strict=True):
        made.add_row(
            *([_short(which)[1:-1]] if several else []),
            run.method,
            f"{run.value:.6g}" if several else f"{run.value:.8g}",
            run.status.name.lower().replace("_", " "),
            f"{run.gradient_norm:.1e}",
            f"{run.residual:.1e}",
            f"{_norm(run):.3g}",
            f"{run.time:.3g}",
        )
    return made


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)


def _signs(signature: Signature) -> str:
    """Return the counts of a signature, and its signs if they are few."""
    counts = f"p = {signature.p}, q = {signature.q}"
    signs = "".join("+" if sign > 0 else "-" for sign in signature.signs)
    return counts if signature.n > MOST_SIGNS else f"{counts} ({signs})"


def facts(request: Request, solved: Solved) -> Iterator[tuple[str, str]]:
    """Yield names and texts of what is known about the answer beyond its runs."""
    result, fit = solved.result, solved.fit
    if fit:
        yield "value", f"{result.value:.8g}; the identity has {fit['identity_value']:.8g}"
        squares = "1 - |SOURCE X - TARGET|^2 / |TARGET - column means|^2"
        both = f"{fit['r_squared']:.6g}; the identity has {fit['identity_r_squared']:.6g}"
        constant = np.isnan(fit["r_squared"])
        same = "undefined, as all rows of TARGET are the same"
        yield "R^2", same if constant else f"{both} ({squares})"
        if fit["r_squared"] < fit["identity_r_squared"] - 1e-12:  # more than rounding
            yield "note", "the identity fits better than this X"
    if result.gap is not None:
        yield "gap", f"{result.gap:.2g}; no X has a value below {result.bound:.8g}"
    if solved.searched:
        yield "component", _components(request, solved)
    if request.problem == "eigen" and not request.direct:
        yield "note", "iterations give no eigenvalues; --method direct does"
    if request.problem == "quadratic" and {"C", "D"} & set(request.matrices):
        yield "note", "other starts may end lower"
    elif request.problem != "eigen" and result.x.shape[1] < len(result.x):
        yield "note", "X is thin: there was one start, and others may end lower"


def _components(request: Request, solved: Solved) -> str:
    signature = solved.signature
    best = component_of(solved.result.x, signature) or (1, 1)
    blocks = (("X[+,+]", signature.p, best[0]), ("X[-,-]", signature.q, best[1]))
    signs = [f"det {name} {'>' if sign > 0 else '<'} 0" for name, n, sign in blocks if n]
    text = ", ".join([_short(best), *signs])
    if not request.everywhere:
        return f"{text}; only this component was searched, without --method and --start all are"
    parts = {
        "searched:": solved.searched,
        "ruled out by a bound:": solved.left_out,
        "not searched:": solved.unknown,
    }
    listed = (f"{what} {' '.join(map(_short, found))}" for what, found in parts.items() if found)
    return "; ".join([text, *listed])


def _short(which: Component | None) -> str:
    """Return a component like (+,-), by the signs of det X[+,+] and det X[-,-]."""
    return f"({','.join('+' if sign > 0 else '-' for sign in which or ())})"


def eigenvalue_table(values: NDArray[np.floating], signature: Signature) -> Table:
    """Return the eigenvalues of either type side by side, each with its column of X."""
    made = _table("A x = lambda J x: eigenvalues by column of X")
    cells: list[list[str]] = []
    for sign, positions in (("+1", signature.positive), ("-1", signature.negative)):
        made.add_column("column", justify="right", no_wrap=True)
        made.add_column(f"{len(positions)} with x^T J x = {sign}", justify="right", no_wrap=True)
        kept: list[int | None] = [*positions]
        if len(kept) > MOST_EIGENVALUES:
            half = MOST_EIGENVALUES // 2
            kept = [*kept[:half], None, *kept[-half:]]
        cells.append(["..." if j is None else str(j + 1) for j in kept])
        cells.append(["" if j is None else f"{values[j]:.8g}" for j in kept])
    for row in range(max(map(len, cells))):
        made.add_row(*(column[row] if row < len(column) else "" for column in cells))
    return made


# -- in files


def write(request: Request, solved: Solved) -> None:
    """Write all files of the request, the record last."""
    outputs = request.outputs()
    files.write(outputs["x"], solved.result.x)
    if solved.eigenvalues is not None:
        files.write(outputs["eigenvalues"], solved.eigenvalues)
    with replacing(outputs["record"]) as stream:
        stream.write(to_json(_record(request, solved), indent=2) + b"\n")


def _record(request: Request, solved: Solved) -> dict[str, Any]:
    """Return everything that is needed to judge the run and to repeat it."""
    result, signature = solved.result, solved.signature
    written = {name: path for name, path in request.outputs().items() if name != "record"}
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
        "evaluations": result.evaluations.as_dict(),
        "shape": list(result.x.shape),
        "signature": "".join("+" if sign > 0 else "-" for sign in signature.signs),
        "method": request.method,
        "options": asdict(solved.solver) if solved.solver else {},  # type: ignore[call-overload]
        "tolerance": request.tolerance,
        "limits": request.limits,
        "seed": request.seed,
        "ran": result.method,
        "notes": list(solved.notes),
        "runs": [{"method": run.method, **_summary(run)} for run in result.stages],
        **solved.fit,
        "inputs": {
            name: {"file": str(path), "sha256": solved.checksums[name]}
            for name, path in request.inputs().items()
        },
        "outputs": {
            name: {"file": str(path), "sha256": checksum(path)} for name, path in written.items()
        },
    }
    if result.gap is not None:
        found |= {"bound": result.bound, "gap": result.gap}
    if solved.searched:
        found["component"] = component_of(result.x, signature)
        names = ("searched", "left_out", "unknown")
        found["components"] = {name: getattr(solved, name) for name in names}
    return found


def _summary(result: Result) -> dict[str, Any]:
    names = ("message", "value", "gradient_norm", "iterations", "time")
    return {"status": result.status.name, **{name: getattr(result, name) for name in names}}


def _norm(result: Result) -> float:
    """Return ||X||_2."""
    return float(np.linalg.norm(result.x, 2))
