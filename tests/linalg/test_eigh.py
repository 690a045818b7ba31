"""A x = lambda J x: against 60 digits, against scipy, and the answer where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, eigh, inverse, random_point, residual
from tests.group.strategies import UNIT, signatures
from tests.linalg.reference import orthogonal, pencil_eigenvalues, positive_definite

MIXED = Signature.of([1, -1, 1, 1, -1, -1, 1, -1, 1, 1])


def check(A, sig):
    """X^T J X = J and X^T A X = J diag(lambda), in the order that is promised."""
    values, X = eigh(A, sig)
    size = np.linalg.norm(X, 2) ** 2
    assert residual(X, sig) <= 20 * sig.n * UNIT  # measured: 1.5 n u
    defect = X.T @ A @ X - np.diag(sig.signs * values)
    assert np.abs(defect).max() <= 60 * sig.n * UNIT * np.linalg.norm(A, 2) * size  # measured: 5
    assert (np.diff(values[sig.positive]) >= 0).all()
    assert (np.diff(values[sig.negative]) <= 0).all()
    if sig.p and sig.q:
        assert values[sig.positive[0]] > values[sig.negative[0]]
    return values, X


def perturbation(A, X, values, sig):
    """n u ||A - mu J|| ||x_i||^2:
    what a backward error of a few u does to each eigenvalue, mu between them."""
    return (
        sig.n
        * UNIT
        * (np.linalg.norm(A, 2) + np.abs(values).max())
        * np.linalg.norm(X, axis=0) ** 2
    )


@given(st.data())
def test_properties(data):
    sig = data.draw(signatures())
    A = positive_definite(
        sig.n, 10.0 ** data.draw(st.floats(0, 8)), data.draw(st.integers(0, 2**32))
    )
    values, X = check(A, sig)
    assert (np.sign(values) == sig.signs).all()
    # the minimum of tr(Z^T A Z) over J-orthogonal Z
    assert np.abs(values).sum() == pytest.approx(np.trace(X.T @ A @ X), rel=1e-13)


@pytest.mark.parametrize("cond", [1e3, 1e6, 1e10, 1e13])
@pytest.mark.parametrize(
    "sig", [MIXED, Signature(7, 3), Signature(1, 9), Signature(10, 0), Signature(0, 10)], ids=repr
)
def test_against_sixty_digits(sig, cond):
    """n u cond(A) for the values; X is a product of rotations and boosts, as accurate as each."""
    A = positive_definite(10, cond, 0)
    values, X = check(A, sig)
    np.testing.assert_allclose(np.sort(values), pencil_eigenvalues(A, sig), rtol=10 * cond * UNIT)
    assert residual(X, sig) <= (5 if sig.p and sig.q else 20) * sig.n * UNIT


@pytest.mark.parametrize("seed", range(3))
def test_graded_matrices_keep_every_eigenvalue(seed):
    """A = D B D with D over twelve orders: relative accuracy does not depend on D."""
    rng = np.random.default_rng(seed)
    D = rng.permutation(np.geomspace(1, 1e-12, MIXED.n))
    A = D[:, None] * positive_definite(MIXED.n, 100.0, seed) * D
    values, _ = check(A, MIXED)
    np.testing.assert_allclose(
        np.sort(values), pencil_eigenvalues(A, MIXED, digits=120), rtol=1e-13
    )


def planted(sig, gap, cond, seed, middle=20.0):
    """A with known eigenvalues around ``middle``, all of one sign: A itself is indefinite."""
    rng = np.random.default_rng(seed)
    values = np.empty(sig.n)
    values[sig.positive] = middle + gap / 2 + np.sort(rng.uniform(0, 3, sig.p))
    values[sig.negative] = middle - gap / 2 - np.sort(rng.uniform(0, 8, sig.q))
    Y = inverse(random_point(sig, cond=cond, seed=seed), sig)
    A = Y.T @ np.diag(sig.signs * values) @ Y
    return (A + A.T) / 2, values


@pytest.mark.parametrize("gap", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize(
    "sig", [MIXED, Signature(9, 1), Signature(1, 9), Signature(1, 1)], ids=repr
)
def test_definite_pencil(sig, gap):
    for middle in (20.0, -30.0):
        A, _ = planted(sig, gap, 10.0, 2, middle)
        assert np.linalg.eigvalsh(A)[0] < 0
        values, X = check(A, sig)
        expected = pencil_eigenvalues(A, sig, middle)
        order = np.argsort(values)
        assert (
            np.abs(values - expected[np.argsort(order)]) <= 4 * perturbation(A, X, values, sig)
        ).all()


@pytest.mark.parametrize("sign", [1, -1])
def test_one_sign_takes_every_symmetric_matrix(sign):
    A = orthogonal(6, np.random.default_rng(3))
    A = A + A.T
    sig = Signature.of([sign] * 6)
    values, _ = check(A, sig)
    np.testing.assert_allclose(np.sort(sign * values), np.linalg.eigvalsh(A), atol=1e-14)


NOT_DEFINITE = {
    "no gap": np.diag(
        [1.0, 2.0, -1.0, -2.0]
    ),  # lambda = 1, 2 at the plus signs, 1, 2 at the minus signs
    "complex": np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)),  # lambda = +-i
    "generic": np.array([[1.0, 2, 3, 4], [2, -1, 1, 0], [3, 1, 2, 1], [4, 0, 1, -5]]),
}


@pytest.mark.parametrize("name", NOT_DEFINITE)
def test_not_definite(name):
    A = NOT_DEFINITE[name]
    # an independent look: no shift on a grid makes A - mu J semidefinite
    for mu in np.linspace(-10, 10, 401):
        values = np.linalg.eigvalsh(A - mu * np.diag([1.0, 1, -1, -1]))
        assert values[0] < -1e-3
        assert values[-1] > 1e-3
    with pytest.raises(ValueError, match="A must form a definite pencil with J: A - mu J positive"):
        eigh(A, Signature(2, 2))
