"""scikit-learn's own checks, without an exception."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from jorth.estimators import HyperbolicPCA, LorentzAligner, StructuralProbeEmbedding

ESTIMATORS = [
    HyperbolicPCA(),
    HyperbolicPCA(n_components=1, output="hyperboloid", time="last", scale=0.1),
    LorentzAligner(),
    LorentzAligner(time="last"),
    StructuralProbeEmbedding(alpha=2.0, scale=1.0, ridge=0.1, gradient_tolerance=1e-2),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow  # half a minute: the targets of the checks are noise, slow to fit without a ridge
@parametrize_with_checks([StructuralProbeEmbedding()])
def test_scikit_learn_checks_of_the_probe(estimator, check):
    check(estimator)
