"""jorth: optimise over, and compute with, J-orthogonal matrices (X^T J X = J, J = diag(+-1)).

Names are loaded on first use, so that ``import jorth`` and ``jorth --help`` stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jorth import (
        adapters,
        datasets,
        estimators,
        kge,
        nn,
        optim,
        plane,
        stopping,
        ultrahyperbolic,
    )
    from jorth.decompositions import (
        CS,
        HSVD,
        cs_decomposition,
        eigh,
        hsvd,
        hyperbolic_qr,
        indefinite_lstsq,
        polar,
    )
    from jorth.group import (
        PolishError,
        cayley,
        component,
        exchange,
        exp,
        inverse,
        multiplier,
        polish,
        random_point,
        residual,
        riemannian_gradient,
    )
    from jorth.objectives import (
        FiniteSum,
        HyperbolicEigenvalue,
        Objective,
        Procrustes,
        Quadratic,
        Sharded,
        StructuralProbe,
    )
    from jorth.plane import PlaneSolution, solve_plane
    from jorth.ranks import RankLost
    from jorth.signature import Signature
    from jorth.solvers import (
        ADMM,
        CSDM,
        UMCM,
        BlockStationarity,
        CheckpointMismatch,
        Exponential,
        GaussSeidel,
        Jacobi,
        Result,
        RiemannianCG,
        RiemannianLBFGS,
        RiemannianSD,
        Stage,
        Status,
        VarianceReduced,
        block_stationarity,
        minimize,
        procrustes,
    )

__version__ = "0.1.0"

_ROOMS = {
    "jorth.decompositions": "CS HSVD cs_decomposition eigh hsvd hyperbolic_qr indefinite_lstsq polar",
    "jorth.group": "PolishError cayley component exchange exp inverse multiplier polish random_point "
    "residual riemannian_gradient",
    "jorth.objectives": "FiniteSum HyperbolicEigenvalue Objective Procrustes Quadratic Sharded StructuralProbe",
    "jorth.plane": "PlaneSolution solve_plane",
    "jorth.ranks": "RankLost",
    "jorth.signature": "Signature",
    "jorth.solvers": "ADMM BlockStationarity CSDM CheckpointMismatch Exponential GaussSeidel Jacobi Result "
    "RiemannianCG RiemannianLBFGS RiemannianSD Stage Status UMCM VarianceReduced block_stationarity minimize "
    "procrustes",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = (
    "adapters",
    "datasets",
    "estimators",
    "kge",
    "nn",
    "optim",
    "plane",
    "stopping",
    "ultrahyperbolic",
)

__all__ = [
    "ADMM",
    "CS",
    "CSDM",
    "HSVD",
    "UMCM",
    "BlockStationarity",
    "CheckpointMismatch",
    "Exponential",
    "FiniteSum",
    "GaussSeidel",
    "HyperbolicEigenvalue",
    "Jacobi",
    "Objective",
    "PlaneSolution",
    "PolishError",
    "Procrustes",
    "Quadratic",
    "RankLost",
    "Result",
    "RiemannianCG",
    "RiemannianLBFGS",
    "RiemannianSD",
    "Sharded",
    "Signature",
    "Stage",
    "Status",
    "StructuralProbe",
    "VarianceReduced",
    "adapters",
    "block_stationarity",
    "cayley",
    "component",
    "cs_decomposition",
    "datasets",
    "eigh",
    "estimators",
    "exchange",
    "exp",
    "hsvd",
    "hyperbolic_qr",
    "indefinite_lstsq",
    "inverse",
    "kge",
    "minimize",
    "multiplier",
    "nn",
    "optim",
    "plane",
    "polar",
    "polish",
    "procrustes",
    "random_point",
    "residual",
    "riemannian_gradient",
    "solve_plane",
    "stopping",
    "ultrahyperbolic",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = importlib.import_module(f"jorth.{name}")
    elif name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'jorth' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
