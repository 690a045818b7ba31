"""The figure: how many times faster than the best outside peer, by size."""

from __future__ import annotations

from typing import Any

from jorth.bench.report.drawing import new_figure, png
from jorth.bench.scoring import GAPS
from jorth.bench.speed.cells import OURS
from jorth.bench.speed.table import Entry, goal

LOOKS: dict[str, tuple[str, Any]] = {
    "GS-JOBCD": ("#0072B2", "--"),
    "J-JOBCD": ("#D55E00", "--"),
    "GS-JOBCD + L-BFGS": ("#009E73", "-"),
    "GS-JOBCD + L-BFGS, data start": ("#009E73", "-."),
    "Riemannian L-BFGS": ("#000000", "-"),
    "Riemannian L-BFGS, data start": ("#000000", "-."),
    "UMCM": ("#56B4E9", ":"),
}


def picture(found: list[Entry]) -> bytes | None:
    """A panel for each number of threads, share of plus signs and condition, as PNG; None without a ratio."""
    panels: dict[tuple[int, float, float], list[Entry]] = {}
    for entry in found:
        if any(entry.ratio(name, min(GAPS)) for name in OURS):
            cell = entry.cell
            panels.setdefault((cell.threads, cell.share, cell.condition), []).append(entry)
    if not panels:
        return None
    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(max(4.5, 2.9 * columns), 3.1 * rows + 0.6)
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, (key, entries) in zip(axes, sorted(panels.items()), strict=False):
        _panel(axis, key, entries)
    for axis in axes[len(panels) :]:
        axis.axis("off")
    for axis in axes[::columns]:
        axis.set_ylabel(f"best outside peer's time over ours\nto a gap of {min(GAPS):.0e}")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8
    )
    return png(figure)


def _panel(axis: Any, key: tuple[int, float, float], entries: list[Entry]) -> None:
    threads, share, condition = key
    sizes = [entry.cell.n for entry in entries]
    for name, (colour, style) in LOOKS.items():
        found = [(entry.cell.n, entry.ratio(name, min(GAPS))) for entry in entries]
        known = [(n, ratio) for n, ratio in found if ratio is not None]
        axis.plot(
            [n for n, _ in known], [r.value for _, r in known], color=colour, linestyle=style, marker="o", ms=4,
            label=name,
        )  # fmt: skip
        bounds = [(n, ratio.value) for n, ratio in known if ratio.bound]
        axis.plot(
            [n for n, _ in bounds],
            [v for _, v in bounds],
            "^",
            color=colour,
            ms=9,
            fillstyle="none",
        )
    axis.axhline(1.0, color="#888888", linewidth=0.8)
    goals = [(n, aim) for n in sizes if (aim := goal(n)) is not None]
    axis.plot(
        [n for n, _ in goals],
        [aim for _, aim in goals],
        "_",
        color="#CC79A7",
        ms=14,
        mew=2,
        label="goal",
    )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks(sizes, [str(n) for n in sizes])
    axis.minorticks_off()
    axis.set_title(f"p = {share:g} n, condition {condition:g}, {threads} thread(s)", fontsize=9)
    axis.set_xlabel("n")
    axis.grid(alpha=0.3)
