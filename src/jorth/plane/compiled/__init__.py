"""The plane problem for one pair, compiled: what a sequential sweep calls between two row updates.

float64 arithmetic, branches in place of masks, Newton loops that stop when they are done. Import it where it is used:
it loads numba.
"""

from jorth.plane.compiled.pair import solve_pair, solve_pairs
from jorth.plane.compiled.roots import circle, lightcone
from jorth.plane.compiled.rows import apply_pair, apply_pairs

__all__ = ["apply_pair", "apply_pairs", "circle", "lightcone", "solve_pair", "solve_pairs"]
