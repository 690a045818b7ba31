"""The figure of a family: medians over the seeds, and the band between the extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.records import Row
from jorth.bench.report.drawing import AXES, look, new_figure, png, positive
from jorth.bench.report.families import Family

Numbers = NDArray[np.float64]
ROOM = 1.2
"""Values are drawn up to this multiple of the first."""
DECADE = 10.0
"""Where the values span more than this factor the axis is logarithmic."""


def convergence(family: Family) -> bytes | None:
    """F against epochs and against seconds as PNG, or None where no run has two points.

    Lines are steps: between two records nothing is known to be better. A run that has ended keeps its last value. An
    open triangle at the end says that a run left for infinity.
    """
    runs = {
        name: [row for row in family.done(name) if len(_points(row, "time")[0]) > 1]
        for name in family.rows
    }
    runs = {name: rows for name, rows in runs.items() if rows}
    if not runs:
        return None
    figure = new_figure()
    lowest = np.inf
    for axes, axis in zip(figure.subplots(1, 2, sharey=True), ("gradients", "time"), strict=True):
        for name, rows in runs.items():
            lowest = min(lowest, _draw(axes, name, rows, axis))
        axes.set(xscale="log", xlabel=AXES[axis])
        axes.grid(alpha=0.3)
    first = max(row["start_value"] for rows in runs.values() for row in rows)
    left = figure.axes[0]
    left.set_ylabel("f(X)")
    if first > DECADE * lowest > 0:
        left.set(yscale="log", ylim=(lowest / 1.2, ROOM * first))
    else:
        left.set_ylim(lowest - 0.05 * (first - lowest), first + (ROOM - 1) * (first - lowest))
    figure.suptitle(
        f"{family.name}: the structural probe{_over(family)}", fontsize=10, parse_math=False
    )
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8
    )
    return png(figure)


def _over(family: Family) -> str:
    count = len(family.seeds)
    return "" if count == 1 else f", median and range of {count} seeds"


def _draw(axes: Any, name: str, rows: list[Row], axis: str) -> float:
    """The line and band of one method; the lowest value."""
    grid, values = on_grid(rows, axis)
    middle, line = np.median(values, axis=0), look(name)
    axes.step(grid, middle, where="post", label=name, **line)
    if len(rows) > 1:
        extremes = values.min(axis=0), values.max(axis=0)
        axes.fill_between(grid, *extremes, step="post", color=line["color"], alpha=0.1, linewidth=0)
    gone = any(row["status"] == "UNBOUNDED" for row in rows)
    mark = (
        {"marker": "^", "markersize": 7, "markerfacecolor": "white"}
        if gone
        else {"marker": "o", "markersize": 3}
    )
    axes.plot(grid[-1:], middle[-1:], color=line["color"], **mark)
    return float(values.min())


def on_grid(rows: list[Row], axis: str) -> tuple[Numbers, Numbers]:
    """All places (g,) at which a run was recorded, and the values (runs, g) there: of the last record, else f(X0)."""
    curves = [_points(row, axis) for row in rows]
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    values = []
    for row, (x, y) in zip(rows, curves, strict=True):
        at = np.searchsorted(x, grid, side="right") - 1
        values.append(np.where(at < 0, row["start_value"], y[at]))
    return grid, np.array(values)


def _points(row: Row, axis: str) -> tuple[Numbers, Numbers]:
    """The records of a run that have a value."""
    y = np.array(row["history"]["value"], dtype=float)
    known = np.isfinite(y)
    return positive(np.array(row["history"][axis], dtype=float)[known]), y[known]
