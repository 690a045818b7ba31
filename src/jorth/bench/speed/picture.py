"""The picture: gap against time, for our methods and the peers, at a small and a large size."""

from __future__ import annotations

from typing import Any

import numpy as np

from jorth.bench.core.figures import LINES, Numbers, log_axis, new_figure, png
from jorth.bench.core.records import Row
from jorth.bench.speed.methods import GROUPS, LBFGS, NEWTON
from jorth.bench.speed.table import Entry, threads_text

SIZES = (50, 500)
"""The sizes that are shown where they were run, else the smallest and the largest."""
CURVES = {
    # label: the methods of which the fastest is shown, colour, style; other libraries are dashed
    "plain JOBCD": (GROUPS["plain"], LINES["GS-JOBCD"][0], "-"),
    "accelerated JOBCD": (GROUPS["accelerated"], LINES["accelerated J-JOBCD"][0], "-"),
    "L-BFGS": ((LBFGS,), LINES["Riemannian L-BFGS"][0], "-"),
    "Newton": ((NEWTON,), LINES["Riemannian Newton"][0], "-"),
    "pymanopt CG": (("pymanopt CG",), "#6F6F00", "--"),
    "pymanopt TR": (("pymanopt TR",), "#6A3D9A", "--"),
}
LEVELS = (5e-2, 6e-3, 6e-4, 4e-5, 3e-6, 2e-7)
"""The gaps at which the curves carry their names."""
FALLING = 0.3  # panels begin shortly before the first curve falls below this
LOWEST = 1e-8
"""Panels end here: the gap to which all runs go."""


def picture(found: list[Entry]) -> bytes | None:
    """A panel for each of two sizes and each condition, as PNG; None without a curve."""
    panels = _panels(found)
    if not panels:
        return None
    sizes = sorted({entry.cell.n for entry in panels})
    conditions = sorted({entry.cell.condition for entry in panels})
    figure = new_figure(5.0 * len(conditions), 3.3 * len(sizes))
    axes = figure.subplots(len(sizes), len(conditions), squeeze=False)
    for axis in axes.ravel():
        axis.axis("off")
    for entry in panels:
        cell = entry.cell
        axis = axes[sizes.index(cell.n), conditions.index(cell.condition)]
        axis.axis("on")
        _panel(axis, entry)
        axis.set_title(f"n = {cell.n}, condition {cell.condition:g}", fontsize=10)
    for axis in axes[:, 0]:
        axis.set_ylabel("relative gap")
    for axis in axes[-1]:
        axis.set_xlabel("seconds, " + threads_text(panels[0].cell.threads))
    return png(figure)


def _panels(found: list[Entry]) -> list[Entry]:
    """Procrustes on the fewest threads and with one share of plus signs."""
    curved = [entry for entry in found if entry.cell.task == "procrustes" and _lines(entry)]
    curved = [entry for entry in curved if entry.clock == "reached"]
    if not curved:
        return []
    present = {entry.cell.n for entry in curved}
    sizes = set(SIZES) & present or {min(present), max(present)}
    threads = min(entry.cell.threads for entry in curved)
    share = min(entry.cell.share for entry in curved)
    chosen = [e for e in curved if e.cell.n in sizes and e.cell.threads == threads]
    return [entry for entry in chosen if entry.cell.share == share]


def _lines(entry: Entry) -> dict[str, Row]:
    """The row of each curve: the first seed of the fastest method of its group."""
    found = {}
    for label, (names, _, _) in CURVES.items():
        present = [name for name in names if _first(entry, name)]
        if present:
            best = min(present, key=lambda name: [entry.seconds(name, g) for g in (1e-8, 1e-4)])
            found[label] = _first(entry, best)
    return {label: row for label, row in found.items() if row is not None}


def _first(entry: Entry, name: str) -> Row | None:
    rows = [row for row in entry.rows.done(name) if len(row.get("curve", {}).get("time", [])) > 1]
    return min(rows, key=lambda row: row["cell"]["seed"]) if rows else None


def _panel(axis: Any, entry: Entry) -> None:
    lines = []
    for label, row in _lines(entry).items():
        times, gaps = (np.array(row["curve"][part], dtype=float) for part in ("time", "gap"))
        positive = times > 0  # the axis is logarithmic
        times, gaps = times[positive], gaps[positive].clip(LOWEST, None)
        _, colour, style = CURVES[label]
        axis.plot(times, gaps, color=colour, linestyle=style, linewidth=2.0)
        lines.append((label, times, gaps))
    axis.set_xscale("log")
    axis.set_ylim(LOWEST, 1.5)
    axis.set_xlim(left=min((_time_at(FALLING, *curve) for _, *curve in lines)) / 1.5)
    log_axis(axis, "x")
    log_axis(axis, "y")
    axis.grid(alpha=0.25)
    _label(axis, lines)


def _label(axis: Any, lines: list[tuple[str, Numbers, Numbers]]) -> None:
    """Write every name on its curve, the faster the lower, so that no two names meet."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    last_first = sorted(lines, key=lambda line: (-line[2][-1], -line[1][-1]))
    for level, (label, times, gaps) in zip(LEVELS, last_first, strict=False):
        height = max(level, gaps[-1])  # of the end, where a run fell short
        side = "center" if height == level else "right"
        style = dict(color=CURVES[label][1], fontsize=9, fontweight="bold", ha=side, va="center")
        axis.text(_time_at(height, times, gaps), height, label, bbox=box, **style)


def _time_at(height: float, times: Numbers, gaps: Numbers) -> float:
    """When a curve passes a gap, between two records on a straight line of the picture."""
    return float(np.exp(np.interp(-np.log(height), -np.log(gaps), np.log(times))))
