"""The 2x2 problem of block coordinate descent: solve it, pair indices, apply the steps."""

from jorth.plane.apply import apply_columns, apply_rows
from jorth.plane.pairs import all_pairs, random_matching, random_pairs, tournament
from jorth.plane.problem import PlaneSolution, solve_plane, solve_rows

__all__ = [
    "PlaneSolution",
    "all_pairs",
    "apply_columns",
    "apply_rows",
    "random_matching",
    "random_pairs",
    "solve_plane",
    "solve_rows",
    "tournament",
]
