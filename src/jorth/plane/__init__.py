"""The 2x2 problem of block coordinate descent: solve it, pair indices, apply the steps."""

from jorth.plane.apply import apply_columns, apply_rows
from jorth.plane.pairs import all_pairs, random_matching, random_pairs, tournament
from jorth.plane.problem import PlaneSolution as PlaneSolution
from jorth.plane.problem import solve_plane as solve_plane
from jorth.plane.problem import solve_rows

__all__ = [
    "all_pairs",
    "apply_columns",
    "apply_rows",
    "random_matching",
    "random_pairs",
    "solve_rows",
    "tournament",
]
