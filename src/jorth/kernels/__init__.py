"""Jacobi rounds: compiled by numba on the CPU, by Triton on CUDA, and plain torch elsewhere."""

from jorth.kernels.majoriser import Majoriser, Proposal
from jorth.kernels.pairings import partners, tournament_rounds
from jorth.kernels.quadratic import QuadraticRounds

__all__ = ["Majoriser", "Proposal", "QuadraticRounds", "partners", "tournament_rounds"]
