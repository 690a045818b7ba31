"""Signatures and the trace problem, whose optimum scipy knows."""

import numpy as np
import scipy.linalg

from jorth import Signature

SIGNATURES = [
    Signature(3, 2),
    Signature(2, 4),
    Signature.of([1, -1, 1, 1, -1, 1]),
    Signature.of([-1, 1, -1, -1, 1]),
    Signature.lorentz(4),
    Signature(4, 0),
    Signature(0, 3),
]
INDEFINITE = [signature for signature in SIGNATURES if signature.p and signature.q]


def positive_definite(n, seed, condition=5.0):
    """A symmetric matrix with eigenvalues 1 ... condition."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))
    A = Q * np.geomspace(1.0, condition, n) @ Q.T
    return (A + A.T) / 2


def least_trace(A, signature):
    """min tr(X^T A X) over O(p, q): the sum of |lambda| over the pencil A x = lambda J x."""
    m = scipy.linalg.eigh(np.diag(signature.signs.astype(float)), A, eigvals_only=True)
    return np.abs(1 / m).sum()
