"""The grid of runs, and which of them are left out because of earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from jorth.bench.core.cells import GAPS, Cell, plus_signs
from jorth.bench.core.records import Row
from jorth.bench.core.words import counted
from jorth.bench.speed.methods import CDOPT, GROUPS, SPEED_METHODS, UMCM, methods_for

SIZES: dict[str, Sequence[int]] = {
    "procrustes": (4, 8, 16, 32, 50, 100, 200, 500, 1000),
    "trace": (8, 32, 100, 200),
    "robust": (8, 32, 100),
    "batch": (4, 16),
}
"""The sizes of X for each task."""
TASKS = tuple(SIZES)
SMALL = 32
"""Up to this size whole calls are timed as well, from the data to the result."""
BATCH = 1000  # problems of a batch
BETAS = (0.1, 1.0, 10.0, 100.0)
"""The penalties of cdopt that are tried on the first seed of every problem up to n = 200."""
BUDGETS = {32: 1.0, 50: 2.0, 100: 3.0, 200: 5.0, 500: 20.0, 1000: 40.0}
"""Seconds per run up to each size; larger sizes have the last one."""
ONE_SEED = 500  # from this size on only the first seed is run
SHORT_GAP = 1e-4
"""From ONE_SEED on, a method that has not reached this gap is left out at the next size."""
SLOW_FROM = dict.fromkeys(GROUPS["plain"], ONE_SEED) | {UMCM: 0, CDOPT: 201}
"""The sizes from which a method cannot be the fastest, by all that was measured."""


@dataclass(frozen=True, kw_only=True)
class SpeedCell(Cell):
    """One timed run; the seed is used for the problem and the method."""

    problem: str = "speed"
    task: str = "procrustes"  # what is minimised: one of TASKS
    n: int  # the size of X
    p: int  # plus signs
    condition: float  # condition number of the source
    threads: int
    beta: float | None = None  # the penalty of cdopt
    max_time: float  # seconds of solving

    @property
    def share(self) -> float:
        """p / n, rounded so that it is the same at all sizes."""
        return round(self.p / self.n, 1)

    @property
    def size(self) -> str:
        threads = counted(self.threads, "thread")
        return f"{self.task}({self.n}-{self.p}) condition {self.condition:g}, {threads}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the grid crosses."""

    tasks: Sequence[str] = TASKS
    sizes: Sequence[int] | None = None  # None takes SIZES
    shares: Sequence[float] = (0.5, 0.9)  # p / n
    conditions: Sequence[float] = (3.0, 30.0)  # of the source
    threads: Sequence[int] = (1, 2)
    seeds: Sequence[int] = (0, 1, 2)  # only the first from ONE_SEED on
    methods: Sequence[str] = SPEED_METHODS
    max_time: float | None = None  # seconds per run; None takes BUDGETS
    betas: Sequence[float] = BETAS  # penalties of cdopt
    short: bool = False  # leave out what cannot be the fastest

    def cells(self) -> list[SpeedCell]:
        """All runs in ascending size; the methods of one problem and seed are adjacent."""
        found: list[SpeedCell] = []
        for base in self._problems():
            for seed in self.seeds if base.n < ONE_SEED else self.seeds[:1]:
                for method in self._methods(base.task, base.n):
                    betas = self.betas if method == CDOPT else (None,)
                    found += [replace(base, method=method, seed=seed, beta=beta) for beta in betas]
        return list(dict.fromkeys(found))

    def _problems(self) -> Iterator[SpeedCell]:
        for task, threads in product(self.tasks, self.threads):
            sizes = sorted(SIZES[task] if self.sizes is None else self.sizes)
            for n, share, condition in product(sizes, self.shares, self.conditions):
                yield SpeedCell(
                    task=task, n=n, p=plus_signs(n, share), condition=condition, threads=threads,
                    method="", max_time=self.max_time or budget(n),
                )  # fmt: skip

    def _methods(self, task: str, n: int) -> list[str]:
        wanted = [method for method in methods_for(task) if method in self.methods]
        return [name for name in wanted if not self.short or n < SLOW_FROM.get(name, math.inf)]


QUICK_PLAN = Plan(
    tasks=("procrustes",), sizes=(8, 12), shares=(0.5,), conditions=(3.0,), threads=(1,),
    seeds=(0,), max_time=0.5, betas=(0.1, 1.0),
)  # fmt: skip
"""A plan that takes a few seconds."""


def budget(n: int) -> float:
    """Seconds per run at size n."""
    return next((seconds for size, seconds in BUDGETS.items() if n <= size), max(BUDGETS.values()))


def left_out(cell: SpeedCell, rows: Sequence[Row]) -> str | None:
    """Why a run is left out given the earlier ``rows``; None if it is not.

    Methods that fell short at the previous size are left out, and so are penalties of cdopt that
    were not the best.
    """
    mates = [row for row in rows if row["outcome"] == "done" and _differ_in_size(row, cell)]
    below = [row["cell"]["n"] for row in mates if row["cell"]["n"] < cell.n]
    before = [row for row in mates if below and row["cell"]["n"] == max(below)]
    large = cell.n >= ONE_SEED
    if large and before and not any(f"{SHORT_GAP:g}" in row["reached"] for row in before):
        return f"no run within {SHORT_GAP:g} at n = {max(below)}"
    if cell.method != CDOPT:
        return None
    here = [row for row in mates if row["cell"]["n"] == cell.n]
    tried = before if large else [row for row in here if row["cell"]["seed"] != cell.seed]
    if not tried or best_beta(tried) == cell.beta:
        return None
    where = f"at n = {max(below)}" if large else "on the first seed"
    return f"beta {best_beta(tried):g} was better {where}"


def best_beta(rows: Sequence[Row]) -> float:
    """The penalty that reached the smallest gap soonest on the first seed."""
    first = rows[0]["cell"]["seed"]
    best = min((row for row in rows if row["cell"]["seed"] == first), key=_score)
    return float(best["cell"]["beta"])


def _score(row: Row) -> tuple[float, float]:
    """The smallest of GAPS that was reached and the seconds to it, else the gap; less is better."""
    for gap in sorted(GAPS):
        if f"{gap:g}" in row["reached"]:
            return gap, row["reached"][f"{gap:g}"]
    return math.inf, row["gap"]


def _differ_in_size(row: Row, cell: SpeedCell) -> bool:
    """Whether a row agrees with the cell except for size, seed and penalty."""
    other = SpeedCell.from_json(row["cell"])
    same = (other.task, other.method, other.share, other.condition, other.threads)
    return same == (cell.task, cell.method, cell.share, cell.condition, cell.threads)
