"""Newton directions for a batch of quadratics f = 1/2 tr(X^T A X) + <C, X>, in torch operations.

In S -> f(R(J S) X), R the Cayley transform, the gradient is g = skew(J G X^T) and the Hessian

    S -> skew(J A J S Y - J S M),    Y = X X^T,    M = sym(J G X^T).

The Newton system is solved by a factorisation for n up to `DENSE`, and beyond by conjugate
gradients with a sum of `exponentials` as the preconditioner. Where the Hessian is not positive
definite, its first term stands in for it, or conjugate gradients stop.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

import torch
from torch import Tensor

from jorth.solvers.riemannian.exponentials import ExponentialSum, exponential_sum

DENSE = 8
"""The largest n for which the matrix of the Hessian is formed, with n (n - 1) / 2 = 28 rows."""
TINY = 8
"""The largest n for which products are sums: batched products of tiny matrices are slow."""
INNER_STEPS = 30
INEXACT = 0.1
"""The largest relative residual of conjugate gradients; it falls with the gradient."""
SHIFT = 1e-10
"""What is added to the first term of the Hessian, relative to its trace."""


@dataclass
class Points:
    """Points X of a batch of problems, and what is known there; all tensors begin with (B, ...)."""

    A: Tensor
    C: Tensor
    X: Tensor
    AX: Tensor
    value: Tensor
    g: Tensor
    multiplier: Tensor
    """M = sym(J G X^T)."""
    norm: Tensor
    """||g||_F."""
    size: Tensor
    """||A X X^T||_F + ||C X^T||_F."""

    def select(self, which: Tensor) -> Points:
        """The problems of a mask or an index."""
        return type(self)(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: Tensor, others: Points) -> None:
        """Replace some problems by others."""
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(others, field.name)

    def finite(self) -> Tensor:
        found: Tensor = (self.value + self.size).isfinite()
        return found


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b for batches of matrices."""
    if a.shape[-1] <= TINY and a.device.type != "cpu":
        return (a[..., :, :, None] * b[..., None, :, :]).sum(-2)
    return a @ b


def evaluate(A: Tensor, C: Tensor, X: Tensor, signs: Tensor) -> Points:
    """f and its first derivatives."""
    AX = product(A, X)
    value = (X * AX).sum((1, 2)) / 2 + (C * X).sum((1, 2))
    first, second = product(AX, X.mT), product(C, X.mT)
    N = signs[:, None] * (first + second)
    g = (N - N.mT) / 2
    size = torch.linalg.matrix_norm(first) + torch.linalg.matrix_norm(second)
    return Points(A, C, X, AX, value, g, (N + N.mT) / 2, torch.linalg.matrix_norm(g), size)


def direction(points: Points, signs: Tensor) -> Tensor:
    """The skew S of the Newton step (B, n, n), or another one of descent."""
    if len(signs) <= DENSE:
        return _dense_direction(points, signs)
    return _by_conjugate_gradients(points, signs)


# -- small n: the matrix of the Hessian


