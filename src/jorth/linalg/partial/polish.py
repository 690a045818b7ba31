"""Ritz vectors made J-orthonormal to rounding, and their eigenvalues once more."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from jorth.linalg.batch import Floats
from jorth.linalg.partial.davidson import Found
from jorth.linalg.partial.options import Subset
from jorth.linalg.partial.problem import Problem
from jorth.signature import Signature


class Whole(Protocol):
    """A function for all eigenpairs (n,) and (n, n) of one dense matrix A (n, n)."""

    def __call__(
        self, A: Floats, *, signs: NDArray[np.int8], shift: float | None
    ) -> tuple[Floats, Floats]: ...


def polished(found: Found, problem: Problem, wanted: Subset, whole: Whole) -> tuple[Floats, Floats]:
    """(lambda (k,), X (n, k)) with X^T J X = diag(I, -I), sorted outwards from the gap."""
    theta = found.theta
    order = np.argsort(np.where(theta > 0, -theta, -1 / theta))
    order = np.concatenate([order[theta[order] > 0], order[theta[order] < 0][::-1]])
    signature = Signature(wanted.positive, wanted.negative)
    X = found.X[order] / np.sqrt(np.abs(theta[order]))[:, None]
    X = _orthonormal(X, problem.signs, signature)
    H = X @ problem.apply(X).T
    values, Y = whole(0.5 * (H + H.T), signs=signature.signs, shift=None)
    X = _orthonormal(Y.T @ X, problem.signs, signature)
    return problem.mu + values, np.ascontiguousarray(X.T)


def _orthonormal(X: Floats, signs: Floats, signature: Signature) -> Floats:
    """Rows near J-orthonormal ones, made so by two Schulz steps."""
    identity = np.eye(len(X))
    for _ in range(2):
        M = (X * signs) @ X.T * signature.signs
        X = (1.5 * identity - 0.5 * M) @ X
    return X
