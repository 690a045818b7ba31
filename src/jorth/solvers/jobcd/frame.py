"""Coordinates in which the planes of a quadratic f hardly interact.

With X = W Z and W J-orthogonal, f = 1/2 tr(X^T A X D) + <C, X> is the same kind of function of Z,
with W^T A W and W^T C; Z is J-orthogonal, and plane steps on Z are as exact as those on X. Along
K = T J with T skew, f(exp(K) X) has the second derivative <T, A T B>, B = J X D X^T J, and a term
of the gradient. In the frame W, A and B become W^T A W and W^T B W, and planes do not interact by
the former if both are diagonal. In general they cannot be, since W^T J W = J has to hold as well.
The frame that diagonalises the geometric mean A # B treats both alike: if rows are scaled so that
W^T (A # B) W = I, they are inverse to each other. B depends on X, so that the frame is renewed when
X has moved far.

A alone becomes diagonal in the J-eigenframe, if A - mu J is definite for some mu. Sweeps in it are
cheap (`DiagonalSweep`) and it does not depend on X, but more of them are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from jorth.linalg.definite import definite_factor
from jorth.objectives import QuadraticForm
from jorth.solvers.jobcd.anderson import Matrix, identity_like

SMALLEST = 1e-7
"""The least eigenvalue of a matrix of which a frame is made, relative to the largest."""
FEWEST = 2
RENEWAL = 0.4
"""A frame is renewed after two iterations or more and a path of this length, in units of sqrt(n).

