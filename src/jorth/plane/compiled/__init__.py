"""The plane problem for one pair, compiled, and the sweeps and rounds that are made of such steps.

float64 arithmetic, branches in place of masks, Newton loops that stop when they are done. Import it
where it is used: it loads numba.
"""

from jorth.plane.compiled.pair import solve_pair
from jorth.plane.compiled.roots import circle, lightcone
from jorth.plane.compiled.rows import apply_pair

__all__ = ["apply_pair", "circle", "lightcone", "solve_pair"]
