"""Geodesics on the group: distance, parallel transport and mean.

The metric of `distance` is <K X, L X> = tr(K^T L), J K and J L skew. The geodesic from X along K X
is exp(t (K - K^T)) exp(t K^T) X (E. Andruchow, G. Larotonda, L. Recht and A. Varela, J. Geom. Phys.
86, 2014). Its inverse is found by Newton's method along a path from I to M = Y X^-1, exp(t log Q)
exp(t log P) with the polar factors of M = Q P.

`transport` and `mean` are those of the connection of Cartan and Schouten, whose geodesics are X
exp(t K): both sides of the group preserve it, and no Riemannian metric unless p or q is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import (
    ArrayLike,
    ArrayT,
    Convertible,
    describe,
    like_input,
    numbers_like,
    tensor_alike,
    unit_roundoff,
)
from jorth.derivatives import first_derivatives_only
from jorth.group.elements import (
    check_feasible,
    component,
    feasible_matrices,
    finite_square,
    matrix_beside,
)
from jorth.group.exp_log import check_principal, log_at, matrix_exp, square_root
from jorth.signature import Signature

Field = Callable[[Tensor], Tensor]
"""From points (..., n, n) to matrices (..., n, n) of the Lie algebra; NaN where it has no value."""
CLOSE = 1e-9
"""Bounds relative errors of Newton's method; more is allowed where large M carry rounding."""


def distance(X: ArrayLike, Y: ArrayLike, signature: Signature) -> Any:
    """Return the geodesic distance of X and Y (..., n, n) in the metric <K X, L X> = tr(K^T L).

    The metric is positive definite and invariant under right translations: distance(X Z, Y Z) =
    distance(X, Y) for J-orthogonal Z. (With inverses for X and Y it is invariant under left
    translations; no distance is invariant under both unless p or q is 0.) For a rotation or a boost
    M = Y X^-1 it is ||log M||_F: sqrt(2) times the angle or the rapidity in one plane.

    In general it is ||K||_F with exp(K - K^T) exp(K^T) = M, found by Newton's method, which costs
    O(n^5), one pair after another. Between points far apart there may be several geodesics: the
    length of the one found is an upper bound. The first derivative is exact, and 0 where X = Y.

    Args:
        X: (..., n, n), J-orthogonal.
        Y: (..., n, n), J-orthogonal, each in the component of its X; batches broadcast.
        signature: The signs of J.

    Returns:
        A float for one pair of arrays, else an array or tensor (...).

    Raises:
        ValueError: X and Y are in different components, or so far apart that no geodesic is found.

    >>> boost = np.array([[1.25, 0.75], [0.75, 1.25]])
    >>> round(jorth.distance(np.eye(2), boost, jorth.Signature(1, 1)), 4)  # sqrt(2) log(2)
    0.9803
    """
    first, second = feasible_matrices(signature, X=X, Y=Y)
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
    """Return K (..., n, n) of the geodesic from X along K X that ends at Y after unit time.

    ||K||_F is the `distance`, whose limits it has. The first derivatives along the group are exact.
    """
    first, second = feasible_matrices(signature, X=X, Y=Y)
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
    """Return the derivatives (..., d, n, n) of exp at A (..., n, n) along directions (d, n, n)."""
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
    """Return the gradients scale S P^-T at points P, for slopes <S, dP P^-1>."""
    s = signature.vector(scale)
    return [
        (scale * (slope.to(scale) @ (s[:, None] * point * s))).sum_to_size(point.shape)
        for slope, point in zip(slopes, points, strict=True)
    ]


