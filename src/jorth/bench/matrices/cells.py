"""The grid of runs: data x size x share of plus signs x method x seed (x theta)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Literal

from jorth.bench.core.cells import Cell, plus_signs
from jorth.bench.matrices.own import OwnData
from jorth.bench.matrices.paper import APPENDIX_P, PRINTED, PROBES, Size
from jorth.signature import Signature

Problem = Literal["race", "trace", "procrustes", "probe"]
RIDGE = 0.01
"""The default ridge of the well-posed problem, in units of the mean eigenvalue of D^T D."""
DIVERGED_NORM = {"race": 1e6, "probe": 1e4}
"""||X||_2 at which a run ends as diverged; below it a probe's inner products have eight digits."""


@dataclass(frozen=True, kw_only=True)
class MatrixCell(Cell):
    """One run of a method on a problem over J-orthogonal matrices.

    The problem "race" is the paper's unbounded min -tr(X^T D^T D X); "trace" is the well-posed
    min tr(X^T (D^T D + ridge I) X); "procrustes" is a planted noisy Procrustes problem; "probe" is
    the structural probe for the Euclidean distances of the rows, transform then lift. The seed is
    used for the subset, the start and the method; a probe has the same data for every seed.
    """

    problem: Problem
    data: str
    m: int  # rows of the data
    n: int  # columns of the data, the size of X
    p: int  # plus signs
    theta: float | None = None  # proximal weight of JOBCD in the race, in units of the curvature
    ridge: float | None = None  # for "trace" in mean eigenvalues of D^T D, for "probe" absolute
    condition: float | None = None  # condition number of the source of "procrustes"
    alpha: float | None = None  # radius of the pseudo-hyperboloid of "probe"
    scale: float | Literal["fit"] | None = None  # factor on the distances of "probe"
    max_time: float | None = None  # seconds of solving
    max_evaluations: int | None = None  # gradients
    own: OwnData | None = None  # the files, if the data are the user's

    def record(self) -> dict[str, Any]:
        """The fields as they are stored; ``own`` only if there is one, as in older rows."""
        fields = asdict(replace(self, own=None))
        del fields["own"]
        return fields if self.own is None else fields | {"own": self.own.record()}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> MatrixCell:
        own = fields.get("own")
        return cls(**fields | {"own": None if own is None else OwnData(**own)})

    @property
    def signature(self) -> Signature:
        if self.own is not None and self.own.signs is not None:
            return Signature.of([1 if sign == "+" else -1 for sign in self.own.signs])
        return Signature(self.p, self.n - self.p)

    @property
    def shared_problem(self) -> MatrixCell:
        """The part that cells with the same matrix, start and optimum share."""
        return replace(self, method="", theta=None, max_time=None, max_evaluations=None)

    @property
    def over_seeds(self) -> MatrixCell:
        """The part that all seeds and methods of one problem and budget share."""
        return replace(self, method="", theta=None, seed=0)

    @property
    def data_seed(self) -> int:
        return 0 if self.problem == "probe" else self.seed

    @property
    def size(self) -> str:
        """The data and its size as in the paper: name(m-n-p)."""
        return f"{self.data}({self.m}-{self.n}-{self.p})"


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """What every grid crosses its sizes with; without solvers, all methods of the problem."""

    solvers: Sequence[str] = ()
    seeds: Sequence[int] = (0,)
    thetas: Sequence[float] = (1.0,)  # for the race, in units of the curvature
    max_time: float | None = None
    max_evaluations: int | None = None

    def cells(self, problem: Problem, size: Size, seed: int, **options: Any) -> list[MatrixCell]:
        """A cell for each method, in the order of the tables, and for each theta that it takes."""
        from jorth.bench.matrices.methods import (
            METHODS_OF_PROBLEM,
            THETA_METHODS,
            is_own,
            table_name,
        )

        wanted = dict.fromkeys(table_name(name) for name in self.solvers)
        data, m, n, p = size
        base = MatrixCell(
            problem=problem, method="", data=data, m=m, n=n, p=p, seed=seed,
            max_time=self.max_time, max_evaluations=self.max_evaluations, **options,
        )  # fmt: skip
        found = []
        for method in (*METHODS_OF_PROBLEM[problem], *filter(is_own, wanted)):
            if not wanted or method in wanted:
                takes_theta = problem == "race" and method in THETA_METHODS
                thetas = self.thetas if takes_theta else (None,)
                found += [replace(base, method=method, theta=theta) for theta in thetas]
        return found


def hevp_cells(
    sizes: Iterable[Size],
    crossing: Crossing,
    *,
    problems: Sequence[Problem] = ("race", "trace"),
    ridge: float = RIDGE,
) -> list[MatrixCell]:
    """The hyperbolic eigenvalue problem, as printed ("race") and well-posed ("trace")."""
    cells = []
    for size, seed, problem in product(sizes, crossing.seeds, problems):
        cells += crossing.cells(problem, size, seed, ridge=ridge if problem == "trace" else None)
    return cells


def procrustes_cells(
    sizes: Sequence[int], shares: Sequence[float], conditions: Sequence[float], crossing: Crossing
) -> list[MatrixCell]:
    """Planted noisy Procrustes for each n, share p / n and condition of the source; 2n rows."""
    cells = []
    for n, share, condition, seed in product(sizes, shares, conditions, crossing.seeds):
        size = "planted", 2 * n, n, plus_signs(n, share)
        cells += crossing.cells("procrustes", size, seed, condition=condition)
    return cells


def aligning_cells(sizes: Iterable[Size], crossing: Crossing) -> list[MatrixCell]:
    """Procrustes problems whose rows are given."""
    cells = []
    for size, seed in product(sizes, crossing.seeds):
        cells += crossing.cells("procrustes", size, seed)
    return cells


def probe_cells(
    sizes: Iterable[Size],
    crossing: Crossing,
    *,
    alpha: float = 1.0,
    scale: float | Literal["fit"] = 1.0,
    ridge: float = 0.0,
) -> list[MatrixCell]:
    """The structural probe; alpha = scale = 1 without a ridge is the paper's loss."""
    cells = []
    for size, seed in product(sizes, crossing.seeds):
        cells += crossing.cells("probe", size, seed, alpha=alpha, scale=scale, ridge=ridge)
    return cells


def quick_cells(problem: str, crossing: Crossing) -> list[MatrixCell]:
    """A grid of a few seconds for "hevp", "procrustes" or "probe", on built-in data."""
    if problem == "procrustes":
        return procrustes_cells([12], [0.5], [10.0], crossing)
    if problem == "probe":
        return probe_cells([("randn", 60, 10, 9), ("digits", 120, 16, 14)], crossing)
    return hevp_cells([("randn", 10, 10, 5), ("digits", 200, 24, 12)], crossing)


def paper_sizes(*, appendix: bool = False, only: Sequence[str] = ()) -> list[Size]:
    """The sizes of the paper's Table 1; ``appendix`` adds those with more plus signs."""
    sizes = [size for size in PRINTED if not only or size[0] in only]
    if not appendix:
        return sizes
    more = []
    for data, m, n, p in sizes:
        larger = APPENDIX_P.get(data, (round(0.7 * n), round(0.9 * n)))
        more += [(data, m, n, plus) for plus in (p, *larger)]
    return more


def probe_sizes(only: Sequence[str] = ()) -> list[Size]:
    """The sizes of the structural probes in the paper's figures."""
    return [size for size in PROBES if not only or size[0] in only]
