"""How to minimise: one loop, and solvers that only step."""

from jorth.solvers.admm import ADMM
from jorth.solvers.alignment import procrustes
from jorth.solvers.chain import Stage
from jorth.solvers.checkpoint import CheckpointMismatch
from jorth.solvers.criticality import BlockStationarity, block_stationarity, multiplier, riemannian_gradient
from jorth.solvers.cs_decomposition import CSDM
from jorth.solvers.exponential import Exponential
from jorth.solvers.gauss_seidel import GaussSeidel
from jorth.solvers.jacobi import Jacobi
from jorth.solvers.minimize import minimize
from jorth.solvers.multiplier_correction import UMCM
from jorth.solvers.result import Result
from jorth.solvers.riemannian import RiemannianCG, RiemannianLBFGS, RiemannianSD
from jorth.solvers.status import Status
from jorth.solvers.variance_reduced import VarianceReduced

__all__ = [
    "ADMM",
    "CSDM",
    "UMCM",
    "BlockStationarity",
    "CheckpointMismatch",
    "Exponential",
    "GaussSeidel",
    "Jacobi",
    "Result",
    "RiemannianCG",
    "RiemannianLBFGS",
    "RiemannianSD",
    "Stage",
    "Status",
    "VarianceReduced",
    "block_stationarity",
    "minimize",
    "multiplier",
    "procrustes",
    "riemannian_gradient",
]
