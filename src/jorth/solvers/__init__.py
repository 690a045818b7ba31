"""How to minimise: one loop, and solvers that only step."""

from jorth.solvers.checkpoint import CheckpointMismatch
from jorth.solvers.criticality import BlockStationarity, block_stationarity, multiplier, riemannian_gradient
from jorth.solvers.gauss_seidel import GaussSeidel
from jorth.solvers.jacobi import Jacobi
from jorth.solvers.minimize import minimize
from jorth.solvers.result import Result
from jorth.solvers.riemannian import RiemannianLBFGS
from jorth.solvers.status import Status
from jorth.solvers.variance_reduced import VarianceReduced

__all__ = [
    "BlockStationarity",
    "CheckpointMismatch",
    "GaussSeidel",
    "Jacobi",
    "Result",
    "RiemannianLBFGS",
    "Status",
    "VarianceReduced",
    "block_stationarity",
    "minimize",
    "multiplier",
    "riemannian_gradient",
]
