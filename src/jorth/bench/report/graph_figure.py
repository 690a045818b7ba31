"""The figure of the knowledge graphs: loss, MRR and Hits against epochs and time, median and range of the seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.records import Row
from jorth.bench.report.drawing import look, new_figure, png
from jorth.bench.report.graph_runs import GraphRuns

Numbers = NDArray[np.float64]
ROWS = (("loss", "training loss"), ("mrr", "MRR, held out"), ("hits@10", "Hits@10, held out"))
AXES = (("passes", "epochs"), ("time", "seconds"))
POINTS = 120
"""Places at which the curves of the seeds are compared."""


def curves(found: list[GraphRuns]) -> bytes | None:
    """Two columns a graph as PNG; None where no test has a result."""
    drawn = [runs for runs in found if any(runs.done(name) for name in runs.tests)]
    if not drawn:
        return None
    figure = new_figure(2 * 3.4 * len(drawn), 7.6)
    axes = figure.subplots(
        len(ROWS), 2 * len(drawn), squeeze=False, sharey="row" if len(drawn) == 1 else False
    )
    for number, runs in enumerate(drawn):
        for (column, label), place in zip(AXES, axes.T[2 * number : 2 * number + 2], strict=True):
            for (name, title), panel in zip(ROWS, place, strict=True):
                _panel(panel, runs, column, name)
                panel.set_ylabel(title if column == "passes" else "")
            heading = runs.name if column == "passes" else "the same against time"
            place[0].set_title(heading, fontsize=9, parse_math=False)
            place[-1].set_xlabel(label)
    handles = {
        label: handle for panel in axes.flat for handle, label in zip(*_legend(panel), strict=True)
    }
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=3, fontsize=9
    )
    return png(figure)


def _legend(panel: Any) -> tuple[list[Any], list[str]]:
    handles, labels = panel.get_legend_handles_labels()
    return handles, labels


def _panel(panel: Any, runs: GraphRuns, column: str, name: str) -> None:
    for method in runs.tests:
        rows = runs.done(method)
        if not rows:
            continue
        grid, values = on_grid(rows, column, name)
        line = look(method)
        panel.plot(grid, np.median(values, axis=0), label=method, **line)
        if len(rows) > 1:
            band = values.min(axis=0), values.max(axis=0)
            panel.fill_between(grid, *band, color=line["color"], alpha=0.12, linewidth=0)
    if name == "loss":
        panel.set_yscale("log")
    panel.grid(alpha=0.3)
    panel.tick_params(labelsize=8)


def on_grid(rows: list[Row], column: str, name: str) -> tuple[Numbers, Numbers]:
    """Places (g,) that all runs reach, and the figure (runs, g) there, between two records on a straight line."""
    lines = [_points(row, column, name) for row in rows]
    grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), POINTS)
    return grid, np.array([np.interp(grid, x, y) for x, y in lines])


def _points(row: Row, column: str, name: str) -> tuple[Numbers, Numbers]:
    y = np.array(row["history"][name], dtype=float)  # null where there was no evaluation
    known = np.isfinite(y)
    return np.array(row["history"][column], dtype=float)[known], y[known]
