"""Coordinates in which the planes of a quadratic f hardly interact.

With X = W Z and W J-orthogonal, f = 1/2 tr(X^T A X D) + <C, X> is the same kind of function of Z,
with W^T A W and W^T C; Z is J-orthogonal, and plane steps on Z are as exact as those on X. Along
K = T J with T skew, f(exp(K) X) has the second derivative <T, A T B>, B = J X D X^T J, and a term
of the gradient. In the frame W, A and B become W^T A W and W^T B W, and planes do not interact by
the former if both are diagonal. In general they cannot be, since W^T J W = J has to hold as well.
The frame that diagonalises the geometric mean A # B treats both alike: if rows are scaled so that
W^T (A # B) W = I, they are inverse to each other.

Where A or D is not definite, its absolute value with small eigenvalues raised takes its place: any
J-orthogonal frame is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.objectives import QuadraticForm

SMALLEST = 1e-7
"""The least eigenvalue of a matrix of which a frame is made, relative to the largest."""
RENEWAL = 0.4
"""The length of the path after which a frame is renewed, in units of sqrt(n).

Lengths from 0.3 to 1 needed the same number of sweeps.
"""
LARGEST = 1e4
"""The bound on ||V||_F^2 / n, beyond which the frame X V would cost digits of X."""


@dataclass
class Frame:
    """f in the coordinates Z (n, n) with X = W Z; W is None if it is the identity."""

    W: Tensor | None
    Z: Tensor
    A: Tensor
    C: Tensor | None
    D: Tensor | None
    path: float = 0.0
    """The sum of the norms of all steps since the frame was made."""

    @property
    def point(self) -> Tensor:
        """X."""
        return self.Z if self.W is None else self.W @ self.Z

    @property
    def outdated(self) -> bool:
        return self.path > RENEWAL * math.sqrt(len(self.Z))

    def rise(self, start: Tensor, end: Tensor) -> float:
        """f(end) - f(start), formed from end - start, so that values do not cancel."""
        slope = self.A @ ((start + end) / 2)
        if self.D is not None:
            slope = slope @ self.D
        if self.C is not None:
            slope += self.C
        return float(torch.dot((end - start).flatten(), slope.flatten()))

    def move(self, Z: Tensor, length: float) -> None:
        """Go to Z; the step has this length."""
        self.Z = Z
        self.path += length


def plain_frame(form: QuadraticForm, X: Tensor) -> Frame:
    """The coordinates of X itself."""
    return Frame(None, X.clone(), form.A, form.C, form.D)


def balanced_frame(form: QuadraticForm, X: Tensor, signs: Tensor) -> Frame:
    """The frame W = X V that diagonalises A # (J X D X^T J) at X (n, n).

    In the coordinates V it is (X^T A X) # (J D J). Returns the plain frame if there is none.
    """
    AX = form.A @ X
    M = X.mT @ AX
    N = None if form.D is None else signs[:, None] * form.D * signs
    V = _diagonaliser(M, N, signs)
    if V is None:
        return plain_frame(form, X)
    W = X @ V
    A = V.mT @ M @ V
    Z = (signs[:, None] * V.mT * signs).contiguous()
    C = None if form.C is None else W.mT @ form.C
    return Frame(W, Z, (A + A.mT) / 2, C, form.D)


def _diagonaliser(M: Tensor, N: Tensor | None, signs: Tensor) -> Tensor | None:
    """V with V^T J V = J and V^T (|M| # |N|) V diagonal; None if there is none in this precision.

    With the mean G = L L^T and L^-1 J L^-T = U diag(t) U^T it is L^-T U |t|^(-1/2).
    """
    if not bool(torch.isfinite(M).all()):
        return None
    L, info = torch.linalg.cholesky_ex(_geometric_mean(M, N))
    if int(info):
        return None
    half = torch.linalg.solve_triangular(L, torch.diag(signs), upper=False)
    pencil = torch.linalg.solve_triangular(L, half.mT, upper=False)
    t, U = torch.linalg.eigh((pencil + pencil.mT) / 2)
    order = torch.empty_like(signs, dtype=torch.int64)
    order[signs.argsort(stable=True)] = torch.arange(len(signs), device=signs.device)
    t, U = t[order], U[:, order]
    if not bool((t * signs > 0).all()):
        return None
    V = torch.linalg.solve_triangular(L.mT, U / t.abs().sqrt(), upper=True)
    # one step of Newton's method for V^T J V = J, of which rounding leaves cond(G) u
    V = V @ ((3 * torch.eye(len(V)).to(V) - signs[:, None] * (V.mT @ (signs[:, None] * V))) / 2)
    small = float(V.square().sum()) <= LARGEST * len(V)
    return V if small else None


def _geometric_mean(M: Tensor, N: Tensor | None) -> Tensor:
    """M # N = H (H^-1 M H^-1)^(1/2) H with H = N^(1/2), of the absolute values; None stands for I.

    A multiple of it will do, so M is scaled to the size of N, and nothing overflows.
    """
    scaled = M / M.abs().max().clamp_min(torch.finfo(M.dtype).tiny)
    if N is None:
        return _power(scaled, 0.5)
    other = N / N.abs().max().clamp_min(torch.finfo(N.dtype).tiny)
    root, inverse = _power(other, 0.5), _power(other, -0.5)
    return root @ _power(inverse @ scaled @ inverse, 0.5) @ root


def _power(M: Tensor, exponent: float) -> Tensor:
    """A power of |M| for symmetric M, whose small eigenvalues are raised."""
    values, Q = torch.linalg.eigh((M + M.mT) / 2)
    sizes = values.abs()
    if not bool(sizes.any()):
        return torch.eye(len(M)).to(M)
    power: Tensor = (Q * sizes.clamp_min(SMALLEST * float(sizes.max())) ** exponent) @ Q.mT
    return power