def _velocity(X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
    """Return K (..., n, n) of the geodesics from X to Y, in float64 on the CPU."""
    components = [torch.as_tensor(component(point.detach(), signature)) for point in (X, Y)]
    if bool((components[0] != components[1]).any()):
        raise ValueError("X and Y must lie in the same component, got different ones")
    shape = np.broadcast_shapes(X.shape, Y.shape)
    A, B = (point.detach().double().cpu().expand(shape) for point in (X, Y))
    s = signature.vector(A)
    M = torch.eye(len(s), dtype=s.dtype) + (B - A) @ (s[:, None] * A.mT * s)  # Y X^-1
    found = [_continued(one, signature) for one in M.reshape(-1, *A.shape[-2:])]
    return torch.stack(found).reshape(A.shape) if found else M


def geodesic_end(K: Tensor) -> Tensor:
    """Return exp(K - K^T) exp(K^T), the end of the geodesic from I along K after unit time."""
    return matrix_exp(K - K.mT) @ matrix_exp(K.mT)


def _continued(M: Tensor, signature: Signature) -> Tensor:
    """Return K with geodesic_end(K) = M, followed along the path, or raise a ValueError.

    Each step finds a zero of sinh(log N), N = geodesic_end(K) T^-1, for the next T on the path. A K
    that is longer than the path so far belongs to a geodesic that is not the shortest.
    """
    s = signature.vector(M)
    turn, boost = polar_logs(M, signature)
    length = float(torch.linalg.matrix_norm(turn) + torch.linalg.matrix_norm(boost))
    K, reached, step = turn + boost, 0.0, 1.0
    while reached < 1 and step >= 2.0**-8:
        share = min(1.0, reached + step)
        target = M if share == 1 else matrix_exp(share * turn) @ matrix_exp(share * boost)
        inverse = s[:, None] * target.mT * s

        def field(K: Tensor, inverse: Tensor = inverse) -> Tensor:
            N = geodesic_end(K) @ inverse
            return (N - s[:, None] * N.mT * s) / 2

        found, size = find_zero(field, torch.add, K * (share / (reached or 1.0)), s)
        norm = float(torch.linalg.matrix_norm(target))
        on_path = (
            size <= max(CLOSE, 16 * len(s) * unit_roundoff(M) * norm**2)
            and torch.linalg.matrix_norm(geodesic_end(found) - target) <= 1e-3 * norm
            and torch.linalg.matrix_norm(found) <= (1 + CLOSE) * share * length + CLOSE
        )
        if on_path:
            K, reached, step = found, share, 2 * step
        else:
            step /= 2
    if reached < 1:
        size = float(torch.linalg.matrix_norm(M, ord=2))
        expected = "near enough for Newton's method to find a geodesic"
        raise ValueError(f"X and Y must be {expected}, got ||Y X^-1||_2 = {size:.3g}")
    return K


def polar_logs(M: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the factors of M = Q P: of the rotation Q and of the boost P."""
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
    """Return a skew logarithm of a rotation (n, n), with angles up to pi, by its Schur form."""
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


def transport(
    X: ArrayT | Convertible, Y: ArrayT | Convertible, V: ArrayT | Convertible, signature: Signature
) -> ArrayT:
    """Return the tangent vector V at X, moved in parallel to Y along X exp(t log(X^-1 Y)).

    With R = (X^-1 Y)^(1/2) it is X R X^-1 V R. The connection is the symmetric one of Cartan and
    Schouten, that of the indefinite form tr(K L) for V = X K, W = X L. Form and transport are
    invariant under translations from both sides. The geodesics are those of `mean`. Lengths in the
    metric of `distance` are kept only where p or q is 0. X^-1 Y must have a principal logarithm,
    see `log`. The result is differentiable.

    Args:
        X: (..., n, n), J-orthogonal.
        Y: (..., n, n), J-orthogonal.
        V: (..., n, n), tangent at X: X^T J V is skew.
        signature: The signs of J.

    >>> sig = jorth.Signature(1, 1)
    >>> boost = np.array([[1.25, 0.75], [0.75, 1.25]])
    >>> jorth.transport(np.eye(2), boost, np.array([[0.0, 1.0], [1.0, 0.0]]), sig)
    array([[0.75, 1.25],
           [1.25, 0.75]])
    """
    start, end = feasible_matrices(signature, X=X, Y=Y)
    vector = matrix_beside(V, "V", start, "X", signature)
    A, B, W = start.double(), end.double(), vector.double()
    s = signature.vector(A)
    size = W.detach().abs().amax(dim=(-2, -1), keepdim=True)
    unit = W.detach() / torch.where(size > 0, size, 1.0)  # no product overflows
    skew = A.detach().mT @ (s[:, None] * unit)
    defect = (skew + skew.mT).abs().amax(dim=(-2, -1))
    norms = torch.linalg.matrix_norm(A.detach()) * torch.linalg.matrix_norm(unit)
    bad = ~(defect <= unit_roundoff(start) ** 0.5 * norms)
    if bool(bad.any()):
        found = f"max |X^T J V + (X^T J V)^T| / max |V| = {float(defect[bad].max()):.3g}"
        raise ValueError(f"V must be tangent at X (X^T J V skew) for {signature}, got {found}")
    inverse = s[:, None] * A.mT * s
    M = inverse @ B
    check_principal(M.detach(), signature, "X^-1 Y")
    R = square_root(M, s)
    moved = (A @ R @ (inverse @ W) @ R).to(start.dtype)
    _inputs.check_overflow(moved, "X, Y and V", "the tangent vector")
    return like_input(moved, X, Y, V)


def mean(Xs: ArrayT | Convertible, signature: Signature, *, weights: Any = None) -> ArrayT:
    """Return the Karcher mean M (n, n) of Xs (m, n, n): sum w_i log(M^-1 X_i) = 0.

    It is the exponential barycentre, the mean of the connection of `transport`, invariant under
    translations from both sides and under inversion: mean(A X_i B) = A mean(X_i) B and mean(X_i^-1)
    = mean(X_i)^-1. Of two matrices it is the midpoint X exp(log(X^-1 Y) / 2), of commuting ones
    exp(sum w_i log(X_i)), and on orthogonal matrices the Riemannian mean.

    It exists and is unique for matrices near each other. The derivatives of Newton's method cost
    O(m n^5). The result carries no gradient.

    Reference: X. Pennec and V. Arsigny, in Matrix Information Geometry, Springer 2013.

    Args:
        Xs: (m, n, n), J-orthogonal, all in one component.
        signature: The signs of J.
        weights: (m,), at least 0, of any scale; equal ones if omitted.

    Raises:
        ValueError: The matrices are in several components, or so far apart that they have no
            logarithms or Newton's method finds no mean.

    >>> boost = np.array([[1.25, 0.75], [0.75, 1.25]])
    >>> jorth.mean(np.stack([np.eye(2), boost @ boost]), jorth.Signature(1, 1))
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    points = finite_square(Xs, signature, "Xs")
    if points.ndim != 3 or not len(points):
        expected = f"shape (m, {signature.n}, {signature.n}) with m of at least 1"
        raise ValueError(f"Xs must have {expected}, got {describe(Xs)}")
    check_feasible(points, signature, "Xs")
    w = _weights(weights, points)
    X, w = points.detach()[w > 0].double().cpu(), (w[w > 0] / w.sum()).double().cpu()
    components = torch.as_tensor(component(X, signature))
    if bool((components != components[0]).any()):
        count = len(torch.unique(components, dim=0))
        raise ValueError(f"Xs must be in one component of O(p, q), got {count} components")
    s = signature.vector(X)

    def field(M: Tensor) -> Tensor:
        relative = (s[:, None] * M.mT * s)[..., None, :, :] @ X
        return (w[:, None, None] * log_at(relative, s)).sum(dim=-3)

    def move(M: Tensor, step: Tensor) -> Tensor:
        return M @ matrix_exp(step)

    def check_logs(M: Tensor) -> Tensor:
        relative = s[:, None] * M.mT * s @ X
        check_principal(relative, signature, "X_i^-1 X_j of the Xs")
        return relative

    start, error = None, None
    for i in torch.argsort(w, descending=True, stable=True):
        try:
            check_logs(X[i])
        except ValueError as refusal:
            error = error or refusal
        else:
            start = X[i]
            break
    if start is None:
        raise ValueError(str(error))
    M, size = find_zero(field, move, start, s)
    norms = torch.linalg.matrix_norm(check_logs(M), ord=2)
    limit = 1e3 * signature.n * unit_roundoff(X) * float((norms**2).max())
    if not size <= max(CLOSE, limit):
        found = f"||sum w_i log(M^-1 X_i)|| = {size:.3g} where Newton's method ended"
        raise ValueError(f"Xs must be near each other to have a mean, got {found}")
    return like_input(M.to(points), Xs, weights)


def _weights(value: Any, points: Tensor) -> Tensor:
    """Return weights (m,) with a largest one of 1, or an error."""
    if value is None:
        return points.new_ones(len(points))
    weights = tensor_alike(value, "weights", points, "Xs").detach()
    if weights.shape != (len(points),):
        expected = f"shape ({len(points)},) for Xs of shape {tuple(points.shape)}"
        raise ValueError(f"weights must have {expected}, got {describe(value)}")
    _inputs.check_finite(weights, "weights")
    weights = weights / weights.abs().max().clamp(min=torch.finfo(weights.dtype).tiny)
    if bool((weights < 0).any()) or not bool((weights > 0).any()):
        negative, count = int((weights < 0).sum()), len(weights)
        found = f"{negative} negative of {count}" if negative else "zeros only"
        raise ValueError(f"weights must be at least 0, and one above it, got {found}")
    return weights


def find_zero(
    field: Field,
    move: Callable[[Tensor, Tensor], Tensor],
    point: Tensor,
    signs: Tensor,
    *,
    max_steps: int = 50,
    spacing: float = 1e-7,
) -> tuple[Tensor, float]:
    """Return a point (n, n) in float64 near a zero of a field, and the norm of the field there.

    Newton's method, with a derivative of order n (n - 1) / 2 from differences over ``spacing``.
    ``move`` takes a point and steps (..., n, n) in the Lie algebra to other points. Steps are
    halved until they decrease the field, and end where none does: at a zero that is the level of
    rounding.
    """
    basis = algebra_basis(signs)

    def norm_of(value: Tensor) -> float:
        size = float(torch.linalg.matrix_norm(value))
        return math.inf if math.isnan(size) else size

    value = field(point)
    size = norm_of(value)
    for _ in range(max_steps):
        if not 0 < size < math.inf:
            break
        slopes = (field(move(point, spacing * basis)) - value) / spacing
        slopes = slopes.nan_to_num().flatten(1) @ basis.flatten(1).mT  # row i: along basis[i]
        target = -(basis * value).sum(dim=(-2, -1))
        # zero where the derivative is not finite; the shortest one where it is singular
        coordinates = torch.linalg.lstsq(slopes.mT, target[:, None], driver="gelsd").solution
        step = (coordinates[..., None] * basis).sum(dim=0)
        share = 1.0
        while share >= 2.0**-10:
            trial = move(point, share * step)
            found = field(trial)
            if norm_of(found) <= (1 - share / 4) * size:
                break
            # near a zero, a step that does not decrease the field meets the level of rounding
            share = share / 2 if size > CLOSE else 0.0
        else:
            break
        point, value, size = trial, found, norm_of(found)
    return point, size


def algebra_basis(signs: Tensor) -> Tensor:
    """Return an orthonormal basis (n (n - 1) / 2, n, n) of the Lie algebra."""
    n = len(signs)
    row, column = torch.tril_indices(n, n, offset=-1)
    basis = signs.new_zeros(len(row), n, n)
    which = torch.arange(len(row))
    basis[which, row, column] = signs[row] * math.sqrt(0.5)
    basis[which, column, row] = -signs[column] * math.sqrt(0.5)
    return basis
