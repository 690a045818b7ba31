"""Indefinite least squares: backward errors over a grid,
forward errors within the condition number at 60 digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jorth import Signature, hyperbolic_qr, indefinite_lstsq
from tests.group.strategies import UNIT, dense_j, signatures
from tests.linalg.reference import TALL_GRID, tall

MIXED = Signature.of([1, -1, 1, 1, -1, 1, -1, 1, 1])


def exact(A, b, sig, x):
    """The solution, its condition bound per unit of relative perturbation,
    and the gradient A^T J (b - A x) at x."""
    with mpmath.workdps(80):
        matrix, right, J = (
            mpmath.matrix(A.tolist()),
            mpmath.matrix(b.tolist()),
            mpmath.diag(sig.signs.tolist()),
        )
        normal = matrix.T * J * matrix
        inverse = mpmath.inverse(normal)
        solution = inverse * (matrix.T * J * right)
        residual = np.array((right - matrix * solution).tolist(), dtype=float)
        pseudo = np.array((inverse * matrix.T).tolist(), dtype=float)
        gradient = np.array(
            (matrix.T * J * (right - matrix * mpmath.matrix(x.tolist()))).tolist(), dtype=float
        )[:, 0]
        inverse = np.array(inverse.tolist(), dtype=float)
        solution = np.array(solution.tolist(), dtype=float)[:, 0]
    size = np.linalg.norm(A, 2)
    # dx = N^-1 A^T J (db - dA x) + N^-1 dA^T J r with N = A^T J A, to first order
    bound = np.linalg.norm(pseudo, 2) * (np.linalg.norm(b) + size * np.linalg.norm(solution))
    bound += np.linalg.norm(inverse, 2) * size * np.linalg.norm(residual)
    return solution, bound, gradient


def backward_error(A, b, sig, x, gradient):
    """The least relative perturbation (dA, db) that x solves exactly, to first order:
    k equations, least norm.

    gradient + dA^T J r - A^T J dA x + A^T J db = 0.
    """
    m, k = A.shape
    r = dense_j(sig) @ (b - A @ x)
    AtJ = A.T * sig.signs
    equations = np.einsum("i,jl->jil", r, np.eye(k)) - np.einsum("ji,l->jil", AtJ, x)
    scaled = np.hstack([equations.reshape(k, m * k) * np.linalg.norm(A), AtJ * np.linalg.norm(b)])
    return np.linalg.norm(np.linalg.lstsq(scaled, -gradient, rcond=None)[0])


def errors(A, b, x):
    """Forward error over what a relative perturbation of n u can do,
    and backward error in units of n u."""
    solution, bound, gradient = exact(A, b, MIXED, x)
    unit = MIXED.n * UNIT
    return np.linalg.norm(x - solution) / (unit * bound), backward_error(
        A, b, MIXED, x, gradient
    ) / unit


@pytest.mark.parametrize(("cond", "closeness"), TALL_GRID)
def test_backward_stable(cond, closeness):
    """A few n u, forward and backward: two plain QR-like steps. Measured: below 0.1 and 0.4 n u."""
    for seed in range(3):
        A = tall(MIXED, 4, cond, closeness, seed)
        b = np.random.default_rng(seed).standard_normal(MIXED.n)
        assert max(errors(A, b, indefinite_lstsq(A, b, MIXED))) <= 4


@given(st.data())
def test_it_is_the_minimum(data):
    """No step from x lowers the form, and hyperbolic QR gives the same x."""
    sig = data.draw(signatures().filter(lambda sig: sig.p > 0))
    k, seed = data.draw(st.integers(1, sig.p)), data.draw(st.integers(0, 2**32))
    A = tall(sig, k, 10.0, 10.0, seed)
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(sig.n)
    x = indefinite_lstsq(A, b, sig)
    least = sig.signs @ (b - A @ x) ** 2
    for step in 0.1 * rng.standard_normal((5, k)):
        assert sig.signs @ (b - A @ (x + step)) ** 2 > least
    Q, R = hyperbolic_qr(A, sig)
    reduced = (Q.T @ (sig.signs * b))[sig.positive[:k]]
    np.testing.assert_allclose(np.linalg.solve(R, reduced), x, rtol=1e-10, atol=1e-11)
