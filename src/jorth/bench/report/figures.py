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
            colour, style = LOOKS[name]
            x = _positive(columns[axis])
            # steps: between two records nothing is known to be better
            axes.step(x, columns["y"], where="post", color=colour, linestyle=style, linewidth=1.6, label=name)
            axes.plot(x[-1:], columns["y"][-1:], "o", color=colour, markersize=3)
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
    """-f at the end of the budget against theta, for the groups of one problem."""
    figure = _figure(6.4, 3.9)
    axes = figure.subplots()
    for name in LOOKS:
        found = sorted(
            (group.theta, -row["value"], is_away(row))
            for group in groups
            if group.theta is not None and (row := group.done.get(name)) and row["value"] is not None
        )
        if not found:
            continue
        colour, style = LOOKS[name]
        thetas, values, away = (np.array(column) for column in zip(*found, strict=True))
        if cell_of(groups[0].rows[name]).theta is None:
            axes.axhline(values[0], color=colour, linestyle=style, linewidth=1.2, label=f"{name} (no θ)")
            continue
        axes.loglog(thetas, values, color=colour, linestyle=style, linewidth=1.6, label=name)
        axes.plot(thetas[~away], values[~away], "o", color=colour, markersize=5)
        axes.plot(thetas[away], values[away], "^", color=colour, markersize=8, markerfacecolor="white")
    axes.set(xscale="log", yscale="log", xlabel="θ, in units of the curvature of f", ylabel="−f(X) when the run ended")
    axes.set_title(f"{groups[0].name}: {groups[0].budget} a run (△: unbounded)", fontsize=10)
    axes.grid(alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    return _png(figure)


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
