"""Bad input: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest

import jorth
from jorth import Signature

SIG = Signature(2, 1)
TALL = np.array([[1.0, 0], [0, 1], [0.1, 0.2]])
NAN = np.full((3, 3), np.nan)
TWIN = np.array([[1.0, 2], [1, 2], [0.1, 0.2]])

CASES = {
    "eigh, n differs": (lambda: jorth.eigh(np.eye(4), SIG), ValueError, r"A must have shape \(..., 3, 3\) for Signature\(2, 1\)"),
    "eigh, NaN": (lambda: jorth.eigh(NAN, SIG), ValueError, "A must be finite, got 9 NaN or infinite of 9 entries"),
    "eigh, not symmetric": (lambda: jorth.eigh(np.triu(np.ones((3, 3))), SIG), ValueError, r"A must be symmetric, got max \|A - A\^T\| = 1"),
    "eigh, no batch": (lambda: jorth.eigh(np.zeros((0, 3, 3)), SIG), ValueError, r"A must hold at least one matrix, got shape \(0, 3, 3\)"),
    "hsvd, columns differ": (lambda: jorth.hsvd(np.ones((5, 4)), SIG), ValueError, r"G must have shape \(..., m, 3\) for Signature\(2, 1\), got a float64 array of shape \(5, 4\)"),
    "hsvd, light-like null vector": (lambda: jorth.hsvd(np.array([[1.0, 0, 1], [0, 1, 0]]), SIG), ValueError, r"G must have a null space on which x\^T J y is nondegenerate"),
    "hsvd, tolerance": (lambda: jorth.hsvd(np.eye(3), SIG, tolerance=1), ValueError, "tolerance must be None or a number of at least 0 and below 1, got 1"),
    "hyperbolic_qr, too many columns": (lambda: jorth.hyperbolic_qr(np.eye(3), SIG), ValueError, r"1 <= k <= p = 2 .* \(A\^T J A is not positive definite otherwise\), got a float64 array of shape \(3, 3\)"),
    "hyperbolic_qr, dependent": (lambda: jorth.hyperbolic_qr(TWIN, SIG), ValueError, "A must have linearly independent columns, got a smallest singular value of"),
    "hyperbolic_qr, indefinite": (lambda: jorth.hyperbolic_qr(np.array([[1.0], [0], [2]]), SIG), ValueError, r"A\^T J A must be positive definite, got a matrix A whose smallest eigenvalue of A\^T J A relative to A\^T A is -0.6"),
    "indefinite_lstsq, b too short": (lambda: jorth.indefinite_lstsq(TALL, np.ones(2), SIG), ValueError, r"b must have shape \(3,\) or \(3, r\) to go with A, got a float64 array of shape \(2,\)"),
    "indefinite_lstsq, b dtype": (lambda: jorth.indefinite_lstsq(TALL, np.ones(3, np.float32), SIG), TypeError, r"b must have the dtype and device of A \(torch.float64, cpu\), got \(torch.float32, cpu\)"),
    "cholesky_update, neither": (lambda: jorth.cholesky_update(np.eye(3)), ValueError, "add or drop must be rows .*, got neither"),
    "cholesky_update, the other triangle": (lambda: jorth.cholesky_update(np.tril(np.ones((3, 3))), add=np.ones(3)), ValueError, r"R must be upper triangular, got 3 nonzero entries below the diagonal \(lower=True is for the other triangle\)"),
    "cholesky_update, add too long": (lambda: jorth.cholesky_update(np.eye(3), add=np.ones(4)), ValueError, r"add must have shape \(k, 3\) or \(3,\) to go with R, got a float64 array of shape \(4,\)"),
    "cholesky_update, overflow": (lambda: jorth.cholesky_update(1.5e308 * np.eye(1), add=[1.5e308]), ValueError, "R and add must be of a size at which the new factor is finite"),
    "cholesky_update, too much": (lambda: jorth.cholesky_update(np.eye(3), drop=[0.0, 2.0, 0.0]), ValueError, r"relative to the one before, must be above 6.7e-16, got -3"),
    "polar, singular": (lambda: jorth.polar(np.zeros((3, 3)), SIG), jorth.PolishError, "A has no polar decomposition: 1 of 1 are singular"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
