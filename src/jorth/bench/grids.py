"""Which cells there are: data x size x share of plus signs x method x seed (x theta)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from jorth.bench.cells import Cell, Kind
from jorth.bench.methods import OF_PROBLEM, WITH_THETA, full_name
from jorth.bench.paper import APPENDIX_P, PROBES, TABLE, Size

RIDGE = 0.01
"""The default ridge of the well-posed problem, in units of the mean eigenvalue of D^T D."""


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """What every grid crosses its sizes with.

    Attributes:
        solvers: Names of methods; empty takes all of the problem.
        seeds: Seeds.
        thetas: Of the race, in units of the curvature.
        max_time: Seconds a run.
        max_evaluations: Gradients a run.
    """

    solvers: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    thetas: Sequence[float] = (1.0,)
    max_time: float | None = None
    max_evaluations: int | None = None

    def methods(self, problem: Kind) -> list[str]:
        """The methods asked for, in the order of the tables."""
        wanted = {full_name(name) for name in self.solvers}
        return [name for name in OF_PROBLEM[problem] if not wanted or name in wanted]


def hevp_cells(
    sizes: Iterable[Size],
    crossing: Crossing,
    *,
    problems: Sequence[Kind] = ("race", "trace"),
    ridge: float = RIDGE,
) -> list[Cell]:
    """The hyperbolic eigenvalue problem for each (data, m, n, p), as printed ("race") and well-posed ("trace").

    Only the methods that theta concerns are crossed with it.
    """
    cells = []
    for (data, m, n, p), seed, problem in product(list(sizes), crossing.seeds, problems):
        for method in crossing.methods(problem):
            raced = problem == "race" and method in WITH_THETA
            cells += [
                Cell(
                    problem=problem, data=data, m=m, n=n, p=p, method=method, seed=seed, theta=theta,
                    ridge=ridge if problem == "trace" else None,
                    max_time=crossing.max_time, max_evaluations=crossing.max_evaluations,
                )
                for theta in (crossing.thetas if raced else (None,))
            ]  # fmt: skip
    return cells


def paper_sizes(*, appendix: bool = False, only: Sequence[str] = ()) -> list[Size]:
    """(data, m, n, p) of the paper's Table 1; with ``appendix`` also those with more plus signs of its figures."""
    sizes = [size for size in TABLE if not only or size[0] in only]
    if not appendix:
        return sizes
    more = []
    for data, m, n, p in sizes:
        shares = APPENDIX_P.get(data, (round(0.7 * n), round(0.9 * n)))
        more += [(data, m, n, plus) for plus in (p, *shares)]
    return more


def paper_cells(
    crossing: Crossing, *, appendix: bool = False, only: Sequence[str] = (), ridge: float = RIDGE
) -> list[Cell]:
    """The grid of the paper's Table 1, and beside each race the well-posed problem."""
    return hevp_cells(paper_sizes(appendix=appendix, only=only), crossing, ridge=ridge)


def shares_to_sizes(
    data: Sequence[str], sizes: Sequence[tuple[int, int]], shares: Sequence[float]
) -> list[Size]:
    """(data, m, n, p) for every name, (m, n) and share p / n, both signs kept."""
    return [
        (name, m, n, min(max(round(share * n), 1), n - 1))
        for name, (m, n), share in product(data, sizes, shares)
    ]


def procrustes_cells(
    sizes: Sequence[int], shares: Sequence[float], conditions: Sequence[float], crossing: Crossing
) -> list[Cell]:
    """Planted noisy Procrustes for each n, share p / n and condition of the source; 2 n rows."""
    cells = []
    for n, share, condition, seed in product(sizes, shares, conditions, crossing.seeds):
        ((_, m, _, p),) = shares_to_sizes(["planted"], [(2 * n, n)], [share])
        cells += [
            Cell(
                problem="procrustes", data="planted", m=m, n=n, p=p, method=method, seed=seed, condition=condition,
                max_time=crossing.max_time, max_evaluations=crossing.max_evaluations,
            )
            for method in crossing.methods("procrustes")
        ]  # fmt: skip
    return cells


def probe_cells(
    sizes: Iterable[Size],
    crossing: Crossing,
    *,
    alpha: float = 1.0,
    scale: float | Literal["fit"] = 1.0,
    ridge: float = 0.0,
) -> list[Cell]:
    """The structural probe for each (data, m, n, p); alpha = scale = 1 without a ridge is the paper's loss."""
    return [
        Cell(
            problem="probe", data=data, m=m, n=n, p=p, method=method, seed=seed, alpha=alpha, scale=scale, ridge=ridge,
            max_time=crossing.max_time, max_evaluations=crossing.max_evaluations,
        )
        for (data, m, n, p), seed in product(list(sizes), crossing.seeds)
        for method in crossing.methods("probe")
    ]  # fmt: skip


def probe_sizes(only: Sequence[str] = ()) -> list[Size]:
    """(data, m, n, p) of the structural probes in the paper's figures."""
    return [size for size in PROBES if not only or size[0] in only]


def quick_cells(problem: str, crossing: Crossing) -> list[Cell]:
    """A few seconds of "hevp", "procrustes" or "probe", with data that every installation has."""
    if problem == "procrustes":
        return procrustes_cells([12], [0.5], [10.0], crossing)
    if problem == "probe":
        return probe_cells([("randn", 60, 10, 9), ("digits", 120, 16, 14)], crossing)
    return hevp_cells([("randn", 10, 10, 5), ("digits", 200, 24, 12)], crossing)
