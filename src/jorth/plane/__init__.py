"""The 2x2 problem of block coordinate descent: solve it, pair indices, apply the steps."""

from jorth.plane.apply import apply_rows
from jorth.plane.pairs import all_pairs as all_pairs
from jorth.plane.pairs import random_matching as random_matching
from jorth.plane.pairs import random_pairs as random_pairs
from jorth.plane.pairs import tournament
from jorth.plane.problem import PlaneSolution as PlaneSolution
from jorth.plane.problem import solve_plane as solve_plane
from jorth.plane.problem import solve_rows as solve_rows

__all__ = ["apply_rows", "tournament"]
