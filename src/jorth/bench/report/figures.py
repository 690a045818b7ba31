"""The figures: convergence against time and gradients, and races against theta."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.bench.records import Row, cell_of
from jorth.bench.report.groups import Group, is_away

# Okabe and Ito's colours, and a line style that tells the methods apart without them
LOOKS: dict[str, tuple[str, Any]] = {
    "UMCM": ("#56B4E9", ":"),
    "ADMM": ("#CC79A7", "-."),
    "CSDM": ("#E69F00", "--"),
    "GS-JOBCD": ("#0072B2", "-"),
    "J-JOBCD": ("#D55E00", "-"),
    "CSDM+GS-JOBCD": ("#009E73", (0, (5, 1, 1, 1, 1, 1))),
    "GS-JOBCD right": ("#0072B2", (0, (1, 1))),
    "J-JOBCD right": ("#D55E00", (0, (1, 1))),
    "VR-J-JOBCD": ("#D55E00", "--"),
    "exponential": ("#E69F00", ":"),
    "Riemannian SD": ("#000000", ":"),
    "Riemannian CG": ("#000000", "--"),
    "Riemannian L-BFGS": ("#000000", "-"),
}
ROOM = 1e4
"""A race is drawn up to this multiple of its starting value."""
DEEPEST = 1e-13
DOTS_PER_INCH = 100


def convergence(group: Group) -> bytes | None:
    """Two panels as PNG, or None where no run has two points: -f of a race, the relative gap of all others."""
    race = group.cell.problem == "race"
    curves = {name: _curve(row, race) for name, row in group.done.items() if len(row["history"]["time"]) > 1}
    if not curves:
        return None
    figure = _figure(8.6, 3.9)
    for axes, (axis, label) in zip(figure.subplots(1, 2, sharey=True), _AXES.items(), strict=True):
        for name, columns in curves.items():
            x, look = _positive(columns[axis]), _look(name)
            # steps: between two records nothing is known to be better
            axes.step(x, columns["y"], where="post", label=name, **look)
            axes.plot(x[-1:], columns["y"][-1:], "o", color=look["color"], markersize=3)
        axes.set(xscale="log", yscale="log", xlabel=label)
        axes.grid(alpha=0.3)
    left = figure.axes[0]
    left.set_ylabel("−f(X), higher is further" if race else "relative gap")
    left.set_ylim(*_limits(group, curves, race))
    figure.suptitle(f"{group.name}: {_TITLES[group.cell.problem]}", fontsize=10)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return _png(figure)


_AXES = {"time": "seconds", "gradients": "gradient evaluations (epochs)"}
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
    figure = _figure(8.6, 3.9)
    ends, times = figure.subplots(1, 2)
    for name in LOOKS:
        runs = [(group.theta, row) for group in groups if (row := group.done.get(name)) and row["value"] is not None]
        if runs and cell_of(runs[0][1]).theta is None:
            ends.axhline(min(-runs[0][1]["value"], top), label=name, **_look(name, 1.2))
        elif runs:
            top *= 1.8
            _draw_theta(ends, times, name, runs, top)
    for axes in (ends, times):
        axes.set(xscale="log", yscale="log", xlabel="θ, in units of the curvature of f")
        axes.grid(alpha=0.3)
    ends.set_ylabel("−f(X) when the run ended (△: unbounded)")
    times.set(ylabel="seconds until the run was unbounded", xlim=ends.get_xlim())
    figure.suptitle(f"{groups[0].name}: the race, {groups[0].budget} a run", fontsize=10)
    figure.legend(*ends.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return _png(figure)


def _draw_theta(ends: Any, times: Any, name: str, runs: list[tuple[float | None, Row]], top: float) -> None:
    """The line of one method in both panels; open triangles are runs that are away."""
    look, triangle = _look(name), {"marker": "^", "markersize": 8, "markerfacecolor": "white"}
    thetas, values = [theta for theta, _ in runs], [min(-row["value"], top) for _, row in runs]
    ends.plot(thetas, values, label=name, **look)
    for theta, value, (_, row) in zip(thetas, values, runs, strict=True):
        ends.plot(theta, value, color=look["color"], **(triangle if is_away(row) else {"marker": "o"}))
    gone = [(theta, row["time"]) for theta, row in runs if is_away(row)]
    if gone:
        times.plot(*zip(*gone, strict=True), **triangle, **look)


def _look(name: str, width: float = 1.6) -> dict[str, Any]:
    colour, style = LOOKS[name]
    return {"color": colour, "linestyle": style, "linewidth": width}


def _curve(row: Row, race: bool) -> dict[str, NDArray[np.float64]]:
    history = {name: np.array([np.nan if x is None else x for x in row["history"][name]]) for name in row["history"]}
    y = -history["value"] if race else np.maximum(history["gap"], DEEPEST / 10)
    shown = np.isfinite(y) & (y > 0)
    return {"time": history["time"][shown], "gradients": history["gradients"][shown], "y": y[shown]}


def _limits(group: Group, curves: dict[str, dict[str, NDArray[np.float64]]], race: bool) -> tuple[float, float]:
    if not race:
        return DEEPEST / 2, 3.0
    first = -next(iter(group.done.values()))["start_value"]
    top = max(float(columns["y"].max()) for columns in curves.values() if len(columns["y"]))
    return first / 1.5, min(2.0 * top, ROOM * first)


def _positive(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """For a logarithmic axis: a zero at the start becomes a third of what follows."""
    later = x[x > 0]
    return np.maximum(x, later[0] / 3 if len(later) else 1e-6)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _png(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
