"""Jacobi rounds close to the machine: compiled on the CPU, Triton on CUDA, else plain torch."""

from jorth.kernels.averages import SlopeAverages
from jorth.kernels.majoriser import Majoriser, Proposal
from jorth.kernels.pairings import partners, tournament_rounds
from jorth.kernels.quadratic import QuadraticRounds

__all__ = [
    "Majoriser",
    "Proposal",
    "QuadraticRounds",
    "SlopeAverages",
    "partners",
    "tournament_rounds",
]
