"""The figures: convergence against time and gradients, and races against theta."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.records import Row, cell_of
from jorth.bench.report.drawing import AXES, LOOKS, look, new_figure, png, positive
from jorth.bench.report.groups import Group, is_away

ROOM = 1e4
"""A race is drawn up to this multiple of its starting value."""
DEEPEST = 1e-13


def convergence(group: Group) -> bytes | None:
    """Two panels as PNG, or None where no run has two points: -f of a race, the relative gap of all others."""
    race = group.cell.problem == "race"
    curves = {
        name: _curve(row, race)
        for name, row in group.done.items()
        if len(row["history"]["time"]) > 1
    }
    if not curves:
        return None
    figure = new_figure()
    for axes, (axis, label) in zip(figure.subplots(1, 2, sharey=True), AXES.items(), strict=True):
        for name, columns in curves.items():
            x, line = positive(columns[axis]), look(name)
            # steps: between two records nothing is known to be better
            axes.step(x, columns["y"], where="post", label=name, **line)
            axes.plot(x[-1:], columns["y"][-1:], "o", color=line["color"], markersize=3)
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.grid(alpha=0.3)
    left = figure.axes[0]
    left.set_ylabel("−f(X), higher is further" if race else "relative gap")
    left.set_ylim(*_limits(group, curves, race))
    figure.suptitle(f"{group.name}: {_TITLES[group.cell.problem]}", fontsize=10, parse_math=False)
    figure.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8
    )
    return png(figure)


_TITLES = {
    "race": "the race, unbounded below",
    "trace": "the well-posed problem",
    "procrustes": "noisy Procrustes",
}


def against_theta(groups: list[Group]) -> bytes:
    """Where the methods stood at the end of the budget, and how soon they left for infinity, against theta.

    The groups are of one problem. Values beyond ROOM times the first are drawn above it, one height a method.
    """
    top = ROOM * max(-row["start_value"] for group in groups for row in group.done.values())
    figure = new_figure()
    ends, times = figure.subplots(1, 2)
    for name in LOOKS:
        runs = [
            (group.theta, row)
            for group in groups
            if (row := group.done.get(name)) and row["value"] is not None
        ]
        if runs and cell_of(runs[0][1]).theta is None:
            ends.axhline(min(-runs[0][1]["value"], top), label=name, **look(name, 1.2))
        elif runs:
            top *= 1.8
            _draw_theta(ends, times, name, runs, top)
    for axes in (ends, times):
        axes.set(xscale="log", yscale="log", xlabel="θ, in units of the curvature of f")
        axes.grid(alpha=0.3)
    ends.set_ylabel("−f(X) when the run ended (△: unbounded)")
    times.set(ylabel="seconds until the run was unbounded", xlim=ends.get_xlim())
    figure.suptitle(
        f"{groups[0].name}: the race, {groups[0].budget} a run", fontsize=10, parse_math=False
    )
    figure.legend(
        *ends.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return png(figure)


def _draw_theta(
    ends: Any, times: Any, name: str, runs: list[tuple[float | None, Row]], top: float
) -> None:
    """The line of one method in both panels; open triangles are runs that are away."""
    line, triangle = look(name), {"marker": "^", "markersize": 8, "markerfacecolor": "white"}
    thetas, values = [theta for theta, _ in runs], [min(-row["value"], top) for _, row in runs]
    ends.plot(thetas, values, label=name, **line)
    for theta, value, (_, row) in zip(thetas, values, runs, strict=True):
        ends.plot(
            theta, value, color=line["color"], **(triangle if is_away(row) else {"marker": "o"})
        )
    gone = [(theta, row["time"]) for theta, row in runs if is_away(row)]
    if gone:
        times.plot(*zip(*gone, strict=True), **triangle, **line)


def _curve(row: Row, race: bool) -> dict[str, NDArray[np.float64]]:
    history = {
        name: np.array([np.nan if x is None else x for x in row["history"][name]])
        for name in row["history"]
    }
    y = -history["value"] if race else np.maximum(history["gap"], DEEPEST / 10)
    shown = np.isfinite(y) & (y > 0)
    return {"time": history["time"][shown], "gradients": history["gradients"][shown], "y": y[shown]}


def _limits(
    group: Group, curves: dict[str, dict[str, NDArray[np.float64]]], race: bool
) -> tuple[float, float]:
    if not race:
        return DEEPEST / 2, 3.0
    first = -next(iter(group.done.values()))["start_value"]
    top = max(float(columns["y"].max()) for columns in curves.values() if len(columns["y"]))
    return first / 1.5, min(2.0 * top, ROOM * first)
