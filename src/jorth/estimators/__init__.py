"""scikit-learn estimators: `HyperbolicPCA`, `LorentzAligner`, `StructuralProbeEmbedding`.

They are loaded on first use, since they need scikit-learn: ``pip install "jorth[sklearn]"``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from jorth.extras import needs

if TYPE_CHECKING:
    from jorth.estimators.hyperbolic_pca import HyperbolicPCA
    from jorth.estimators.lorentz_aligner import LorentzAligner
    from jorth.estimators.structural_probe import StructuralProbeEmbedding

__all__ = ["HyperbolicPCA", "LorentzAligner", "StructuralProbeEmbedding"]
_FILES = {
    "HyperbolicPCA": "hyperbolic_pca",
    "LorentzAligner": "lorentz_aligner",
    "StructuralProbeEmbedding": "structural_probe",
}


def __getattr__(name: str) -> object:
    if name not in _FILES:
        raise AttributeError(f"module 'jorth.estimators' has no attribute {name!r}")
    with needs(f"jorth.estimators.{name}", "sklearn"):
        value: object = getattr(importlib.import_module(f"jorth.estimators.{_FILES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
