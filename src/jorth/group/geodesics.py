"""The geodesic distance on the group, and its logarithm, in the metric of the Riemannian solvers.

The metric is <K X, L X> = tr(K^T L), J K and J L skew. The geodesic from X along K X is
exp(t (K - K^T)) exp(t K^T) X. (For the left-invariant metric of GL(n), in which the group is
totally geodesic because it is closed under transposition: E. Andruchow, G. Larotonda, L. Recht and
A. Varela, The left invariant metric in the general linear group, J. Geom. Phys. 86 (2014).) Its
inverse has no closed form. It is found by Newton's method along a path from I to M = Y X^-1,
exp(t log Q) exp(t log P) with the polar factors of M = Q P.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import ArrayLike, explained, numbers_like, unit_roundoff
from jorth.derivatives import first_derivatives_only
from jorth.group.arguments import elements
from jorth.group.elements import component
from jorth.group.newton import algebra_basis, find_zero
from jorth.group.retractions import matrix_exp
from jorth.signature import Signature

SHORTEST = 2.0**-8
"""The least part of the path in one step."""
NEAR = 1e-9
"""What || geodesic - M || may be, relative to M; more where M is large and rounding is felt."""


@explained
def distance(X: ArrayLike, Y: ArrayLike, signature: Signature) -> Any:
    """The geodesic distance (...) of X and Y (..., n, n) in the metric <K X, L X> = tr(K^T L).

    The metric is positive definite and invariant under right translations: distance(X Z, Y Z) =
    distance(X, Y) for J-orthogonal Z. (With inverses for X and Y it is invariant under left
    translations; no distance is invariant under both unless p or q is 0.) For a rotation or a boost
    M = Y X^-1 it is ||log M||_F: sqrt(2) times the angle or the rapidity in one plane.

    In general it is ||K||_F with exp(K - K^T) exp(K^T) = M. Such a K has no closed form. It is
    found by Newton's method, with derivatives of order n^2 / 2 that cost O(n^5), one pair after
    another. It is the distance for points that are near. Between points far apart there may be
    several geodesics, and the length of the one that is found is an upper bound; it is at least
    ||log P||_F and at most ||log Q||_F + ||log P||_F, where M = Q P is the polar decomposition.

    float32 is computed in float64. The first derivative along the group is exact, and 0 where
    X = Y.

    Args:
        X: (..., n, n), J-orthogonal.
        Y: (..., n, n), J-orthogonal, each in the component of its X; batches broadcast.
        signature: The signs of J.

    Returns:
        A float for one pair of arrays, else an array or tensor (...).

    Raises:
        ValueError: X and Y are in different components, or so far apart that no geodesic is found.
    """
    first, second = elements(signature, X=X, Y=Y)
    found: Tensor = _Distance.apply(first, second, signature)  # type: ignore[no-untyped-call]
    return numbers_like(found, X, Y)


class _Distance(torch.autograd.Function):
    """||K||_F; its derivative is that of the length of a geodesic whose ends move.

    With unit velocities K X / d at X and L Y / d at Y it is <L, dY Y^-1> / d - <K, dX X^-1> / d.
    """

    @staticmethod
    def forward(ctx: Any, X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
        K = _velocity(X, Y, signature)
        lengths = torch.linalg.matrix_norm(K)
        unit = K / torch.where(lengths > 0, lengths, 1.0)[..., None, None]
        turn = matrix_exp(K - K.mT)
        ctx.slopes = -unit, turn @ unit @ turn.mT
        ctx.signature = signature
        ctx.save_for_backward(X, Y)
        found: Tensor = lengths.to(X)
        return found

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        X, Y = ctx.saved_tensors
        scale = gradient[..., None, None]
        return *_left_slopes(ctx.slopes, (X, Y), scale, ctx.signature), None


def geodesic_log(X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
    """K (..., n, n) of the geodesic from X along K X that ends at Y after unit time.

    ||K||_F is the `distance`, whose limits it has. The first derivatives along the group are exact.
    """
    first, second = elements(signature, X=X, Y=Y)
    K: Tensor = _Log.apply(first, second, signature)  # type: ignore[no-untyped-call]
    return K


class _Log(torch.autograd.Function):
    """K; its derivative solves that of exp(K - K^T) exp(K^T) = Y X^-1."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
        K = _velocity(X, Y, signature)
        ctx.signature = signature
        ctx.save_for_backward(X, Y, K)
        return K.to(X)

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        X, Y, K = ctx.saved_tensors
        s = ctx.signature.vector(K)
        basis = algebra_basis(s)
        turn, push = matrix_exp(K - K.mT), matrix_exp(K.mT)
        inverse = s[:, None] * (turn @ push).mT * s
        turned = _exp_slopes(K - K.mT, basis - basis.mT) @ push[..., None, :, :]
        pushed = turn[..., None, :, :] @ _exp_slopes(K.mT, basis.mT)
        moves = ((turned + pushed) @ inverse[..., None, :, :]).flatten(-2) @ basis.flatten(1).mT
        right = (gradient.to(K)[..., None, :, :] * basis).sum(dim=(-2, -1))
        coordinates = torch.linalg.solve(moves, right)
        L = (coordinates[..., None, None] * basis).sum(dim=-3)
        slopes = -(turn @ push).mT @ L @ inverse.mT, L
        return *_left_slopes(slopes, (X, Y), gradient.new_ones(()), ctx.signature), None


