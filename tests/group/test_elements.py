"""Closure, inverse, transpose, components and exchange,
as properties over random signatures and points."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, component, exchange, inverse, random_point, residual
from tests.group.strategies import UNIT, points, signatures


def size(X):
    return np.linalg.norm(X, 2)


@given(st.data())
def test_inverse_is_the_inverse(data):
    sig = data.draw(signatures())
    X = data.draw(points(sig))
    assert np.abs(inverse(X, sig) @ X - np.eye(sig.n)).max() <= 50 * sig.n * UNIT * size(X) ** 2
    assert residual(inverse(X, sig), sig) <= 50 * sig.n * UNIT


@given(st.data())
def test_components_multiply(data):
    sig = data.draw(signatures())
    X, Y = data.draw(points(sig, 4)), data.draw(points(sig, 4))
    expected = tuple(a * b for a, b in zip(component(X, sig), component(Y, sig), strict=True))
    assert component(X @ Y, sig) == expected


@pytest.mark.parametrize("wanted", list(itertools.product([1, -1], repeat=2)))
def test_all_four_components(wanted):
    sig = Signature.of([1, -1, 1, -1, -1])
    X = random_point(sig, cond=1e6, component=wanted, seed=5)
    assert component(X, sig) == wanted
    det_plus = np.linalg.det(X[np.ix_(sig.positive, sig.positive)])
    det_minus = np.linalg.det(X[np.ix_(sig.negative, sig.negative)])
    assert (np.sign(det_plus), np.sign(det_minus)) == wanted


@given(st.data())
def test_exchange_gives_orthogonal_matrices_and_is_an_involution(data):
    sig = data.draw(signatures())
    X = data.draw(points(sig, 6))
    Q = exchange(X, sig)
    cond = size(X) ** 2
    # the blocks have condition cosh(mu): the error is that of ||X||, not of its square
    assert np.abs(Q.T @ Q - np.eye(sig.n)).max() <= 50 * sig.n * UNIT * size(X)
    assert np.abs(exchange(Q, sig) - X).max() <= 50 * sig.n * UNIT * cond * size(X)


def test_residual_is_scaled_and_sees_a_dropped_sign():
    sig = Signature(1, 1)
    assert residual(np.diag([1.0, 2.0]), sig) == 0.75  # |1 - 4| / 2^2
    assert residual(np.diag([0.5, 0.5]), sig) == 0.75  # |0.25 - 1| / max(1, 0.25)
    rotation = np.array([[0.6, -0.8], [0.8, 0.6]])  # orthogonal, not J-orthogonal
    assert residual(rotation, sig) > 0.9
    assert residual(rotation, Signature(2, 0)) < 4 * UNIT


def test_residual_of_broken_iterates():
    """The diagnostic must not fail on what it diagnoses."""
    sig = Signature(2, 1)
    assert np.isnan(residual(np.full((3, 3), np.nan), sig))
    assert np.isnan(residual(np.full((3, 3), np.inf), sig))
    assert residual(1e200 * np.eye(3), sig) == pytest.approx(1.0)
    batch = np.stack([np.eye(3), np.full((3, 3), np.nan)])
    np.testing.assert_array_equal(residual(batch, sig), [0.0, np.nan])


def test_residual_of_thin_and_batched_matrices():
    sig = Signature(4, 3)
    X = random_point(sig, columns=(2, 1), batch=(3,), seed=1)
    assert X.shape == (3, 7, 3)
    gram = np.diag([1.0, 1.0, -1.0])
    assert residual(X, sig, gram=gram).shape == (3,)
    assert residual(X, sig, gram=gram).max() < 70 * UNIT
    with pytest.raises(ValueError, match="gram is needed for a thin X"):
        residual(X, sig)
