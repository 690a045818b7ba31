"""Coordinates in which the planes of a quadratic f hardly interact.

With X = W Z and W J-orthogonal, f = 1/2 tr(X^T A X D) + <C, X> is the same kind of function of Z,
with W^T A W and W^T C; Z is J-orthogonal, and plane steps on Z are as exact as those on X. Along
K = T J with T skew, f(exp(K) X) has the second derivative <T, A T B>, B = J X D X^T J, and a term
of the gradient. In the frame W, A and B become W^T A W and W^T B W, and planes do not interact by
the former if both are diagonal. In general they cannot be, since W^T J W = J has to hold as well.
The frame that diagonalises the geometric mean A # B treats both alike: if rows are scaled so that
W^T (A # B) W = I, they are inverse to each other. B depends on X, so that the frame is renewed when
X has moved far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jorth.objectives import QuadraticForm
from jorth.solvers.jobcd.anderson import Matrix
from jorth.solvers.jobcd.quadratic_sweeps import SweepForm

SMALLEST = 1e-7
"""The least eigenvalue of a matrix of which a frame is made, relative to the largest."""
FEWEST = 2
RENEWAL = 0.4
"""A frame is renewed after two iterations or more and a path of this length, in units of sqrt(n).

Lengths from 0.3 to 0.8 need the same number of sweeps, and so do frames after every sweep.
"""
LARGEST = 1e4
"""The bound on ||V||_F^2 / n, beyond which the frame X V would cost digits of X."""


@dataclass
class Frame:
    """f in the coordinates Z (n, n) with X = W Z; W is None if it is the identity."""

    W: Matrix | None
    Z: Matrix
    A: Matrix
    C: Matrix
    """(n, 0) if it is zero."""
    D: Matrix | None
    iterations: int = 0
    """The number of iterations in this frame."""
    path: float = 0.0
    """The sum of the norms of their steps."""

    @property
    def point(self) -> Matrix:
        """X."""
        return self.Z if self.W is None else self.W @ self.Z

    @property
    def outdated(self) -> bool:
        """Whether X has moved far from where the frame was made."""
        return self.iterations >= FEWEST and self.path > RENEWAL * math.sqrt(len(self.Z))

    def rise(self, start: Matrix, end: Matrix) -> float:
        """Return f(end) - f(start), formed from end - start, so that values do not cancel."""
        slope = self.A @ ((start + end) / 2)
        if self.D is not None:
            slope = slope @ self.D
        if self.C.size:
            slope += self.C
        return float((end - start).reshape(-1) @ slope.reshape(-1))


def plain_frame(form: QuadraticForm, X: Matrix) -> Frame:
    """Return the coordinates of X (n, n) itself."""
    A, C, D = SweepForm.of(form, "left", len(X))
    return Frame(None, X, A, C, D)


def balanced_frame(form: QuadraticForm, X: Matrix, signs: Matrix) -> Frame:
    """Return the frame that diagonalises A # B at X; the plain one if rounding does not allow it.

    In the coordinates V with W = X V it is (X^T A X) # (J D J). Where A or D is not definite, the
    absolute value with small eigenvalues raised takes its place: any J-orthogonal frame is allowed.
    """
    plain = plain_frame(form, X)
    M = X.T @ (plain.A @ X)
    N = None if plain.D is None else signs[:, None] * plain.D * signs
    whitener = _whitener(M, N)
    V = None if whitener is None else _diagonaliser(whitener, signs)
    if V is None:
        return plain
    W = X @ V
    A = V.T @ (M @ V)
    Z = np.ascontiguousarray(signs[:, None] * V.T * signs)
    return Frame(W, Z, (A + A.T) / 2, W.T @ plain.C, plain.D)


def _whitener(M: Matrix, N: Matrix | None) -> Matrix | None:
    """Return H with H G H^T = I for G = M # N, or M^(1/2) without N; None if there is none.

    With N = S^-T S^-1 and S^T M S = Q diag(w) Q^T it is diag(w^(-1/4)) Q^T S^T.
    """
    S = np.eye(len(M))
    if N is not None:
        other = _absolute(N)
        if other is None:
            return None
        S = other[1] / other[0] ** 0.5
    found = _absolute(S.T @ M @ S)
    return None if found is None else (found[1] / found[0] ** 0.25).T @ S.T


def _absolute(M: Matrix) -> tuple[Matrix, Matrix] | None:
    """Return the absolute eigenvalues, small ones raised, and the eigenvectors of a multiple of M.

    The multiple has entries of at most 1, so that nothing overflows.
    """
    size = float(abs(M).max())
    if not 0 < size < math.inf:
        return None
    values, Q = np.linalg.eigh((M + M.T) / (2 * size))
    floor = SMALLEST * float(abs(values).max())
    return (values**2 + floor**2) ** 0.5, Q


def _diagonaliser(H: Matrix, signs: Matrix) -> Matrix | None:
    """Return V with V^T J V = J and V^T G V diagonal, where H G H^T = I; None if it is too large.

    With H J H^T = U diag(t) U^T it is H^T U |t|^(-1/2).
    """
    pencil = (H * signs) @ H.T
    t, U = np.linalg.eigh((pencil + pencil.T) / 2)
    order = signs.argsort(kind="stable").argsort()  # negative t at the places of the minus signs
    t, U = t[order], U[:, order]
    if not float((t * signs).min()) > 0:
        return None
    V = H.T @ (U / abs(t) ** 0.5)
    # one step of Newton's method for V^T J V = J, of which rounding leaves cond(G) u
    V = V + V @ (np.eye(len(V)) - signs[:, None] * (V.T @ (signs[:, None] * V))) / 2
    return V if float(np.linalg.norm(V)) ** 2 <= LARGEST * len(V) else None