Lengths from 0.3 to 0.8 need the same number of sweeps, and so do frames after every sweep.
"""
LARGEST = 1e4
"""The bound on ||V||_F^2 / n, beyond which the frame X V would cost digits of X."""
OFF_DIAGONAL = 1e-12
"""The bound on what rounding leaves off the diagonal of W^T A W, relative to its largest entry."""


@dataclass
class Frame:
    """f in the coordinates Z (n, n) with X = W Z; W is None if it is the identity.

    A diagonal A is the vector (n,) of its entries.
    """

    W: Matrix | None
    Z: Matrix
    A: Matrix
    C: Matrix | None
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
    def diagonal(self) -> bool:
        """Whether A is diagonal."""
        return bool(self.A.ndim == 1)

    @property
    def outdated(self) -> bool:
        """Whether X has moved far from where the frame was made."""
        return self.iterations >= FEWEST and self.path > RENEWAL * math.sqrt(len(self.Z))

    def rise(self, start: Matrix, end: Matrix) -> float:
        """f(end) - f(start), formed from end - start, so that values do not cancel."""
        middle = (start + end) / 2
        slope = self.A[:, None] * middle if self.diagonal else self.A @ middle
        if self.D is not None:
            slope = slope @ self.D
        if self.C is not None:
            slope += self.C
        return float((end - start).reshape(-1) @ slope.reshape(-1))


@dataclass(frozen=True)
class Coordinates:
    """A form and a point in the arrays that a frame is made of: NumPy on the CPU, or tensors."""

    A: Matrix
    C: Matrix | None
    D: Matrix | None
    X: Matrix
    signs: Matrix

    @classmethod
    def of(cls, form: QuadraticForm, X: Matrix, signs: Matrix) -> Coordinates:
        """The form in the precision and on the device of X."""
        like = form.like(X if isinstance(X, Tensor) else torch.from_numpy(X))
        if isinstance(X, Tensor):
            return cls(like.A, like.C, like.D, X, signs)
        C, D = (None if part is None else part.numpy() for part in (like.C, like.D))
        return cls(like.A.numpy(), C, D, X, signs)

    def plain(self) -> Frame:
        """The coordinates of X itself."""
        return Frame(None, self.X, self.A, self.C, self.D)

    def eigen(self, *, shifts: bool) -> Frame | None:
        """The frame of arrays in which A is diagonal; None if there is no good one.

        With A - mu J = R^T R and R J R^T = U diag(t) U^T it is W = J R^T U |t|^(-1/2), which turns
        A into |t| + mu J; mu is 0 unless ``shifts``.
        """
        size = float(abs(self.A).max())
        if isinstance(self.A, Tensor) or not 0 < size < math.inf:
            return None
        R = definite_factor((self.A + self.A.T) / (2 * size), self.signs, shifts=shifts)
        W = None if R is None else _diagonaliser(R * self.signs, self.signs)
        if W is None:
            return None
        A = W.T @ (self.A @ W)
        values = A.diagonal().copy()
        A.flat[:: len(A) + 1] = 0
        if not float(abs(A).max()) <= OFF_DIAGONAL * float(abs(values).max()):
            return None
        Z = self.signs[:, None] * (W.T @ (self.signs[:, None] * self.X))
        return Frame(W, Z, values, None if self.C is None else W.T @ self.C, self.D)

    def balanced(self) -> Frame:
        """The frame that diagonalises A # B at X; the plain one if rounding does not allow it.

        In the coordinates V with W = X V it is (X^T A X) # (J D J). Where A or D is not definite,
        the absolute value with small eigenvalues raised takes its place: any J-orthogonal frame is
        allowed.
        """
        M = self.X.T @ (self.A @ self.X)
        N = None if self.D is None else self.signs[:, None] * self.D * self.signs
        whitener = _whitener(M, N)
        V = None if whitener is None else _diagonaliser(whitener, self.signs)
        if V is None:
            return self.plain()
        W = self.X @ V
        Z = self.signs[:, None] * V.T * self.signs
        A = V.T @ (M @ V)
        return Frame(W, Z, (A + A.T) / 2, None if self.C is None else W.T @ self.C, self.D)


def _whitener(M: Matrix, N: Matrix | None) -> Matrix | None:
    """H with H G H^T = I for G = M # N, or M^(1/2) without N; None if there is none.

    With N = S^-T S^-1 and S^T M S = Q diag(w) Q^T it is diag(w^(-1/4)) Q^T S^T.
    """
    S = None
    if N is not None:
        other = _absolute(N)
        if other is None:
            return None
        S = other[1] / other[0] ** 0.5
        M = S.T @ M @ S
    found = _absolute(M)
    if found is None:
        return None
    H = (found[1] / found[0] ** 0.25).T
    return H if S is None else H @ S.T


def _absolute(M: Matrix) -> tuple[Matrix, Matrix] | None:
    """The absolute eigenvalues, small ones raised, and the eigenvectors of a multiple of M.

    The multiple has entries of at most 1, so that nothing overflows.
    """
    size = float(abs(M).max())
    if not 0 < size < math.inf:
        return None
    linalg = torch.linalg if isinstance(M, Tensor) else np.linalg
    values, Q = linalg.eigh((M + M.T) / (2 * size))
    floor = SMALLEST * float(abs(values).max())
    return (values**2 + floor**2) ** 0.5, Q


def _diagonaliser(H: Matrix, signs: Matrix) -> Matrix | None:
    """V with V^T J V = J and V^T G V diagonal, where H G H^T = I.

    With H J H^T = U diag(t) U^T it is H^T U |t|^(-1/2).
    """
    pencil = (H * signs) @ H.T
    linalg = torch.linalg if isinstance(H, Tensor) else np.linalg
    t, U = linalg.eigh((pencil + pencil.T) / 2)
    t, U = _in_order_of(signs, t, U)
    if not float((t * signs).min()) > 0:
        return None
    V = H.T @ (U / abs(t) ** 0.5)
    # one step of Newton's method for V^T J V = J, of which rounding leaves cond(G) u
    V = V + V @ (identity_like(V) - signs[:, None] * (V.T @ (signs[:, None] * V))) / 2
    flat = V.reshape(-1)
    return V if float(flat @ flat) <= LARGEST * len(V) else None


def _in_order_of(signs: Matrix, t: Matrix, U: Matrix) -> tuple[Matrix, Matrix]:
    """Ascending t and their vectors, with the negative ones at the places of the minus signs."""
    if isinstance(signs, Tensor):
        order = signs.argsort(stable=True).argsort()
    else:
        order = signs.argsort(kind="stable").argsort()
    return t[order], U[:, order]
