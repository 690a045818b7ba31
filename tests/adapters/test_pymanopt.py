"""pymanopt's own diagnostics and optimisers on O(p, q)."""

from unittest.mock import MagicMock

import numpy as np
import pymanopt
import pytest
from pymanopt.optimizers import ConjugateGradient, SteepestDescent, TrustRegions
from pymanopt.tools import diagnostics

import jorth
from jorth import Signature
from jorth.adapters.pymanopt import JOrthogonal
from tests.adapters.problems import SIGNATURES, least_trace, positive_definite

UNIT = 2.0**-53


def quadratic_problem(manifold, A, C):
    """tr(X^T A X) + <C, X>."""

    @pymanopt.function.numpy(manifold)
    def cost(X):
        return np.trace(X.T @ A @ X) + np.sum(C * X)

    @pymanopt.function.numpy(manifold)
    def gradient(X):
        return 2 * A @ X + C

    @pymanopt.function.numpy(manifold)
    def hessian(X, V):
        return 2 * A @ V

    return pymanopt.Problem(manifold, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)


def general_problem(signature, seed=0):
    """A quadratic with a linear term, so that no derivative vanishes by symmetry."""
    C = np.random.default_rng(seed).standard_normal((signature.n, signature.n))
    return quadratic_problem(
        JOrthogonal(signature, seed=seed), positive_definite(signature.n, seed), C
    )


@pytest.fixture
def slopes(monkeypatch):
    """The slopes that pymanopt's diagnostics fit; nothing is plotted.

    Its own line fit fails with NumPy 2.4, which does not convert arrays of length one to numbers.
    This one does the same: the best fit of 11 consecutive points among those above rounding.
    """
    found = []

    def identify_linear_piece(x, y, window_length):
        starts = [
            k for k in range(len(x) - window_length) if y[k : k + window_length + 1].min() > -12
        ]
        windows = [np.arange(k, k + window_length + 1) for k in starts]
        fits = [np.polyfit(x[window], y[window], deg=1, full=True)[:2] for window in windows]
        best = int(np.argmin([error.item() for _, error in fits]))
        found.append(fits[best][0][0])
        return windows[best], fits[best][0]

    monkeypatch.setattr(diagnostics, "identify_linear_piece", identify_linear_piece)
    monkeypatch.setattr(diagnostics, "plt", MagicMock())
    np.random.seed(0)  # noqa: NPY002 - check_hessian draws its weights from there
    return found


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_check_gradient(signature, slopes, capsys):
    problem = general_problem(signature)
    diagnostics.check_gradient(problem)
    assert slopes[0] > 1.95  # 1 with a wrong gradient
    assert "The residual should be close to 0: 0." in capsys.readouterr().out


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_check_hessian(signature, slopes, capsys):
    problem = general_problem(signature)
    manifold = problem.manifold
    diagnostics.check_hessian(problem)
    assert slopes[0] > 2.95  # 2 with a wrong Hessian, 4 where the third derivative is small
    assert "The residual should be 0, or very close. Residual: 0." in capsys.readouterr().out
    X = manifold.random_point()
    a, b = manifold.random_tangent_vector(X), manifold.random_tangent_vector(X)
    Ha, Hb = problem.riemannian_hessian(X, a), problem.riemannian_hessian(X, b)
    scale = np.linalg.norm(Ha) + np.linalg.norm(Hb)
    assert abs(manifold.inner_product(X, a, Hb) - manifold.inner_product(X, Ha, b)) < 1e-13 * scale
    np.testing.assert_allclose(
        problem.riemannian_hessian(X, 2 * a - b), 2 * Ha - Hb, atol=1e-13 * scale
    )


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient, TrustRegions])
def test_optimisers_reach_the_optimum(signature, optimizer):
    manifold = JOrthogonal(signature, seed=1)
    A = positive_definite(signature.n, seed=2)
    problem = quadratic_problem(manifold, A, 0.0)
    result = optimizer(verbosity=0, min_gradient_norm=1e-6).run(problem)
    # the error of f is the square of that of the gradient; near the optimum the line searches see
    # only rounding
    np.testing.assert_allclose(result.cost, least_trace(A, signature), rtol=1e-11)
    assert jorth.residual(result.point, signature) <= 200 * signature.n * UNIT
    assert jorth.component(result.point, signature) == (1, 1)


