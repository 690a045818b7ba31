"""jorth: optimise over, and compute with, J-orthogonal matrices (X^T J X = J, J = diag(+-1)).

Names are loaded on first use, so that ``import jorth`` and ``jorth --help`` stay light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jorth import plane
    from jorth.decompositions import CS, cs_decomposition
    from jorth.group import (
        PolishError,
        cayley,
        component,
        exchange,
        exp,
        inverse,
        polish,
        random_point,
        residual,
    )
    from jorth.plane import PlaneSolution, solve_plane
    from jorth.signature import Signature

__version__ = "0.1.0"

_HOME = {
    "CS": "jorth.decompositions",
    "PlaneSolution": "jorth.plane",
    "PolishError": "jorth.group",
    "Signature": "jorth.signature",
    "cayley": "jorth.group",
    "component": "jorth.group",
    "cs_decomposition": "jorth.decompositions",
    "exchange": "jorth.group",
    "exp": "jorth.group",
    "inverse": "jorth.group",
    "polish": "jorth.group",
    "random_point": "jorth.group",
    "residual": "jorth.group",
    "solve_plane": "jorth.plane",
}

__all__ = [
    "CS",
    "PlaneSolution",
    "PolishError",
    "Signature",
    "cayley",
    "component",
    "cs_decomposition",
    "exchange",
    "exp",
    "inverse",
    "plane",
    "polish",
    "random_point",
    "residual",
    "solve_plane",
]


def __getattr__(name: str) -> object:
    if name == "plane":
        return importlib.import_module("jorth.plane")
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'jorth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
