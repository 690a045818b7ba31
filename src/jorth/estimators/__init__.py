"""scikit-learn estimators: `HyperbolicPCA` and `LorentzAligner`."""

from jorth.estimators.hyperbolic_pca import HyperbolicPCA
from jorth.estimators.lorentz_aligner import LorentzAligner

__all__ = ["HyperbolicPCA", "LorentzAligner"]
