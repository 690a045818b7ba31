"""Jacobi rounds close to the machine: Triton on a CUDA device, plain torch elsewhere, the same to rounding."""

from jorth.kernels.batch import batch_rounds, fits_batch_rounds
from jorth.kernels.quadratic import QuadraticRounds
from jorth.kernels.tables import partners, tournament_rounds

__all__ = ["QuadraticRounds", "batch_rounds", "fits_batch_rounds", "partners", "tournament_rounds"]
