"""The line search of `line_search` for a batch of quadratics, each with a length of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.solvers.riemannian.batched_newton import Points, evaluate
from jorth.solvers.riemannian.line_search import ARMIJO, LARGEST_SLOPE, LONGEST

TRIALS = 30


def move(points: Points, S: Tensor, signs: Tensor) -> tuple[Points, Tensor, Tensor]:
    """The points after a step along S, and which of them have not moved, and why.

    The masks are of those for which no step was found, and of those where f was not finite.
    """
    slope = (points.g * S).sum((1, 2))
    G = points.AX + points.C
    sizes = torch.linalg.matrix_norm(G) * torch.linalg.matrix_norm(points.X)
    rounding = torch.finfo(S.dtype).eps * torch.maximum(points.value.abs(), sizes)
    t = (LONGEST / _boost_norm(S, signs)).clamp(max=1.0)
    trial = _trial(points, S, t, signs)
    accepted, t = _judge(points, trial, t, slope, rounding, S)
    if bool(accepted.all()):
        return trial, ~accepted, ~accepted
    pending = (~accepted).nonzero()[:, 0]
    moved, spoiled = trial, torch.zeros_like(accepted)
    moved.put(pending, points.select(pending))
    for _ in range(TRIALS):
        start, along = points.select(pending), S[pending]
        trial = _trial(start, along, t[pending], signs)
        accepted, t[pending] = _judge(
            start, trial, t[pending], slope[pending], rounding[pending], along
        )
        moved.put(pending[accepted], trial.select(accepted))
        spoiled[pending] = ~trial.finite() & ~accepted
        pending = pending[~accepted]
        if not len(pending):
            break
    lost = torch.zeros_like(spoiled)
    lost[pending] = True
    return moved, lost, spoiled


def _trial(points: Points, S: Tensor, t: Tensor, signs: Tensor) -> Points:
    """The points R(J t S) X, as `cayley_step` computes them."""
    shifted = t[:, None, None] * signs[:, None] * S / -2
    shifted.diagonal(dim1=-2, dim2=-1).add_(1)
    turned = torch.linalg.solve_ex(shifted, points.X).result
    return evaluate(points.A, points.C, torch.add(-points.X, turned, alpha=2), signs)


def _judge(
    points: Points, trial: Points, t: Tensor, slope: Tensor, rounding: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    """Which trials are accepted, and the next lengths of the others."""
    new_slope = (trial.g * S).sum((1, 2))
    flat = (t * slope).abs() < 100 * rounding
    lower = trial.value <= points.value + ARMIJO * t * slope
    flatter = (trial.value <= points.value + 10 * rounding) & (
        new_slope.abs() <= LARGEST_SLOPE * slope.abs()
    )
    accepted = torch.where(flat, flatter, lower) & trial.finite() & (slope < 0)
    excess = trial.value - points.value - t * slope
    vertex = torch.where(excess > 0, -slope * t * t / (2 * excess), t / 2).nan_to_num(0.0)
    shorter = torch.clamp(vertex, t / 10, t / 2)
    rise = new_slope - slope
    secant = torch.where(rise > 0, -slope * t / rise, 10 * t).nan_to_num(0.0)
    return accepted, torch.where(flat, torch.clamp(secant, t / 10, 10 * t), shorter)


def _boost_norm(S: Tensor, signs: Tensor) -> Tensor:
    """A bound on the norm of S[+,-]: ||S[+,-]||_F, or ||(B^T B)^4||_F^(1/8) if that is large."""
    mixed = signs[:, None] != signs
    block = torch.where(mixed, S, 0.0)
    size = torch.linalg.matrix_norm(block) / 2**0.5
    large = size > LONGEST
    if len(signs) > 4 and bool(large.any()):
        power = block[large] / size[large][:, None, None]
        for _ in range(3):
            power = power @ power
        size[large] = size[large] * torch.linalg.matrix_norm(power).sqrt().sqrt().sqrt()
    bound: Tensor = size.clamp(min=torch.finfo(S.dtype).tiny)
    return bound
