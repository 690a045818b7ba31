"""scikit-learn estimators: `HyperbolicPCA`, `LorentzAligner` and `StructuralProbeRegressor`."""

from jorth.estimators.hyperbolic_pca import HyperbolicPCA
from jorth.estimators.lorentz_aligner import LorentzAligner
from jorth.estimators.structural_probe import StructuralProbeRegressor

__all__ = ["HyperbolicPCA", "LorentzAligner", "StructuralProbeRegressor"]