def _exp_slopes(A: Tensor, directions: Tensor) -> Tensor:
    """The derivatives (..., d, n, n) of exp at A (..., n, n) along directions (d, n, n)."""
    n = A.shape[-1]
    A = A[..., None, :, :].expand(*A.shape[:-2], *directions.shape)
    upper = torch.cat([A, directions.expand_as(A)], dim=-1)
    lower = torch.cat([torch.zeros_like(A), A], dim=-1)
    return matrix_exp(torch.cat([upper, lower], dim=-2))[..., :n, n:]


def _left_slopes(
    slopes: tuple[Tensor, Tensor],
    points: tuple[Tensor, Tensor],
    scale: Tensor,
    signature: Signature,
) -> list[Tensor]:
    """The gradients scale S P^-T at points P, for slopes <S, dP P^-1>."""
    s = signature.vector(scale)
    return [
        (scale * (slope.to(scale) @ (s[:, None] * point * s))).sum_to_size(point.shape)
        for slope, point in zip(slopes, points, strict=True)
    ]


def _velocity(X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
    """K (..., n, n) of the shortest geodesics found from X to Y, in float64 on the CPU."""
    components = [torch.as_tensor(component(point.detach(), signature)) for point in (X, Y)]
    if bool((components[0] != components[1]).any()):
        raise ValueError("Y must be in the component of X, which no path leaves, got another one")
    shape = np.broadcast_shapes(X.shape, Y.shape)
    A, B = (point.detach().double().cpu().expand(shape) for point in (X, Y))
    s = signature.vector(A)
    M = torch.eye(len(s), dtype=s.dtype) + (B - A) @ (s[:, None] * A.mT * s)  # Y X^-1
    found = [_shortest(one, signature) for one in M.reshape(-1, *A.shape[-2:])]
    return torch.stack(found).reshape(A.shape) if found else M


def geodesic_end(K: Tensor) -> Tensor:
    """exp(K - K^T) exp(K^T): where the geodesic from I along K is after unit time."""
    return matrix_exp(K - K.mT) @ matrix_exp(K.mT)


def end_velocity(K: Tensor) -> Tensor:
    """The velocity at the end of that geodesic, divided by the point: exp(A) K exp(-A), A skew."""
    turn = matrix_exp(K - K.mT)
    return turn @ K @ turn.mT


def _shortest(M: Tensor, signature: Signature) -> Tensor:
    """K (n, n) at I of the shorter of the geodesics found for M and for M^-1."""
    s = signature.vector(M)
    there = _continued(M, signature)
    back = _continued(s[:, None] * M.mT * s, signature)
    found = [there, None if back is None else -end_velocity(back)]
    known = [K for K in found if K is not None]
    if not known:
        size = float(torch.linalg.matrix_norm(M, ord=2))
        expected = "near enough for Newton's method to find a geodesic"
        raise ValueError(f"X and Y must be {expected}, got ||Y X^-1||_2 = {size:.3g}")
    return min(known, key=torch.linalg.matrix_norm)


def _continued(M: Tensor, signature: Signature) -> Tensor | None:
    """K with geodesic_end(K) = M, followed along the path; None where Newton's method loses it.

    A K that is longer than the path so far belongs to a geodesic that is not the shortest.
    """
    turn, boost = polar_logs(M, signature)
    length = float(torch.linalg.matrix_norm(turn) + torch.linalg.matrix_norm(boost))
    K, reached, step = turn + boost, 0.0, 1.0
    while reached < 1 and step >= SHORTEST:
        share = min(1.0, reached + step)
        target = M if share == 1 else matrix_exp(share * turn) @ matrix_exp(share * boost)
        found = _solved(K * (share / (reached or 1.0)), target, signature)
        if found is None or torch.linalg.matrix_norm(found) > (1 + NEAR) * share * length + NEAR:
            step /= 2
        else:
            K, reached, step = found, share, 2 * step
    return K if reached == 1 else None


def _solved(K: Tensor, M: Tensor, signature: Signature) -> Tensor | None:
    """The zero near K of sinh(log N), N = geodesic_end(K) M^-1."""
    s = signature.vector(M)
    inverse = s[:, None] * M.mT * s

    def field(K: Tensor) -> Tensor:
        N = geodesic_end(K) @ inverse
        return (N - s[:, None] * N.mT * s) / 2

    found, size = find_zero(field, torch.add, K, s)
    norm = float(torch.linalg.matrix_norm(M))
    if not size <= max(NEAR, 16 * len(s) * unit_roundoff(M) * norm**2):
        return None
    # N = N^-1 has other solutions than I
    off = float(torch.linalg.matrix_norm(geodesic_end(found) - M))
    return found if off <= 1e-3 * norm else None


def polar_logs(M: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Logarithms of the factors of M = Q P: of the rotation Q and of the boost P."""
    s = signature.vector(M)
    U, sigma, Vh = torch.linalg.svd(M)
    boost = Vh.mT @ (sigma.log()[:, None] * Vh)
    boost = (boost - s[:, None] * boost.mT * s) / 2
    Q = (U @ Vh).numpy()
    turn = np.zeros_like(Q)
    for at in (signature.positive, signature.negative):
        if len(at):
            turn[np.ix_(at, at)] = rotation_log(Q[np.ix_(at, at)])
    return torch.from_numpy(turn), boost


def rotation_log(Q: np.ndarray) -> np.ndarray:
    """A skew logarithm of a rotation (n, n), with angles up to pi, from its real Schur form."""
    from scipy.linalg import schur

    T, Z = schur(Q, output="real")
    log = np.zeros_like(T)
    pairs = np.flatnonzero(np.diag(T, -1))
    for k in pairs:
        log[k + 1, k] = math.atan2(T[k + 1, k] - T[k, k + 1], T[k, k] + T[k + 1, k + 1])
    single = np.setdiff1d(np.arange(len(T)), [*pairs, *(pairs + 1)])
    half_turned = single[np.diag(T)[single] < 0]  # eigenvalues -1, an even number of them
    for i, k in zip(half_turned[::2], half_turned[1::2], strict=False):
        log[k, i] = math.pi
    log = Z @ log @ Z.T
    found: np.ndarray = log - log.T
    return found
