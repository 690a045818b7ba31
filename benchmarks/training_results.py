"""What the records of `training.py` say: best rates, losses at equal time, failures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from statistics import fmean, median, pstdev
from typing import Any, NamedTuple

from benchmarks.training_methods import DEFAULT_RATE, METHODS
from benchmarks.training_tasks import TASKS

Record = dict[str, Any]
OURS = "JOBCD"
OFF_THE_GROUP = 2.0**-12
"""u^(1/2) in float32: beyond, a residual is no rounding."""


class Best(NamedTuple):
    """The rate at which a method does best, and the mean loss there; infinite if all rates fail."""

    loss: float
    lr: float


def failure(record: Record) -> str | None:
    """Why a run does not count, if it does not."""
    if record["failed"] is not None:
        return str(record["failed"])
    if METHODS[record["method"]].feasible and not record["residual"] <= OFF_THE_GROUP:
        return f"it left the group: residual {record['residual']:.0e}"
    return None


def final(record: Record) -> float:
    return math.inf if failure(record) else float(record["loss"][-1])


def loss_at(record: Record, ms: float) -> float:
    """The loss after so much training: the logarithm is interpolated between scores.

    A run that has ended by then keeps its last loss.
    """
    times, losses = record["ms"], record["loss"]
    if failure(record):
        return math.inf
    after = bisect_right(times, ms)
    if after == len(times):
        return float(losses[-1])
    before, then = losses[after - 1], losses[after]
    if before is None or then is None:
        return math.inf
    share = (ms - times[after - 1]) / (times[after] - times[after - 1])
    return float(before * (then / before) ** share)


class Results:
    """The runs of all seeds that are complete, by task, method and rate."""

    def __init__(self, lines: list[Record]) -> None:
        records = [line for line in lines if "task" in line]
        count = Counter(record["seed"] for record in records)
        self.seeds = sorted(seed for seed in count if count[seed] == max(count.values()))
        self.runs: dict[tuple[str, str], dict[float, list[Record]]] = {}
        for record in sorted(records, key=lambda record: (record["seed"], record["lr"])):
            if record["seed"] in self.seeds:
                rates = self.runs.setdefault((record["task"], record["method"]), {})
                rates.setdefault(record["lr"], []).append(record)
        self.tasks = [task for task in TASKS if (task, OURS) in self.runs]
        self.feasible = [name for name, method in METHODS.items() if method.feasible]

    def default(self, task: str) -> list[Record]:
        return self.runs[task, OURS][DEFAULT_RATE]

    def best(self, task: str, method: str, score: Callable[[Record], float] = final) -> Best:
        rates = self.runs[task, method].items()
        return min(Best(fmean(map(score, records)), lr) for lr, records in rates)

    def best_feasible(self, task: str, score: Callable[[Record], float] = final) -> str:
        """The method with the least loss; JOBCD at its default rate is not among them."""
        return min(self.feasible, key=lambda name: self.best(task, name, score).loss)

    def failed(self, task: str, method: str) -> tuple[int, int]:
        """The number of runs that failed, and of all."""
        runs = [record for rate in self.runs[task, method].values() for record in rate]
        return sum(failure(record) is not None for record in runs), len(runs)

    @cached_property
    def milliseconds(self) -> dict[str, float]:
        """For each task how long JOBCD with its defaults takes."""
        return {
            task: median(record["ms"][-1] if record["ms"] else 0.0 for record in self.default(task))
            for task in self.tasks
        }

    def at(self, task: str, share: float) -> Callable[[Record], float]:
        """The loss of a record at a share of that time."""
        return lambda record: loss_at(record, share * self.milliseconds[task])


def tables(found: Results) -> str:
    """Final losses of each task at the best rates, and losses at equal time, as Markdown."""
    lines = []
    for task in found.tasks:
        least = found.best(task, found.best_feasible(task)).loss
        lines += ["", f"### {task}", "", *_head("method", "lr", "loss", "over the best", "failed")]
        lines.append(_row("JOBCD, default", found.default(task), DEFAULT_RATE, least, ""))
        for name in METHODS:
            lr = found.best(task, name).lr
            failed = " of ".join(map(str, found.failed(task, name)))
            lines.append(_row(name, found.runs[task, name][lr], lr, least, failed))
    seconds = [f"{task}, {found.milliseconds[task] / 1e3:.3g} s" for task in found.tasks]
    lines += ["", "### Equal time", "", *_head("method", *seconds)]
    for name in METHODS:
        best = [found.best(task, name, found.at(task, 1.0)) for task in found.tasks]
        lines.append(f"| {name} | {' | '.join(f'{b.loss:.3g} ({b.lr:g})' for b in best)} |")
    return "\n".join(lines)


def _head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


def _row(name: str, runs: list[Record], lr: float, least: float, failed: str) -> str:
    losses = [final(record) for record in runs]
    loss = fmean(losses)
    spread = pstdev(losses) if math.isfinite(loss) else math.inf
    cells = (name, f"{lr:g}", f"{loss:.3g} ± {spread:.1g}", f"{loss / least:.2f}", failed)
    return f"| {' | '.join(cells)} |"
