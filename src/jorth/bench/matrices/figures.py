"""The figures: convergence against time and gradients, and final values against theta."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jorth.bench.core.figures import (
    LINES,
    Numbers,
    handles_of,
    legend_below,
    line_style,
    log_axis,
    new_figure,
    png,
)
from jorth.bench.core.records import Row
from jorth.bench.matrices.groups import Group, has_diverged
from jorth.bench.matrices.paper import PAPER_METHODS
from jorth.bench.matrices.probe import SeededRuns

LABELS = {"time": "seconds", "gradients": "gradient evaluations (epochs)"}
"""The columns of a history that serve as x axes, and their labels."""
TITLES = {
    "race": "the race, unbounded below",
    "trace": "the well-posed problem",
    "procrustes": "noisy Procrustes",
}
RACE_TOP = 1e4  # a race is drawn up to this multiple of its starting value
PROBE_TOP = 1.2  # values of a probe are drawn up to this multiple of the first
LOG_RANGE = 10.0  # if the values of a probe span more than this factor, the axis is logarithmic
DEEPEST_GAP = 1e-13
MOST_CURVES = 9  # in one panel; more are drawn in two rows of panels, the best one in both
TRIANGLE = {"marker": "^", "markerfacecolor": "white"}  # the mark of a run that diverged


def convergence(group: Group) -> bytes | None:
    """-f of a race, or the relative gap, in two panels as PNG; None if no run has two points."""
    race = group.cell.problem == "race"
    curves = {
        name: _curve(row, race)
        for name, row in group.done.items()
        if len(row["history"]["time"]) > 1
    }
    if not curves:
        return None

    figure = _panels(("time", "gradients"), _rows_of_panels(curves, group.places), _draw_curve)
    for left in figure.axes[::2]:
        left.set_ylabel("−f(X), higher is further" if race else "relative gap")
        left.set_ylim(*_limits(group, curves, race))
    _finish(figure, f"{group.name}: {TITLES[group.cell.problem]}")
    return png(figure)


def probe_convergence(runs: SeededRuns) -> bytes | None:
    """f against epochs and seconds as PNG: the median and the range over the seeds.

    Curves are step functions, as nothing is known between two records. A run that has ended keeps
    its last value. An open triangle at the end marks a run that diverged. None if no run has two
    points.
    """
    drawn = {}
    for name in runs.rows:
        rows = [row for row in runs.rows.done(name) if len(_known_points(row, "time")[0]) > 1]
        if rows:
            drawn[name] = rows
    if not drawn:
        return None

    figure = _panels(("gradients", "time"), [drawn], _draw_band)
    lowest = min(float(on_grid(rows, axis)[1].min()) for rows in drawn.values() for axis in LABELS)
    first = max(row["start_value"] for rows in drawn.values() for row in rows)
    left = figure.axes[0]
    left.set_ylabel("f(X)")
    if first > LOG_RANGE * lowest > 0:
        left.set_ylim(lowest / 1.2, PROBE_TOP * first)
        log_axis(left, "y")
    else:
        span = first - lowest
        left.set_ylim(lowest - 0.05 * span, first + (PROBE_TOP - 1) * span)
    count = len(runs.rows.seeds)
    over = "" if count == 1 else f", median and range of {count} seeds"
    _finish(figure, f"{runs.name}: the structural probe{over}")
    return png(figure)


def against_theta(groups: list[Group]) -> bytes:
    """The values at the end of the budget, and the times to divergence, against theta.

    The groups are of one problem. Values beyond RACE_TOP times the first are drawn at the upper
    edge, each method at its own height.
    """
    top = RACE_TOP * max(-row["start_value"] for group in groups for row in group.done.values())
    figure = new_figure()
    ends, times = figure.subplots(1, 2)
    for name in LINES:
        runs = [
            (group.theta, row)
            for group in groups
            if (row := group.done.get(name)) and row["value"] is not None
        ]
        if runs and runs[0][1]["cell"]["theta"] is None:
            ends.axhline(min(-runs[0][1]["value"], top), label=name, **_plain_line(name))
        elif runs:
            top *= 1.8
            _draw_theta(ends, times, name, runs, top)
    for axes in (ends, times):
        axes.set(xscale="log", yscale="log", xlabel="θ, in units of the curvature of f")
        axes.grid(alpha=0.3)
    if not times.lines:
        middle = {"ha": "center", "va": "center", "transform": times.transAxes}
        times.text(0.5, 0.5, "no run was unbounded", **middle)
    ends.set_ylabel("−f(X) at the end (△: unbounded)")
    times.set(ylabel="seconds until unbounded", xlim=ends.get_xlim())
    _finish(figure, f"{groups[0].name}: the race, {groups[0].budget} per run")
    return png(figure)


def on_grid(rows: list[Row], axis: str) -> tuple[Numbers, Numbers]:
    """All x (g,) at which a run was recorded, and the values (runs, g) of all runs there.

    The value of a run is that of its last record up to x, or f(X0).
    """
    curves = [_known_points(row, axis) for row in rows]
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    values = []
    for row, (x, y) in zip(rows, curves, strict=True):
        at = np.searchsorted(x, grid, side="right") - 1
        values.append(np.where(at < 0, row["start_value"], y[at]))
    return grid, np.array(values)


def _panels(
    columns: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    draw: Callable[[Any, str, Any, str], None],
) -> Any:
    """Panels with a common y axis: a column for each column of a history, a row for some methods.

    ``draw`` gets a panel, the name of a method, what is known of it, and the column.
    """
    figure = new_figure(height=3.9 if len(rows) == 1 else 6.8)
    panels = figure.subplots(len(rows), 2, sharey=True, sharex="col", squeeze=False)
    for methods, line in zip(rows, panels, strict=True):
        for panel, column in zip(line, columns, strict=True):
            for name, known in methods.items():
                draw(panel, name, known, column)
            panel.set_xscale("log")
            panel.grid(alpha=0.3)
    for panel, column in zip(panels[-1], columns, strict=True):
        panel.set_xlabel(LABELS[column])
    return figure


def _rows_of_panels(curves: dict[str, Any], places: Mapping[str, int]) -> list[dict[str, Any]]:
    """The curves of each row of panels: the paper's methods and the others if they are many."""
    if len(curves) <= MOST_CURVES:
        return [curves]
    best = [name for name in curves if places.get(name) == 1][:1]
    papers = {name: curves[name] for name in curves if name in PAPER_METHODS or name in best}
    others = {name: curves[name] for name in curves if name not in PAPER_METHODS or name in best}
    return [papers, others]


