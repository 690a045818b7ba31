"""Bad input: the error names the argument, what it got and what it expects."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature

SIG = Signature(2, 1)
TALL = np.array([[1.0, 0], [0, 1], [0.1, 0.2]])
NAN = np.full((3, 3), np.nan)
TWIN = np.array([[1.0, 2], [1, 2], [0.1, 0.2]])

CASES = {
    "eigh, n differs": (lambda: jorth.eigh(np.eye(4), SIG), ValueError, r"A must have shape \(..., 3, 3\) for Signature\(2, 1\)"),
    "eigh, bool": (lambda: jorth.eigh(np.eye(3, dtype=bool), SIG), TypeError, "A must hold real numbers"),
    "eigh, NaN": (lambda: jorth.eigh(NAN, SIG), ValueError, "A must be finite, got 9 NaN or infinite of 9 entries"),
    "eigh, no signature": (lambda: jorth.eigh(np.eye(3), (2, 1)), TypeError, "signature must be a jorth.Signature, got "),
    "eigh, not symmetric": (lambda: jorth.eigh(np.triu(np.ones((3, 3))), SIG), ValueError, r"A must be symmetric, got max \|A - A\^T\| = 1"),
    "eigh, one of a batch": (lambda: jorth.eigh(np.stack([1e9 * np.eye(3), np.triu(np.ones((3, 3)))]), SIG), ValueError, "A must be symmetric"),
    "eigh, no batch": (lambda: jorth.eigh(np.zeros((0, 3, 3)), SIG), ValueError, r"A must hold at least one matrix, got shape \(0, 3, 3\)"),
    "hyperbolic_qr, no batch": (lambda: jorth.hyperbolic_qr(np.zeros((0, 3, 2)), SIG), ValueError, "A must hold at least one matrix"),
    "polar, no batch": (lambda: jorth.polar(np.zeros((0, 3, 3)), SIG), ValueError, "A must hold at least one matrix"),
    "hsvd, columns differ": (lambda: jorth.hsvd(np.ones((5, 4)), SIG), ValueError, r"G must have shape \(..., m, 3\) for Signature\(2, 1\), got a float64 array of shape \(5, 4\)"),
    "hsvd, no rows": (lambda: jorth.hsvd(np.ones((0, 3)), SIG), ValueError, "G must hold at least one matrix"),
    "hsvd, a vector": (lambda: jorth.hsvd(np.ones(3), SIG), ValueError, "G must have shape"),
    "hsvd, infinite": (lambda: jorth.hsvd(np.full((3, 3), np.inf), SIG), ValueError, "G must be finite"),
    "hsvd, complex": (lambda: jorth.hsvd(torch.eye(3, dtype=torch.complex64), SIG), TypeError, "G must hold real numbers"),
    "hsvd, no signature": (lambda: jorth.hsvd(np.eye(3), "2, 1"), TypeError, "signature must be a jorth.Signature"),
    "hsvd, light-like null vector": (lambda: jorth.hsvd(np.array([[1.0, 0, 1], [0, 1, 0]]), SIG), ValueError, r"G must have a null space on which x\^T J y is nondegenerate"),
    "hsvd, tolerance": (lambda: jorth.hsvd(np.eye(3), SIG, tolerance=1), ValueError, "tolerance must be None or a number of at least 0 and below 1, got 1"),
    "hyperbolic_qr, rows differ": (lambda: jorth.hyperbolic_qr(np.ones((4, 2)), SIG), ValueError, r"A must have shape \(..., 3, k\) with 1 <= k <= p = 2 for Signature\(2, 1\)"),
    "hyperbolic_qr, too many columns": (lambda: jorth.hyperbolic_qr(np.eye(3), SIG), ValueError, r"1 <= k <= p = 2 .* \(A\^T J A is not positive definite otherwise\), got a float64 array of shape \(3, 3\)"),
    "hyperbolic_qr, no columns": (lambda: jorth.hyperbolic_qr(np.ones((3, 0)), SIG), ValueError, "A must have shape"),
    "hyperbolic_qr, NaN": (lambda: jorth.hyperbolic_qr(NAN[:, :2], SIG), ValueError, "A must be finite"),
    "hyperbolic_qr, dependent": (lambda: jorth.hyperbolic_qr(TWIN, SIG), ValueError, "A must have linearly independent columns, got a smallest singular value of"),
    "hyperbolic_qr, zero": (lambda: jorth.hyperbolic_qr(np.zeros((3, 2)), SIG), ValueError, "A must have linearly independent columns"),
    "hyperbolic_qr, indefinite": (lambda: jorth.hyperbolic_qr(np.array([[1.0], [0], [2]]), SIG), ValueError, r"A\^T J A must be positive definite, got a matrix A whose smallest eigenvalue of A\^T J A relative to A\^T A is -0.6"),
    "hyperbolic_qr, null": (lambda: jorth.hyperbolic_qr(np.array([[0.6], [0.8], [1]]), SIG), ValueError, r"A\^T J A must be positive definite"),
    "indefinite_lstsq, indefinite": (lambda: jorth.indefinite_lstsq(np.array([[1.0], [0], [2]]), np.ones(3), SIG), ValueError, r"smallest eigenvalue of A\^T J A relative to A\^T A is -0.6"),
    "indefinite_lstsq, null": (lambda: jorth.indefinite_lstsq(np.array([[0.6], [0.8], [1]]), np.ones(3), SIG), ValueError, r"A\^T J A must be positive definite"),
    "indefinite_lstsq, dependent": (lambda: jorth.indefinite_lstsq(TWIN, np.ones(3), SIG), ValueError, "A must have linearly independent columns"),
    "indefinite_lstsq, b too short": (lambda: jorth.indefinite_lstsq(TALL, np.ones(2), SIG), ValueError, r"b must have shape \(3,\) or \(3, r\) to go with A, got a float64 array of shape \(2,\)"),
    "indefinite_lstsq, b too deep": (lambda: jorth.indefinite_lstsq(TALL, np.ones((3, 1, 1)), SIG), ValueError, r"b must have shape \(3,\) or \(3, r\)"),
    "indefinite_lstsq, b no batch": (lambda: jorth.indefinite_lstsq(np.stack([TALL] * 2), np.ones(3), SIG), ValueError, r"b must have shape \(2, 3,\) or \(2, 3, r\)"),
    "indefinite_lstsq, b NaN": (lambda: jorth.indefinite_lstsq(TALL, NAN[0], SIG), ValueError, "b must be finite"),
    "indefinite_lstsq, b dtype": (lambda: jorth.indefinite_lstsq(TALL, np.ones(3, np.float32), SIG), TypeError, r"b must have the dtype and device of A \(torch.float64, cpu\), got \(torch.float32, cpu\)"),
    "cholesky_update, not square": (lambda: jorth.cholesky_update(TALL, add=TALL[0]), ValueError, r"R must have shape \(..., n, n\), got a float64 array of shape \(3, 2\)"),
    "cholesky_update, neither": (lambda: jorth.cholesky_update(np.eye(3)), ValueError, "add or drop must be rows .*, got neither"),
    "cholesky_update, the other triangle": (lambda: jorth.cholesky_update(np.tril(np.ones((3, 3))), add=np.ones(3)), ValueError, r"R must be upper triangular, got 3 nonzero entries below the diagonal \(lower=True is for the other triangle\)"),
    "cholesky_update, lower": (lambda: jorth.cholesky_update(np.triu(np.ones((3, 3))), add=np.ones(3), lower=True), ValueError, r"R must be lower triangular, got 3 nonzero entries above the diagonal \(lower=False"),
    "cholesky_update, R NaN": (lambda: jorth.cholesky_update(NAN, add=np.ones(3)), ValueError, "R must be finite, got 9 NaN or infinite of 9 entries"),
    "cholesky_update, no batch": (lambda: jorth.cholesky_update(np.zeros((0, 3, 3)), add=np.zeros((0, 3))), ValueError, "R must hold at least one matrix"),
    "cholesky_update, add too long": (lambda: jorth.cholesky_update(np.eye(3), add=np.ones(4)), ValueError, r"add must have shape \(k, 3\) or \(3,\) to go with R, got a float64 array of shape \(4,\)"),
    "cholesky_update, drop a column": (lambda: jorth.cholesky_update(np.eye(3), drop=np.ones((3, 1))), ValueError, r"drop must have shape \(k, 3\) or \(3,\)"),
    "cholesky_update, add no batch": (lambda: jorth.cholesky_update(np.stack([np.eye(3)] * 2), add=np.ones(3)), ValueError, r"add must have shape \(2, k, 3\) or \(2, 3\) to go with R"),
    "cholesky_update, add a number": (lambda: jorth.cholesky_update(np.eye(1), add=np.array(2.0)), ValueError, r"add must have shape \(k, 1\) or \(1,\)"),
    "cholesky_update, add NaN": (lambda: jorth.cholesky_update(np.eye(3), add=NAN), ValueError, "add must be finite"),
    "cholesky_update, add dtype": (lambda: jorth.cholesky_update(np.eye(3), add=np.ones(3, np.float32)), TypeError, "add must have the dtype and device of R"),
    "cholesky_update, overflow": (lambda: jorth.cholesky_update(1.5e308 * np.eye(1), add=[1.5e308]), ValueError, "R and add must be of a size at which the new factor is finite"),
    "cholesky_update, too much": (lambda: jorth.cholesky_update(np.eye(3), drop=[0.0, 2.0, 0.0]), ValueError, r"relative to the one before, must be above 6.7e-16, got -3"),
    "polar, n differs": (lambda: jorth.polar(np.eye(4), SIG), ValueError, r"A must have shape \(..., 3, 3\)"),
    "polar, NaN": (lambda: jorth.polar(NAN, SIG), ValueError, "A must be finite"),
    "polar, a list": (lambda: jorth.polar([[1.0]], SIG), ValueError, "A must have shape .*, got list of length 1"),
    "polar, singular": (lambda: jorth.polar(np.zeros((3, 3)), SIG), jorth.PolishError, "A has no polar decomposition: 1 of 1 are singular"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_error_names_the_argument(name):
    call, error, message = CASES[name]
    with pytest.raises(error, match=message):
        call()
