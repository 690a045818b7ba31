"""Functions of several arrays: one tensor among them makes the result a tensor, with its
derivative."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth import ultrahyperbolic as U

SIG = Signature(3, 2)
X, Y = jorth.random_point(SIG, cond=3.0, batch=(2,), seed=1)
K = 0.1 * SIG.signs[:, None] * (Y - Y.T)
POINTS = U.lift(np.random.default_rng(2).normal([0, 0, 0, 3, 3], size=(4, 5)), SIG)
x, y = POINTS[:2]
v = U.project_tangent(x, y, SIG)
WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0])

CALLS = {
    "ultrahyperbolic.exp": (U.exp, (x, v)),
    "ultrahyperbolic.log": (U.log, (x, y)),
    "ultrahyperbolic.distance": (U.distance, (x, y)),
    "ultrahyperbolic.inner": (U.inner, (x, y)),
    "ultrahyperbolic.project_tangent": (U.project_tangent, (x, v)),
    "ultrahyperbolic.transport": (U.transport, (x, y, v)),
    "centroid": (lambda p, w, s: U.centroid(p, s, weights=w), (POINTS, WEIGHTS)),
    "frechet_mean": (lambda p, w, s: U.frechet_mean(p, s, weights=w), (POINTS, WEIGHTS)),
    "distance": (jorth.distance, (X, jorth.exp(K, SIG) @ X)),
    "transport": (jorth.transport, (X, X @ jorth.exp(K, SIG), X @ K)),
    "riemannian_gradient": (jorth.riemannian_gradient, (X, Y)),
    "indefinite_lstsq": (jorth.indefinite_lstsq, (np.eye(5)[:, :2] + 0.1, np.ones(5))),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_tensor_makes_the_result_a_tensor_with_a_derivative(name):
    function, arrays = CALLS[name]
    expected = function(*arrays, SIG)
    assert isinstance(expected, (np.ndarray, float))
    for position in range(len(arrays)):
        given = list(arrays)
        given[position] = torch.from_numpy(given[position].copy()).requires_grad_()
        found = function(*given, SIG)
        np.testing.assert_allclose(found.detach(), expected, rtol=0, atol=1e-13)
        (slope,) = torch.autograd.grad(found.sum(), given[position])
        assert slope.isfinite().all()
        assert slope.abs().max() > 0
