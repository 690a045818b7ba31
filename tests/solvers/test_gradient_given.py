"""The gradient that `block_stationarity` is given is checked, and is what an error names."""

import numpy as np
import pytest
import torch

import jorth
from jorth import HyperbolicEigenvalue, Signature, block_stationarity
from jorth.objectives import AbstractObjective

SIG = Signature(2, 2)
OBJECTIVE = HyperbolicEigenvalue(A=np.diag([1.0, 2.0, 3.0, 4.0]))


def test_the_gradient_given_is_used():
    X = jorth.random_point(SIG, cond=3.0, seed=1)
    gradient = OBJECTIVE.value_and_gradient(torch.from_numpy(X))[1]
    found = block_stationarity(OBJECTIVE, X, SIG)
    assert block_stationarity(OBJECTIVE, X, SIG, gradient=gradient) == found
    assert block_stationarity(OBJECTIVE, X, SIG, gradient=gradient.numpy()) == found
    assert block_stationarity(OBJECTIVE, X, SIG, gradient=2 * gradient) != found


@pytest.mark.parametrize(
    ("gradient", "error", "said"),
    [
        (
            np.ones((3, 3)),
            ValueError,
            r"gradient must have the shape of X \(4, 4\), got .*\(3, 3\)",
        ),
        (
            np.ones((5, 4)),
            ValueError,
            r"gradient must have the shape of X \(4, 4\), got .*\(5, 4\)",
        ),
        (np.ones((4, 4), np.float32), TypeError, "gradient must have the dtype and device of X"),
        (np.ones((4, 4), int), TypeError, "gradient must be float64 or float32"),
        (np.full((4, 4), np.nan), ValueError, "gradient must be finite, got 16 NaN"),
        ([[1.0]], TypeError, "gradient must be a NumPy array or a torch tensor"),
    ],
)
def test_a_wrong_gradient_is_named(gradient, error, said):
    with pytest.raises(error, match=f"^{said}"):
        block_stationarity(OBJECTIVE, np.eye(4), SIG, gradient=gradient)


class Own(AbstractObjective):
    """An objective with a gradient of its own making."""

    def __init__(self, gradient):
        self.gradient = gradient

    def value_and_gradient(self, X):
        return X.sum(), self.gradient


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        (torch.ones(3, 3).double(), "have the shape of X"),
        (torch.full((4, 4), torch.nan).double(), "be finite"),
    ],
)
def test_else_the_objective_is_named(gradient, said):
    with pytest.raises(ValueError, match=f"^the objective's gradient at X must {said}"):
        block_stationarity(Own(gradient), np.eye(4), SIG, curvature=1.0)
