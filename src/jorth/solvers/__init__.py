"""How to minimise: one loop, and solvers that only step."""

from jorth.solvers.baselines.admm import ADMM
from jorth.solvers.baselines.parametrized import CSDM, Exponential
from jorth.solvers.baselines.umcm import UMCM
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.loop.budget import Evaluations, Interrupt
from jorth.solvers.loop.chain import Stage
from jorth.solvers.loop.record import Result
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.status import Status
from jorth.solvers.loop.stopping import (
    BlockStationary,
    Criterion,
    GradientNorm,
    MaxIterations,
    NormAbove,
    RelativeDecrease,
    ValueBelow,
)
from jorth.solvers.minimize import METHODS, minimize, resolve
from jorth.solvers.procrustes import data_start, procrustes
from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.steepest_descent import RiemannianSD
from jorth.solvers.stationarity import BlockStationarity, block_stationarity
from jorth.storage.checkpoint import CheckpointMismatch

__all__ = [
    "ADMM",
    "CSDM",
    "METHODS",
    "UMCM",
    "AbstractSolver",
    "BlockStationarity",
    "BlockStationary",
    "CheckpointMismatch",
    "Criterion",
    "Evaluations",
    "Exponential",
    "GaussSeidel",
    "GradientNorm",
    "Interrupt",
    "Jacobi",
    "MaxIterations",
    "NormAbove",
    "RelativeDecrease",
    "Result",
    "RiemannianCG",
    "RiemannianLBFGS",
    "RiemannianSD",
    "Stage",
    "Status",
    "ValueBelow",
    "VarianceReduced",
    "block_stationarity",
    "data_start",
    "minimize",
    "procrustes",
    "resolve",
]
