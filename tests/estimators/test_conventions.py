"""scikit-learn's own checks, without an exception."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from jorth.estimators import HyperbolicPCA, LorentzAligner, StructuralProbeRegressor

ESTIMATORS = [
    HyperbolicPCA(),
    HyperbolicPCA(n_components=1, output="hyperboloid", time="first", scale=0.1),
    LorentzAligner(),
    StructuralProbeRegressor(),
    StructuralProbeRegressor(alpha=2.0, scale=1.0, ridge=1e-3, zero_rows="base", n_init=2),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