def _finish(figure: Any, title: str) -> None:
    """Set the title, the ticks of logarithmic axes, and the legend."""
    figure.suptitle(title, fontsize=10, parse_math=False)
    for panel in figure.axes:
        log_axis(panel, "x")
        if panel.get_yscale() == "log":
            log_axis(panel, "y")
    legend_below(figure, handles_of(figure.axes))


def _plain_line(name: str, width: float = 1.6) -> dict[str, Any]:
    """The line of a method without its markers."""
    return line_style(name, width) | {"marker": "", "markevery": None}


def _draw_curve(axes: Any, name: str, columns: dict[str, Numbers], axis: str) -> None:
    """A step function, as nothing is known between two records; a dot marks its end."""
    x = _positive(columns[axis])
    line = line_style(name)
    axes.step(x, columns["y"], where="post", label=name, **line)
    axes.plot(x[-1:], columns["y"][-1:], "o", color=line["color"], markersize=3)
    axes.set(yscale="log")


def _draw_band(axes: Any, name: str, rows: list[Row], axis: str) -> None:
    grid, values = on_grid(rows, axis)
    middle = np.median(values, axis=0)
    line = line_style(name)
    colour = line["color"]
    axes.step(grid, middle, where="post", label=name, **line)
    if len(rows) > 1:
        extremes = values.min(axis=0), values.max(axis=0)
        axes.fill_between(grid, *extremes, step="post", color=colour, alpha=0.1, linewidth=0)
    diverged = any(row["status"] == "UNBOUNDED" for row in rows)
    mark = {"markersize": 7, **TRIANGLE} if diverged else {"marker": "o", "markersize": 3}
    axes.plot(grid[-1:], middle[-1:], color=colour, **mark)


def _draw_theta(
    ends: Any, times: Any, name: str, runs: list[tuple[float | None, Row]], top: float
) -> None:
    """Draw one method in both panels; open triangles are runs that diverged."""
    line = _plain_line(name)
    triangle = {"markersize": 8, **TRIANGLE}
    points = [(theta, min(-row["value"], top), has_diverged(row)) for theta, row in runs]
    ends.plot([p[0] for p in points], [p[1] for p in points], label=name, **line)
    for theta, value, diverged in points:
        mark = triangle if diverged else {"marker": "o"}
        ends.plot(theta, value, color=line["color"], **mark)
    diverged_at = [(theta, row["time"]) for theta, row in runs if has_diverged(row)]
    if diverged_at:
        times.plot(*zip(*diverged_at, strict=True), **line | triangle)


def _curve(row: Row, race: bool) -> dict[str, Numbers]:
    history = {name: np.array(column, dtype=float) for name, column in row["history"].items()}
    y = -history["value"] if race else np.maximum(history["gap"], DEEPEST_GAP / 10)
    shown = np.isfinite(y) & (y > 0)
    return {"time": history["time"][shown], "gradients": history["gradients"][shown], "y": y[shown]}


def _known_points(row: Row, axis: str) -> tuple[Numbers, Numbers]:
    """The records of a run that have a value."""
    y = np.array(row["history"]["value"], dtype=float)
    known = np.isfinite(y)
    return _positive(np.array(row["history"][axis], dtype=float)[known]), y[known]


def _positive(x: Numbers) -> Numbers:
    """x for a logarithmic axis: zeros become a third of the first positive number."""
    later = x[x > 0]
    return np.maximum(x, later[0] / 3 if len(later) else 1e-6)


def _limits(group: Group, curves: dict[str, dict[str, Numbers]], race: bool) -> tuple[float, float]:
    drawn = [columns["y"] for columns in curves.values() if len(columns["y"])]
    if not race:
        lowest = min((float(y.min()) for y in drawn), default=DEEPEST_GAP)
        return max(lowest / 5, DEEPEST_GAP / 2), 3.0
    first = -next(iter(group.done.values()))["start_value"]
    top = max(float(y.max()) for y in drawn)
    return first / 1.5, min(2.0 * top, RACE_TOP * first)