@lru_cache(maxsize=16)
def _tables(n: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and columns of the planes i < j, and where M_ik, M_il, M_jk, M_jl are for two planes."""
    i, j = torch.triu_indices(n, n, 1, device=device)
    places = [a[:, None] * n + b for a, b in ((i, i), (i, j), (j, i), (j, j))]
    return i, j, torch.stack(places)


def hessian(points: Points, signs: Tensor) -> tuple[Tensor, Tensor]:
    """The first term and the whole matrix of the Hessian, (B, d, d), in the planes i < j.

    <E_ij, J A J E_kl Y - J E_kl M> with E_ij = e_i e_j^T - e_j e_i^T, skewed.
    """
    n = len(signs)
    i, j, places = _tables(n, points.X.device)
    JAJ = signs[:, None] * points.A * signs
    Y = product(points.X, points.X.mT)
    a_ik, a_il, a_jk, a_jl = JAJ.flatten(1)[:, places].unbind(1)
    y_ik, y_il, y_jk, y_jl = Y.flatten(1)[:, places].unbind(1)
    convex = a_ik * y_jl - a_il * y_jk - a_jk * y_il + a_jl * y_ik
    m_ik, m_il, m_jk, m_jl = points.multiplier.flatten(1)[:, places].unbind(1)
    s_i, s_j = signs[i][:, None], signs[j][:, None]
    ik, il, jk, jl = (s * (a[:, None] == b) for s, a, b in _coincidences(i, j, s_i, s_j))
    return convex, convex - (ik * m_jl - il * m_jk - jk * m_il + jl * m_ik)


def _coincidences(
    i: Tensor, j: Tensor, s_i: Tensor, s_j: Tensor
) -> list[tuple[Tensor, Tensor, Tensor]]:
    return [(s_i, i, i), (s_i, i, j), (s_j, j, i), (s_j, j, j)]


def _dense_direction(points: Points, signs: Tensor) -> Tensor:
    convex, H = hessian(points, signs)
    bad = torch.linalg.cholesky_ex(H).info > 0
    if bool(bad.any()):
        H[bad] = _definite(convex[bad])
    i, j, _ = _tables(len(signs), H.device)
    steps = torch.linalg.solve_ex(H, -2 * points.g[:, i, j, None]).result[..., 0]
    S = torch.zeros_like(points.X)
    S[:, i, j], S[:, j, i] = steps, -steps
    return S


def _definite(convex: Tensor) -> Tensor:
    """The first term of the Hessian, shifted a little; where A is indefinite, a multiple of I."""
    size = torch.linalg.matrix_norm(convex)[:, None, None]
    identity = torch.eye(convex.shape[-1], dtype=convex.dtype, device=convex.device)
    shifted = convex + SHIFT * size * identity
    bad = torch.linalg.cholesky_ex(shifted).info > 0
    return torch.where(bad[:, None, None], size * identity, shifted)


# -- larger n: conjugate gradients


def _by_conjugate_gradients(points: Points, signs: Tensor) -> Tensor:
    """An approximate solution of the Newton system; P^-1 of the gradient if it is not convex."""
    JAJ = signs[:, None] * points.A * signs
    Y = points.X @ points.X.mT
    inverse = _preconditioner(points, signs)

    def curved(S: Tensor) -> Tensor:
        N = JAJ @ S @ Y - signs[:, None] * (S @ points.multiplier)
        return (N - N.mT) / 2

    r = -points.g
    z = inverse.apply(r)
    p, rz = z, _dot(r, z)
    S = torch.zeros_like(r)
    wanted = points.norm * torch.clamp(points.norm / points.size, max=INEXACT)
    active = torch.ones_like(points.norm, dtype=torch.bool)
    for step in range(INNER_STEPS):
        image = curved(p)
        bend = _dot(p, image)
        convex = bend > 0
        if step == 0:
            S = torch.where(convex[:, None, None], S, p)
        active = active & convex
        alpha = torch.where(active, rz / bend, 0.0)[:, None, None]
        S = S + alpha * p
        r = r - alpha * image
        active = active & (torch.linalg.matrix_norm(r) > wanted)
        if not bool(active.any()):
            break
        z = inverse.apply(r)
        rz, last = _dot(r, z), rz
        p = z + (rz / last)[:, None, None] * p
    return S


def _preconditioner(points: Points, signs: Tensor) -> ExponentialSum:
    """The inverse of the first term of the Hessian; A = I where A is not semidefinite."""
    identity = torch.eye(len(signs), dtype=points.A.dtype, device=points.A.device)
    size = points.A.abs().amax((1, 2), keepdim=True)
    scaled = points.A / torch.where(size > 0, size, 1.0)
    bad = torch.linalg.cholesky_ex(scaled + SHIFT * identity).info > 0
    A = torch.where(bad[:, None, None] | (size == 0), identity, scaled)
    return exponential_sum(A, points.X, signs, torch.where(size > 0, size, 1.0), 4)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """<a, b>_F (B,)."""
    return (a * b).sum((1, 2))
