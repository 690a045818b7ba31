"""scikit-learn's own checks, without an exception."""

import warnings

import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
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


ROWS = np.random.default_rng(0).standard_normal((12, 3))


def test_random_state_as_elsewhere_in_scikit_learn():
    """An integer and a state of the same seed repeat a fit; None is another start each time."""

    def fitted(state):
        probe = StructuralProbeEmbedding(random_state=state, max_iterations=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return probe.fit(ROWS).rotation_

    for first, again in ((3, np.int64(3)), (np.random.RandomState(3), np.random.RandomState(3))):
        assert (fitted(first) == fitted(again)).all()
    assert (fitted(None) != fitted(None)).any()
    state = np.random.RandomState(3)
    assert (fitted(state) != fitted(state)).any()


@pytest.mark.parametrize("dispatch", [False, True])
def test_arrays_of_other_libraries(monkeypatch, dispatch):
    """Tensors are taken, whatever scikit-learn is told; what is no NumPy array has a message."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    tensor = torch.from_numpy(ROWS)
    with config_context(array_api_dispatch=dispatch):
        for estimator in (HyperbolicPCA(2), LorentzAligner()):
            expected = estimator.fit(ROWS, ROWS).transform(ROWS)
            assert (estimator.fit(tensor, tensor).transform(tensor) == expected).all()
            with pytest.raises(TypeError, match=r"X must need no gradient, .* pass X.detach\(\)$"):
                estimator.fit(tensor.clone().requires_grad_(), ROWS)
