"""The hyperbolic SVD of a matrix with a null space: wide, or with dependent columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jorth.decompositions.batch import Floats


def equilibrated(G: Floats) -> Floats:
    """G with rows and columns scaled to about equal size, so that a grading is no deficiency."""
    for axis in (1, 0, 1, 0):
        largest = np.abs(G).max(axis=axis, keepdims=True)
        G = G / np.where(largest > 0, largest, 1.0)
    return G


def j_orthonormal_split(
    G: Floats, signs: NDArray[np.int8], tolerance: float
) -> tuple[Floats, NDArray[np.int8], Floats, NDArray[np.int8]]:
    """Two bases that make up a J-orthogonal matrix: of the J-complement of null(G), and of null(G).

    With orthonormal bases Q1 of the row space of G (r, its rank) and Q2 of its null space, the
    J-complement of null(G) is J Q1. The eigenvectors of Q1^T J Q1 and Q2^T J Q2 make both
    J-orthonormal, unless an eigenvalue is zero: a null vector x then has x^T J y = 0 for every
    other one.

    Args:
        G: (m, n), not zero.
        signs: (n,).
        tolerance: Pivots of the equilibrated G below this, relative to the largest, are zero.

    Returns:
        (n, r) with the signs of its columns, and (n, n - r) with those of its own.
    """
    row_space, null_space, condition = _row_and_null_space(G, tolerance)
    outer = signs[:, None] * row_space
    forms = [np.linalg.eigh(Q.T @ (signs[:, None] * Q)) for Q in (outer, null_space)]
    squares = np.concatenate([values for values, _ in forms])
    smallest = float(np.abs(squares).min())
    # a change of G by the tolerance turns its null space by this much
    least = min(4 * tolerance * condition, 0.5)
    if smallest <= least or np.count_nonzero(squares > 0) != np.count_nonzero(signs > 0):
        raise ValueError(
            "G must have a null space on which x^T J y is nondegenerate, or else there is no "
            "hyperbolic SVD (there is one if G J G^T has the rank of G), got a null vector x with "
            f"|x^T J y| <= {max(smallest, least):.1g} ||x|| ||y|| for all null vectors y"
        )
    outer, null_space = (
        Q @ (vectors / np.sqrt(np.abs(values)))
        for Q, (values, vectors) in zip((outer, null_space), forms, strict=True)
    )
    kinds = [np.sign(values).astype(np.int8) for values, _ in forms]
    return outer, kinds[0], null_space, kinds[1]


def _row_and_null_space(G: Floats, tolerance: float) -> tuple[Floats, Floats, float]:
    """Orthonormal bases of the row space and the null space, and the ratio of the pivots kept.

    Rows of G that span its row space are found after equilibration. They are scaled to equal size,
    which leaves the null space as it is, and sorted by the sizes of the columns of G, for which
    Householder QR preserves a grading.
    """
    from scipy.linalg import qr

    R, rows = qr(equilibrated(G).T, mode="r", pivoting=True)
    pivots = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(pivots > tolerance * pivots[0]))
    spanning = G[rows[:rank]] / np.abs(G[rows[:rank]]).max(axis=1, keepdims=True)
    order = np.argsort(-np.abs(spanning).max(axis=0), kind="stable")
    Q = np.empty((G.shape[1], G.shape[1]))
    Q[order] = qr(spanning[:, order].T, pivoting=True)[0]
    return Q[:, :rank], Q[:, rank:], float(pivots[0] / pivots[rank - 1])
