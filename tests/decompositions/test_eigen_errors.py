"""Error bounds of eigenvalues against many digits, and what they are for thin X and operators."""

import mpmath
import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.sparse.linalg import aslinearoperator

from benchmarks.eigh_errors import KINDS, problem, true_errors
from jorth import Signature, eigh, eigh_errors, random_point
from jorth.decompositions.exact_products import residuals
from jorth.decompositions.inclusion import inclusion_radii
from tests.decompositions.reference import positive_definite
from tests.group.strategies import UNIT

SIG = Signature(3, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_hold_and_are_close(kind):
    """The largest bound of a case is within 100 times the largest error, or rounding."""
    for seed in range(8):
        A, sig, shift = problem(kind, seed)
        values, X = eigh(A, sig)
        found = eigh_errors(A, values, X, sig)
        errors = true_errors(A, sig, values, shift)
        assert found.guaranteed
        assert (errors <= found.bounds).all()
        floor = UNIT * np.abs(values).max()
        assert found.bounds.max() <= 100 * max(errors.max(), floor)


@pytest.mark.parametrize("scale", [1e-250, 1e-100, 1e100, 1e250])
def test_scale(scale):
    A = positive_definite(5, 1e3, 0)
    scale = 2.0 ** round(np.log2(scale))
    values, X = eigh(A, SIG)
    found, scaled = eigh_errors(A, values, X, SIG), eigh_errors(scale * A, scale * values, X, SIG)
    np.testing.assert_allclose(scaled.bounds, scale * found.bounds, rtol=1e-12)
    np.testing.assert_allclose(scaled.conditions, found.conditions)
    np.testing.assert_allclose(scaled.relative_conditions, found.relative_conditions)
    np.testing.assert_allclose(scaled.gaps, scale * found.gaps)


def test_wrong_eigenvalues_and_vectors_are_seen():
    """Perturbed pairs: the bounds hold still, since nothing of `eigh` is trusted."""
    rng = np.random.default_rng(0)
    A = positive_definite(5, 10.0, 0)
    exact, X = eigh(A, SIG)
    for size in (1e-12, 1e-8, 1e-4, 1e-3):
        values = exact + size * rng.standard_normal(5)
        found = eigh_errors(A, values, X + size * rng.standard_normal((5, 5)), SIG)
        errors = np.abs(np.sort(values) - np.sort(exact))[np.argsort(np.argsort(values))]
        assert (errors <= found.bounds + 100 * UNIT).all()
        assert found.bounds.max() <= 100 * size
    assert np.isinf(eigh_errors(A, exact, np.ones((5, 5)), SIG).bounds).all()


@pytest.mark.parametrize("size", [1e-16, 1e-17, 1e-25])
def test_errors_below_the_rounding_of_the_eigenvalues(size):
    """Two discs that overlap: 1 - size is 1 in floats, and the bound is not 0 for that."""
    A = np.array([[1.0, size], [size, 1.0]])  # eigenvalues 1 + size and 1 - size
    found = eigh_errors(A, np.ones(2), np.eye(2), Signature(2, 0))
    assert (found.bounds >= size).all()
    assert (found.bounds < 1.01 * size).all()


def test_discs_that_are_apart_by_less_than_rounding():
    """Two eigenvalues one unit of rounding apart, with errors of nearly half of that."""
    gap, off = 2.0**-52, 0.45 * 2.0**-52
    A = np.array([[1.0, off], [off, 1.0 + gap]])
    values = np.diag(A).copy()
    found = eigh_errors(A, values, np.eye(2), Signature(2, 0))
    error = np.hypot(0.5 * gap, off) - 0.5 * gap  # both move away from each other by this
    assert (found.bounds >= error).all()


def test_condition_numbers_are_those_of_perturbations():
    """A change of A along x x^T moves lambda by the condition number, and none moves it more."""
    A = positive_definite(5, 100.0, 1)
    values, X = eigh(A, SIG)
    found = eigh_errors(A, values, X, SIG)
    size = 1e-9 * np.linalg.norm(A, 2)
    rng = np.random.default_rng(2)
    for i, x in enumerate(X.T):
        worst = size * np.outer(x, x) / (x @ x)
        moved = np.abs(eigh(A + worst, SIG)[0] - values)
        assert moved[i] == pytest.approx(size * found.conditions[i], rel=1e-3)
        E = rng.standard_normal((5, 5))
        E = E + E.T
        moved = np.abs(eigh(A + size * E / np.linalg.norm(E, 2), SIG)[0] - values)
        assert (moved <= 1.001 * size * found.conditions).all()
    norm = np.abs(A).sum(axis=0).max()
    expected = found.conditions * norm / np.abs(values)
    np.testing.assert_allclose(found.relative_conditions, expected)


def test_null_vectors_and_zeros_have_infinite_figures():
    """Neither NaN nor a warning: a zero column, a light-like one, A = 0."""
    light = np.array([1.0, 0, 0, 1, 0])
    A, values, X = np.diag([1.0, 2, 5, 3, 4]), np.array([1.0, 2, 5, -3, -4]), np.eye(5)
    for column in (0 * light, light):
        X[:, 1] = column
        found = eigh_errors(A, values, X, SIG)
        assert np.isinf(found.bounds).all()
        np.testing.assert_allclose(found.conditions, [1, np.inf, 1, 1, 1], rtol=100 * UNIT)
        alone = eigh_errors(A, values[:2], X[:, :2], SIG)
        assert np.isinf([alone.bounds[1], alone.conditions[1], alone.relative_conditions[1]]).all()
        assert alone.bounds[0] <= 10 * UNIT
    nothing = eigh_errors(0 * A, 0 * values, np.eye(5), SIG)
    assert np.isinf(nothing.relative_conditions).all()
    assert (nothing.bounds <= UNIT).all()


def test_gaps():
    found = eigh_errors(np.diag([1.0, 2, 5, 3, 4]), [1.0, 2, 5, -3, -4], np.eye(5), SIG)
    np.testing.assert_array_equal(found.gaps, [1, 1, 3, 1, 1])
    alone = eigh_errors(np.diag([1.0, 2, 5, 3, 4]), [2.0], np.eye(5)[:, [1]], SIG)
    assert alone.gaps == np.inf


def test_sparse_matrices_and_operators():
    n = 40
    sig = Signature.of(np.where(np.arange(n) % 3 > 0, 1, -1))
    A = scipy.sparse.diags_array([-1.0, 4.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    A = A + scipy.sparse.diags_array(np.random.default_rng(0).uniform(0, 1, n))
    values, X = eigh(A.toarray(), sig)
    dense = eigh_errors(A.toarray(), values, X, sig)
    sparse = eigh_errors(A.tocsc(), values, X, sig)
    np.testing.assert_allclose(sparse.bounds, dense.bounds, rtol=1e-6)
    np.testing.assert_allclose(sparse.relative_conditions, dense.relative_conditions)
    assert sparse.guaranteed
    operator = eigh_errors(aslinearoperator(A), values, X, sig)
    assert not operator.guaranteed
    assert (operator.bounds >= dense.bounds).all()
    assert (operator.bounds <= 1e4 * UNIT * np.abs(values).max()).all()
    thin = X[:, [0, 5, 7]]
    for matrix in (A.toarray(), A, aslinearoperator(A)):
        found = eigh_errors(matrix, values[[0, 5, 7]], thin, sig)
        assert found.bounds.shape == (3,)
        assert not found.guaranteed
        assert (found.bounds >= dense.bounds[[0, 5, 7]] * (1 - 1e-6)).all()
        assert (found.bounds <= 1e4 * UNIT * np.abs(values).max()).all()
        np.testing.assert_allclose(found.conditions, dense.conditions[[0, 5, 7]])


@pytest.mark.parametrize("scale", [2.0**-800, 2.0**800])
def test_operators_of_any_size(scale):
    A = positive_definite(5, 10.0, 0)
    values, X = eigh(A, SIG)
    for columns in (slice(5), slice(2)):
        found, scaled = (
            eigh_errors(aslinearoperator(size * A), size * values[columns], X[:, columns], SIG)
            for size in (1.0, scale)
        )
        np.testing.assert_allclose(scaled.bounds, scale * found.bounds, rtol=1e-6)


def test_infinite_conditions():
    """Where lambda is zero, also for A = 0, and for a vector with x^T J x = 0."""
    found = eigh_errors(np.zeros((5, 5)), np.zeros(5), np.eye(5), SIG)
    assert np.isinf(found.relative_conditions).all()
    found = eigh_errors(np.eye(5), [1.0, 1, 1, -1, -1], np.diag([1.0, 1, 1, 1, 0]), SIG)
    assert np.isinf(found.bounds).all()
    np.testing.assert_allclose(found.conditions, [1, 1, 1, 1, np.inf])


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, aslinearoperator])
def test_complex_numbers_are_refused(form):
    with pytest.raises(TypeError, match=r"A must hold real numbers, got a.* complex128"):
        eigh_errors(form(1j * np.eye(5)), np.ones(5), np.eye(5), SIG)


def test_thin_vectors_of_a_residual():
    """The bound for a vector off by delta is of first order in delta, the error of second."""
    A = positive_definite(5, 10.0, 0)
    values, X = eigh(A, SIG)
    x = X[:, :1] + 1e-6 * X[:, 1:2]
    found = eigh_errors(A, values[:1], x, SIG)
    R = A @ x - SIG.signs[:, None] * x * values[0]
    assert found.bounds[0] == pytest.approx(np.linalg.norm(R) * np.linalg.norm(x), rel=1e-5)


def test_batches_tensors_and_float32():
    A = np.stack([positive_definite(5, 10.0, k) for k in range(6)]).reshape(2, 3, 5, 5)
    values, X = eigh(torch.from_numpy(A).float(), SIG)
    found = eigh_errors(torch.from_numpy(A).float(), values, X, SIG)
    assert found.bounds.shape == found.gaps.shape == (2, 3, 5)
    assert found.bounds.dtype == torch.float64
    single = torch.from_numpy(A).float().double().numpy()
    exact = eigh(single, SIG)[0]
    errors = np.abs(values.numpy().astype(float) - exact)
    assert (errors <= found.bounds.numpy() + 1e-14).all()
    assert found.bounds.max() < 1e-5
    one = eigh_errors(single[1, 2], values[1, 2].double().numpy(), X[1, 2].double().numpy(), SIG)
    np.testing.assert_array_equal(one.bounds, found.bounds[1, 2].numpy())


def test_semidefinite_and_negative_pencils():
    G = np.random.default_rng(0).standard_normal((2, 5))
    for A in (G.T @ G, -G.T @ G, -positive_definite(5, 1e4, 0)):
        values, X = eigh(A, SIG)
        found = eigh_errors(A, values, X, SIG)
        assert (found.bounds <= 1e4 * UNIT * np.linalg.norm(X, 2) ** 2).all()


@pytest.mark.parametrize("n", [1, 2, 17, 64])
def test_residuals_to_twice_the_precision(n):
    rng = np.random.default_rng(n)
    D = rng.permutation(10.0 ** np.linspace(0, -12, n))
    A = D[:, None] * rng.uniform(-1, 1, (n, n)) * D
    X = rng.standard_normal((n, 3)) / D[:, None]
    J_X = rng.permutation(np.resize([1.0, -1.0], n))[:, None] * X
    values = np.array([1.0, 1e-7, -1e-20])
    with mpmath.workdps(80):
        products = mpmath.matrix(A.tolist()) * mpmath.matrix(X.tolist())
        terms = np.array(mpmath.matrix(J_X.tolist()).tolist()) * [mpmath.mpf(v) for v in values]
        exact = np.array(products.tolist()) - terms
    for matrix in (A, scipy.sparse.csr_array(A)):
        R, doubt = residuals(matrix, X, J_X, values)
        off = np.array(np.abs(exact - R).astype(float))
        assert (off <= doubt).all()
        size = np.abs(A) @ np.abs(X) + np.abs(J_X * values)
        assert (doubt <= 2 * UNIT * np.abs(R) + 1e-9 * UNIT * size.max(axis=0)).all()


def test_a_matrix_whose_eigenvectors_are_long():
    """||X||^2 = 1e8: the bounds are those of the condition, and hold."""
    Y = random_point(SIG, cond=1e8, seed=0)
    A = Y.T @ np.diag([1.0, 2, 3, 4, 5]) @ Y
    A = (A + A.T) / 2
    values, X = eigh(A, SIG)
    found = eigh_errors(A, values, X, SIG)
    assert (true_errors(A, SIG, values, 0.0) <= found.bounds).all()
    assert found.bounds.max() <= 100 * UNIT * np.linalg.norm(A, 2) * found.conditions.max()


def test_overlapping_discs_share_their_union():
    E = np.diag([0.9, 0.3])
    np.testing.assert_allclose(
        inclusion_radii(np.array([0.0, 2.0]), E, np.eye(2), np.ones(2)), [0.9, 0.3], rtol=1e-8
    )
    np.testing.assert_allclose(
        inclusion_radii(np.array([0.0, 1.0]), E, np.eye(2), np.ones(2)), [1.3, 1.9], rtol=1e-8
    )


def test_bounds_are_of_second_order_in_the_off_diagonal_elements():
    """H = [[0, e], [e, 1]] has the eigenvalues -e^2 and 1 + e^2, nearly."""
    e = 1e-4
    E = np.array([[0.0, e], [e, 0.0]])
    found = inclusion_radii(np.array([0.0, 1.0]), E, np.eye(2), np.ones(2))
    exact = np.abs(np.linalg.eigvalsh([[0.0, e], [e, 1.0]]) - [0.0, 1.0])
    assert (exact <= found).all()
    assert (found <= 1.01 * exact).all()
    assert np.isinf(inclusion_radii(np.zeros(2), E, np.ones((2, 2)), np.ones(2))).all()
