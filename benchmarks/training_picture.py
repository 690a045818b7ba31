"""The picture of docs/results/training.md: a column per task, loss against steps and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.training_methods import DEFAULT_RATE, METHODS
from benchmarks.training_results import OURS, Record, Results

SMALL = {"font.size": 7, "axes.linewidth": 0.6, "xtick.labelsize": 6, "ytick.labelsize": 6}


def draw(found: Results, path: Path) -> None:
    """Lines are means over the seeds, at the best rate of each method."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SMALL):
        figure = Figure(figsize=(10, 5), layout="constrained")
        panels = figure.subplots(2, len(found.tasks), sharey="col", squeeze=False)
        for task, column in zip(found.tasks, panels.T, strict=True):
            _column(found, task, column)
        panels[0][0].set_ylabel("loss")
        panels[1][0].set_ylabel("loss")
        legend = panels[0][0].get_legend_handles_labels()
        figure.legend(*legend, loc="outside lower center", ncols=5, frameon=False)
        figure.savefig(path, dpi=160)


def lines(found: Results, task: str) -> Iterator[tuple[str, list[Record], dict[str, Any]]]:
    """The name, the runs and the look of every line; JOBCD with its defaults is on top."""
    for name, method in METHODS.items():
        colour, style = method.line
        best = found.best(task, name)
        look = dict(color=colour, linestyle=style, linewidth=0.9)
        if name == OURS:
            look |= dict(linestyle="-.")
        runs = found.runs[task, name][best.lr] if math.isfinite(best.loss) else []
        yield (f"{name}, best rate" if name == OURS else name), runs, look
    look = dict(color=METHODS[OURS].line[0], linewidth=2.4, zorder=5)
    yield f"{OURS}, default (lr = {DEFAULT_RATE:g})", found.default(task), look


def _column(found: Results, task: str, column: Any) -> None:
    above, below = column
    feasible = []
    for name, runs, look in lines(found, task):
        runs = [run for run in runs if run["failed"] is None]
        seconds = [ms / 1e3 for ms in _means(runs, "ms")]
        losses = _means(runs, "loss")
        above.plot(_means(runs, "steps")[1:], losses[1:], label=name, **look)
        below.plot(seconds[1:], losses[1:], **look)
        if losses and (name not in METHODS or METHODS[name].feasible):
            feasible.append((seconds, losses))
    above.set(title=task, xlabel="steps", xscale="log", yscale="log")
    below.set(xlabel="seconds", xscale="log", yscale="log")
    if feasible:
        lowest = min(min(losses) for _, losses in feasible)
        below.set(ylim=(lowest / 1.3, 1.5 * max(losses[0] for _, losses in feasible)))
        below.set(xlim=(min(seconds[1] for seconds, _ in feasible) / 1.3, None))
    for axes in column:
        axes.grid(alpha=0.25, linewidth=0.5)
        _plain_numbers(axes)


def _plain_numbers(axes: Any) -> None:
    """0.2, 0.5, 1 instead of powers of ten, and more of them where there are few decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 50 else (1,)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _means(runs: list[Record], name: str) -> list[float]:
    """The mean over the runs at each point; NaN where a loss was not finite."""
    columns = zip(*(run[name] for run in runs), strict=True)
    return [fmean(math.nan if value is None else value for value in column) for column in columns]