@pytest.mark.parametrize("component", [(1, 1), (-1, 1), (1, -1), (-1, -1)])
def test_optimisers_stay_in_the_component_of_the_start(component):
    signature = Signature.of([1, -1, -1, 1])
    manifold = JOrthogonal(signature, component=component, cond=1e4, seed=1)
    A = positive_definite(4, seed=3)
    result = ConjugateGradient(verbosity=0).run(quadratic_problem(manifold, A, 0.0))
    np.testing.assert_allclose(result.cost, least_trace(A, signature), rtol=1e-9)
    assert jorth.component(result.point, signature) == component


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_tangent_vectors(signature):
    manifold = JOrthogonal(signature, cond=100.0, seed=5)
    s, X = signature.signs, manifold.random_point()
    a, b = manifold.random_tangent_vector(X), manifold.random_tangent_vector(X)
    assert manifold.dim == signature.n * (signature.n - 1) // 2
    assert abs(manifold.norm(X, a) - 1) < 1e-15
    np.testing.assert_array_equal(a, -a.T)
    U, V = manifold.embedding(X, a), manifold.embedding(X, b)
    M = X.T @ (s[:, None] * U)  # tangent: the derivative of X^T J X vanishes
    assert np.abs(M + M.T).max() < 1e-13 * np.linalg.norm(X, 2) ** 2
    inverse = np.linalg.inv(X)
    np.testing.assert_allclose(
        manifold.inner_product(X, a, b), np.sum((U @ inverse) * (V @ inverse)), atol=1e-12
    )
    np.testing.assert_allclose(manifold.projection(X, U), a, atol=1e-12)
    np.testing.assert_array_equal(manifold.to_tangent_space(X, a), a)
    np.testing.assert_array_equal(manifold.zero_vector(X), np.zeros_like(X))
    np.testing.assert_array_equal(manifold.retraction(X, manifold.zero_vector(X)), X)
    np.testing.assert_array_equal(manifold.exp(X, manifold.zero_vector(X)), X)


def test_randomness_is_by_seed():
    one, same, other = (JOrthogonal(Signature(2, 1), seed=seed) for seed in (3, 3, 4))
    X = one.random_point()
    np.testing.assert_array_equal(X, same.random_point())
    assert np.abs(X - other.random_point()).max() > 0.1
    assert np.abs(X - one.random_point()).max() > 0.1
    same.random_point()
    np.testing.assert_array_equal(one.random_tangent_vector(X), same.random_tangent_vector(X))
    assert np.linalg.cond(JOrthogonal(Signature(2, 1), cond=1e4).random_point()) == pytest.approx(
        1e4, rel=1e-6
    )


@pytest.mark.parametrize("signature", SIGNATURES, ids=str)
def test_logarithm_distance_and_midpoint(signature):
    manifold = JOrthogonal(signature, seed=10)
    X, Y = manifold.random_point(), manifold.random_point()
    S = manifold.random_tangent_vector(X)
    np.testing.assert_allclose(manifold.log(X, manifold.exp(X, S)), S, atol=1e-9)
    np.testing.assert_allclose(manifold.exp(X, manifold.log(X, Y)), Y, atol=1e-9)
    d = manifold.dist(X, Y)
    assert d == pytest.approx(jorth.distance(X, Y, signature), rel=1e-12)
    M = manifold.pair_mean(X, Y)
    np.testing.assert_allclose([manifold.dist(X, M), manifold.dist(M, Y)], d / 2, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # pymanopt divides zero by zero there
@pytest.mark.parametrize("optimizer", [SteepestDescent, ConjugateGradient, TrustRegions])
def test_a_warm_start_at_the_optimum_stays_there(optimizer):
    manifold = JOrthogonal(Signature(3, 2))
    problem = quadratic_problem(manifold, np.eye(5), 0.0)
    result = optimizer(verbosity=0).run(problem, initial_point=np.eye(5))
    assert result.cost == 5
    np.testing.assert_array_equal(result.point, np.eye(5))


GOOD, BAD = np.eye(3), np.zeros((3, 2))
CASES = {
    "point": (lambda m: m.retraction(BAD, GOOD), ValueError, "point must have shape"),
    "step": (lambda m: m.retraction(GOOD, BAD), ValueError, "tangent_vector must have shape"),
    "hessian": (
        lambda m: m.euclidean_to_riemannian_hessian(GOOD, GOOD, BAD, GOOD),
        ValueError,
        r"euclidean_hessian must have shape \(3, 3\) for Signature\(2, 1\)",
    ),
    "a batch": (lambda m: m.exp(np.stack([GOOD] * 2), GOOD), ValueError, "point must have shape"),
    "NaN": (lambda m: m.exp(np.full((3, 3), np.nan), GOOD), ValueError, "must be finite"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case):
    call, error, message = CASES[case]
    with pytest.raises(error, match=message):
        call(JOrthogonal(Signature(2, 1)))
