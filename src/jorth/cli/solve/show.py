"""The answer of `jorth solve` on the terminal, within 80 columns or fewer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray

from jorth.cli.solve.fit import Component, Fit, Search, component_of
from jorth.cli.solve.request import Request
from jorth.cli.solve.run import Solved
from jorth.cli.solve.write import norm
from jorth.signature import Signature

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 80
LEAST_WIDTH = 40
MOST_SIGNS = 24
"""Longer signatures are shown by their counts alone."""
MOST_EIGENVALUES = 10
"""Of each type; of more, the first and the last half of so many are shown."""


def show(request: Request, solved: Solved) -> None:
    """Print the runs, what is known about the answer, and the files."""
    from rich.console import Console

    console = Console()
    width = max(LEAST_WIDTH, min(WIDTH, console.width))
    _print(table(request, solved), console)
    if solved.eigenvalues is not None:
        _print(eigenvalue_table(solved.eigenvalues, solved.signature), console)
    for name, text in facts(request, solved):
        _wrapped(f"{name:<10}{text}", width, indent=10)
    _wrapped(solved.result.message, width)
    click.echo(f"written: {', '.join(str(path) for path in request.outputs().values())}")


def _print(made: Table, console: Console) -> None:
    """Print a table; where it does not fit, each row as a list, as no number may be cut off."""
    from rich.measure import Measurement

    if Measurement.get(console, console.options.update(width=1000), made).minimum <= console.width:
        console.print(made)
        return
    click.echo(made.title)
    for row in zip(*(column.cells for column in made.columns), strict=True):
        click.echo()
        for column, cell in zip(made.columns, row, strict=True):
            click.echo(f"{column.header:<10}{cell}")
    click.echo()


def _wrapped(text: str, width: int, indent: int = 0) -> None:
    click.echo(textwrap.fill(text, width, subsequent_indent=" " * indent, break_long_words=False))


def table(request: Request, solved: Solved) -> Table:
    """One row per run: value, status, gradient norm, residual, norm, time."""
    rows, columns = solved.result.x.shape
    size = f"X {rows} x {columns}" if solved.fit is None else f"m = {solved.fit.rows}, n = {rows}"
    thin = f", X {rows} x {columns}" if solved.fit is not None and columns < rows else ""
    made = _table(f"{request.problem}, {size}{thin}, {signs(solved.signature)}")
    runs = solved.result.stages or (solved.result,)
    where = [""] * len(runs)
    if request.everywhere and solved.search is not None:
        found = [component_of(run.x, solved.signature) for run in runs]
        where = ["" if which is None else short(which)[1:-1] for which in found]
        made.add_column("X in", no_wrap=True)
    made.add_column("method", no_wrap=True)
    for heading in ("value", "status", "gradient", "residual", "norm", "seconds"):
        # only the status may wrap, so that the table fits into 80 characters
        made.add_column(heading, justify="right", no_wrap=heading != "status")
    for run, which in zip(runs, where, strict=True):
        made.add_row(
            *([which] if any(where) else []),
            run.method,
            f"{run.value:.6g}" if any(where) else f"{run.value:.8g}",
            run.status.name.lower().replace("_", " "),
            f"{run.gradient_norm:.1e}",
            f"{run.residual:.1e}",
            f"{norm(run):.3g}",
            f"{run.time:.3g}",
        )
    return made


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=0, pad_edge=False)


def signs(signature: Signature) -> str:
    """The signature: its counts, and its signs if they are few."""
    counts = f"p = {signature.p}, q = {signature.q}"
    if signature.n > MOST_SIGNS:
        return counts
    return f"{counts} ({''.join('+' if sign > 0 else '-' for sign in signature.signs)})"


def facts(request: Request, solved: Solved) -> Iterator[tuple[str, str]]:
    """Names and texts of what is known about the answer beyond its runs."""
    fit, search = solved.fit, solved.search
    if fit is not None:
        yield "value", f"{solved.result.value:.8g}; the identity has {fit.identity_value:.8g}"
        yield "R^2", _r_squared(fit)
        if fit.identity_is_better:
            yield "note", "the identity fits better than this X"
    if solved.result.gap is not None:
        yield "gap", f"{solved.result.gap:.2g}; no X has a value below {solved.result.bound:.8g}"
    if search is not None:
        yield "component", _components(request, search, solved.signature)
    if request.problem == "eigen" and not request.direct:
        yield "note", "iterations give no eigenvalues; --method direct does"
    if request.problem == "quadratic" and {"C", "D"} & set(request.matrices):
        yield "note", "other starts may end lower"
    elif request.problem != "eigen" and solved.result.x.shape[1] < len(solved.result.x):
        yield "note", "X is thin: there was one start, and others may end lower"


def _r_squared(fit: Fit) -> str:
    if np.isnan(fit.r_squared):
        return "undefined, as all rows of TARGET are the same"
    squares = "1 - |SOURCE X - TARGET|^2 / |TARGET - column means|^2"
    return f"{fit.r_squared:.6g}; the identity has {fit.identity_r_squared:.6g} ({squares})"


def _components(request: Request, search: Search, signature: Signature) -> str:
    of_x = f"{short(search.best)}, {determinants(search.best, signature)}"
    if not request.everywhere:
        advice = "without --method and --start all are"
        return f"{of_x}; only this component was searched, {advice}"
    text = f"{of_x}; searched: {_listed(search.searched)}"
    if search.left_out:
        text += f"; a bound leaves out {_listed(search.left_out)}"
    if search.unknown:
        text += f"; not searched: {_listed(search.unknown)}"
    return text


def short(which: Component) -> str:
    """A component like (+,-), by the signs of det X[+,+] and det X[-,-]."""
    return f"({','.join('+' if sign > 0 else '-' for sign in which)})"


def determinants(which: Component, signature: Signature) -> str:
    """What the signs of a component mean; an empty block has no determinant."""
    blocks = (("X[+,+]", signature.p, which[0]), ("X[-,-]", signature.q, which[1]))
    return ", ".join(f"det {name} {'>' if sign > 0 else '<'} 0" for name, n, sign in blocks if n)


def _listed(found: tuple[Component, ...]) -> str:
    return " ".join(short(which) for which in found)


def eigenvalue_table(values: NDArray[np.floating], signature: Signature) -> Table:
    """The eigenvalues of positive and of negative type, side by side, each with its column of X."""
    title = "A x = lambda J x: eigenvalues by column of X"
    made = _table(title)
    kinds = {"positive": signature.positive, "negative": signature.negative}
    cells: list[list[str]] = []
    for kind, positions in kinds.items():
        sign = "+1" if kind == "positive" else "-1"
        made.add_column("column", justify="right", no_wrap=True)
        made.add_column(f"{len(positions)} with x^T J x = {sign}", justify="right", no_wrap=True)
        kept = _shortened(list(positions))
        cells.append(["..." if j is None else str(j + 1) for j in kept])
        cells.append(["" if j is None else f"{values[j]:.8g}" for j in kept])
    length = max(len(column) for column in cells)
    for row in range(length):
        made.add_row(*(column[row] if row < len(column) else "" for column in cells))
    return made


def _shortened(positions: list[int]) -> list[int | None]:
    """All positions, or the first and the last ones around a gap."""
    if len(positions) <= MOST_EIGENVALUES:
        return [*positions]
    half = MOST_EIGENVALUES // 2
    return [*positions[:half], None, *positions[-half:]]
