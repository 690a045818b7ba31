"""Semidefinite pencils: A - mu J is positive semidefinite for one mu and definite for none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jorth.linalg.batch import Floats
from jorth.linalg.definite import subtract_shift
from jorth.linalg.hsvd import one_sided_jacobi

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Kernel:
    """A positive semidefinite A - mu J = R^T R of rank r < n, and its null space.

    Attributes:
        shift: mu.
        R: (r, n).
        basis: (n, n - r), an orthonormal basis of the null space.
        forms: (n - r,), the eigenvalues of basis^T J basis, whose eigenvectors are in ``basis``.
        doubt: What rounding may have added to a form.
    """

    shift: float
    R: Floats
    basis: Floats
    forms: Floats
    doubt: float


def find_kernel(
    A: Floats, signs: NDArray[np.int8], shift: float, tolerance: float, *, exact: bool
) -> Kernel | None:
    """Return the kernel of A - shift J, or None if that has a negative eigenvalue or full rank.

    Eigenvalues count as zero up to ``tolerance`` times the largest, after the rows and columns are
    scaled by the roots of |a_ii| + |shift|: a grading of A does not matter. If the shift is not
    ``exact`` it may be off by the square root of that, where a null vector z has z^T J z = 0.
    """
    scale = np.sqrt(np.abs(A.diagonal()) + abs(shift))
    scale[scale == 0] = 1.0
    values, V = np.linalg.eigh(subtract_shift(A, signs, shift) / scale / scale[:, None])
    zero = tolerance * max(float(values[-1]), 0.0)
    rank = int(np.count_nonzero(values > zero))
    if values[0] < -zero or rank == len(A):
        return None
    basis = np.linalg.qr(V[:, : len(A) - rank] / scale[:, None])[0]
    forms, W = np.linalg.eigh(basis.T @ (signs[:, None] * basis))
    doubt = min(10 * zero / values[-rank], tolerance**0.5) if rank else 0.0
    doubt = max(doubt, 10 * tolerance, 10 * len(A) * EPS, 0.0 if exact else tolerance**0.5)
    R = np.sqrt(values[len(A) - rank :, None]) * V[:, len(A) - rank :].T * scale
    return Kernel(shift, R, basis @ W, forms, doubt)


def diagonalise(kernel: Kernel, signs: NDArray[np.int8]) -> tuple[Floats, Floats]:
    """Return (theta, X) with X^T J X = J and X^T R^T R X = J diag(theta), or raise a ValueError.

    The null space and its J-orthogonal complement are invariant. The first has theta = 0; on the
    second R has full column rank and J-Jacobi applies. Not sorted by sign.
    """
    if np.abs(kernel.forms).min() <= kernel.doubt:
        raise ValueError(
            "no J-orthogonal X diagonalises A: A - mu J is semidefinite for a mu, and has a null "
            "vector z with z^T J y = 0 for all of its null vectors y"
        )
    zeros = kernel.basis / np.sqrt(np.abs(kernel.forms))
    others = np.linalg.qr(signs[:, None] * kernel.basis, mode="complete")[0][:, len(kernel.forms) :]
    forms, W = np.linalg.eigh(others.T @ (signs[:, None] * others))
    others = others @ (W / np.sqrt(np.abs(forms)))
    found = np.concatenate([np.sign(kernel.forms), np.sign(forms)]).astype(np.int8)
    theta = np.zeros(len(signs))
    X = zeros
    if len(forms):
        _, S, turn = one_sided_jacobi(kernel.R @ others, np.sign(forms).astype(np.int8))
        theta[len(zeros.T) :] = np.sign(forms) * S**2
        X = np.hstack([zeros, others @ turn])
    order = np.argsort(-found, kind="stable")
    places = np.argsort(-signs, kind="stable")
    values, Y = np.empty_like(theta), np.empty_like(X)
    values[places], Y[:, places] = theta[order], X[:, order]
    for _ in range(2):  # the columns were J-orthonormal to u / |form|
        Y = 1.5 * Y - 0.5 * Y @ (signs[:, None] * (Y.T @ (signs[:, None] * Y)))
    return values, Y
