"""jorth: optimise over, and compute with, J-orthogonal matrices (X^T J X = J, J = diag(+-1)).

Names are loaded on first use, so that ``import jorth`` and ``jorth --help`` stay light. The table
below is the only list of them; type checkers read ``__init__.pyi``, which is generated from it.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

_ROOMS = {
    "jorth": "adapters datasets estimators kge nn optim plane stopping ultrahyperbolic",
    "jorth.linalg": "cholesky_update cs_decomposition eigh hsvd "
    "hyperbolic_qr indefinite_lstsq polar",
    "jorth.group": "OtherTimeWarning PolishError cayley component distance exchange exp inverse "
    "log mean polish random_point residual riemannian_gradient transport",
    "jorth.objectives": "FiniteSum HyperbolicEigenvalue Objective Procrustes Quadratic Sharded "
    "StructuralProbe",
    "jorth.plane": "solve_plane",
    "jorth._distributed": "RankLost",
    "jorth.signature": "Signature",
    "jorth.solvers": "ADMM BatchResult "
    "CSDM CheckpointMismatch Exponential GaussSeidel Jacobi Result RiemannianCG "
    "RiemannianLBFGS RiemannianNewton RiemannianSD Status UMCM VarianceReduced "
    "as_printed block_stationarity hessian_check minimize procrustes",
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'jorth' has no attribute {name!r}")
    room = _HOMES[name]
    if room == "jorth":
        value: object = importlib.import_module(f"jorth.{name}")
    else:
        value = getattr(importlib.import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
