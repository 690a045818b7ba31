"""The geodesic distance on the group, in the metric of the Riemannian solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import ArrayLike, numbers_like
from jorth.derivatives import first_derivatives_only
from jorth.group.arguments import elements
from jorth.group.elements import component
from jorth.group.geodesics import end_velocity, geodesic_log
from jorth.signature import Signature
from jorth.suggestions import explained


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
    if bool((_components(first, signature) != _components(second, signature)).any()):
        raise ValueError("Y must be in the component of X, which no path leaves, got another one")
    found: Tensor = _Distance.apply(first, second, signature)  # type: ignore[no-untyped-call]
    return numbers_like(found, X, Y)


def _components(X: Tensor, signature: Signature) -> Tensor:
    return torch.as_tensor(component(X.detach(), signature))


class _Distance(torch.autograd.Function):
    """||K||_F; its derivative is that of the length of a geodesic whose ends move.

    With unit velocities K X / d at X and L Y / d at Y it is <L, dY Y^-1> / d - <K, dX X^-1> / d.
    """

    @staticmethod
    def forward(ctx: Any, X: Tensor, Y: Tensor, signature: Signature) -> Tensor:
        s = signature.vector(X).double().cpu()
        shape = np.broadcast_shapes(X.shape, Y.shape)
        A, B = (point.double().cpu().expand(shape) for point in (X, Y))
        M = torch.eye(len(s), dtype=s.dtype) + (B - A) @ (s[:, None] * A.mT * s)  # Y X^-1
        M = M.reshape(-1, *A.shape[-2:])
        starts = [_shortest(one, signature) for one in M]
        K = torch.stack(starts) if starts else M
        lengths = torch.linalg.matrix_norm(K)
        unit = K / torch.where(lengths > 0, lengths, 1.0)[:, None, None]
        ends = end_velocity(K) if len(K) else K
        ends = ends / torch.where(lengths > 0, lengths, 1.0)[:, None, None]
        J = torch.outer(s, s)
        ctx.slopes = -unit.reshape(A.shape) @ (J * A), ends.reshape(A.shape) @ (J * B)  # X^-T
        ctx.save_for_backward(X, Y)
        found: Tensor = lengths.reshape(A.shape[:-2]).to(X)
        return found

    @staticmethod
    @first_derivatives_only
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        X, Y = ctx.saved_tensors
        scale = gradient[..., None, None]
        found = [
            (scale * slope.to(scale)).sum_to_size(point.shape)
            for slope, point in zip(ctx.slopes, (X, Y), strict=True)
        ]
        return *found, None


def _shortest(M: Tensor, signature: Signature) -> Tensor:
    K = geodesic_log(M, signature)
    if K is None:
        size = float(np.linalg.norm(M.numpy(), 2))
        expected = "near enough for Newton's method to find a geodesic"
        raise ValueError(f"X and Y must be {expected}, got ||Y X^-1||_2 = {size:.3g}")
    return K
