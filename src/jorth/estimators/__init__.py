"""scikit-learn estimators: `HyperbolicPCA`, `LorentzAligner`, `StructuralProbeEmbedding`."""

from jorth.estimators.hyperbolic_pca import HyperbolicPCA
from jorth.estimators.lorentz_aligner import LorentzAligner
from jorth.estimators.structural_probe import StructuralProbeEmbedding

__all__ = ["HyperbolicPCA", "LorentzAligner", "StructuralProbeEmbedding"]
