"""Which runs there are: size x share of plus signs x condition x threads x seed x method."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

from jorth.bench.grids import shares_to_sizes

CHAIN = "GS-JOBCD + L-BFGS"
DATA = ", data start"
"""These begin where `jorth.procrustes` does, which is on their clock; all others at the identity."""
JOBCD = ("GS-JOBCD", "J-JOBCD", CHAIN, CHAIN + DATA)
"""Ours, the coordinate methods and the chain that begins with one."""
OURS = (*JOBCD, "Riemannian L-BFGS", "Riemannian L-BFGS" + DATA, "UMCM")
CDOPT = "cdopt L-BFGS"
PEERS = ("pymanopt CG", "pymanopt TR", CDOPT)
"""From outside."""
HELPED = ("pymanopt TR" + DATA,)
"""The same from our start; not among the peers that the goal is about."""
METHODS = (*OURS, *PEERS, *HELPED)
BETAS = (0.1, 1.0, 10.0, 100.0)
"""The penalties of cdopt that are tried, on the first seed of every problem up to n = 200."""
BUDGETS = {50: 2.0, 100: 3.0, 200: 5.0, 500: 20.0, 1000: 40.0}
"""Seconds a run, up to each size; beyond the last it is the last."""
ONE_SEED = 500
"""From this size on the first seed is the only one."""


@dataclass(frozen=True, kw_only=True)
class SpeedCell:
    """One run.

    Attributes:
        n: The size of X.
        p: The number of plus signs.
        condition: Of the source.
        threads: Of every method alike.
        method: One of METHODS.
        seed: Of the problem and of the method.
        beta: The penalty of cdopt; None for the others.
        max_time: Seconds of solving.
        problem: Tells the rows from those of other benchmarks.
    """

    n: int
    p: int
    condition: float
    threads: int
    method: str
    seed: int
    beta: float | None = None
    max_time: float
    problem: Literal["speed"] = "speed"

    @property
    def key(self) -> str:
        """What a finished run is known by: all fields, in a fixed order."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def place(self) -> tuple[int, int, float, int]:
        """What the runs of one entry of the table share over methods and seeds: n, p, condition, threads."""
        return self.n, self.p, self.condition, self.threads

    @property
    def share(self) -> float:
        """P / n, rounded so that it is the same at all sizes."""
        return round(self.p / self.n, 1)

    @property
    def size(self) -> str:
        """The problem in a few letters."""
        return f"planted({2 * self.n}-{self.n}-{self.p}) condition {self.condition:g}, {self.threads} thread(s)"

    @staticmethod
    def from_json(fields: dict[str, Any]) -> SpeedCell:
        """The cell of a row."""
        return SpeedCell(**fields)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A benchmark.

    Attributes:
        sizes: Of X.
        shares: p / n.
        conditions: Of the source.
        threads: Numbers of threads.
        seeds: All up to n = 200, the first beyond.
        methods: Of METHODS.
        max_time: Seconds a run; None takes BUDGETS.
        betas: Penalties of cdopt.
    """

    sizes: Sequence[int] = (50, 100, 200, 500, 1000)
    shares: Sequence[float] = (0.5, 0.9)
    conditions: Sequence[float] = (3.0, 30.0)
    threads: Sequence[int] = (1, 2)
    seeds: Sequence[int] = (0, 1, 2)
    methods: Sequence[str] = METHODS
    max_time: float | None = None
    betas: Sequence[float] = BETAS

    def cells(self) -> list[SpeedCell]:
        """All runs; sizes rise, and the methods of one problem and seed are side by side."""
        found = []
        for threads, n, share, condition in product(
            self.threads, sorted(self.sizes), self.shares, self.conditions
        ):
            ((_, _, _, p),) = shares_to_sizes(["planted"], [(2 * n, n)], [share])
            for seed, method in product(self.seeds if n < ONE_SEED else self.seeds[:1], METHODS):
                if method in self.methods:
                    found += [
                        SpeedCell(
                            n=n, p=p, condition=condition, threads=threads, method=method, seed=seed, beta=beta,
                            max_time=self.max_time or budget(n),
                        )
                        for beta in (self.betas if method == CDOPT else (None,))
                    ]  # fmt: skip
        return found


def budget(n: int) -> float:
    """Seconds a run at size n."""
    return next((seconds for size, seconds in BUDGETS.items() if n <= size), max(BUDGETS.values()))


QUICK = Plan(
    sizes=(8, 12),
    shares=(0.5,),
    conditions=(3.0,),
    threads=(1,),
    seeds=(0,),
    max_time=0.5,
    betas=(0.1, 1.0),
)
"""A few seconds."""
