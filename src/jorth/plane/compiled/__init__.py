"""The plane problem for one pair, and the sweeps and rounds made of such steps, compiled.

The arithmetic is float64, branches replace masks, and Newton loops stop when they have converged.
Import this only where it is used: it loads numba.
"""

from jorth.plane.compiled.pair import solve_pair
from jorth.plane.compiled.roots import circle, lightcone
from jorth.plane.compiled.rows import apply_pair

__all__ = ["apply_pair", "circle", "lightcone", "solve_pair"]
