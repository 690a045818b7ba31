"""Many small problems min 1/2 tr(X^T A X) + <C, X> at once: Newton's method in torch operations.

All problems take their steps together; those that are done are left out. It runs wherever torch
does, and is meant for devices.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.elements import power_of_two
from jorth.solvers.riemannian.batched_newton import DENSE, Points, direction, evaluate
from jorth.solvers.riemannian.batched_search import move

RUNNING, CONVERGED, MAX_ITERATIONS, STALLED, UNBOUNDED, NON_FINITE = range(-1, 5)
FLOATS_AT_ONCE = {"cpu": 2**22, "cuda": 2**31}
"""How many numbers a chunk of problems may take."""

Answer = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def minimize_many(
    A: Tensor, C: Tensor, signs: Tensor, X: Tensor, *, tolerance: float, max_iterations: int
) -> Answer:
    """Minimise every f from its start, within the component of the start.

    Args:
        A: (B, n, n), symmetric.
        C: (B, n, n).
        signs: (n,), the diagonal of J.
        X: (B, n, n), J-orthogonal.
        tolerance: The bound on ||skew(J G X^T)||_F / (||A X X^T||_F + ||C X^T||_F).
        max_iterations: The most steps for a problem.

    Returns:
        X (B, n, n), f (B,), ||skew(J G X^T)||_F (B,), iterations (B,) and status (B,): 0 converged,
        1 max_iterations, 2 stalled, 3 unbounded, 4 not finite.
    """
    n = len(signs)
    matrix = (n * (n - 1) // 2) ** 2 if n <= DENSE else 30 * n * n
    budget = FLOATS_AT_ONCE["cpu" if X.device.type == "cpu" else "cuda"]
    size = max(1, budget // (50 * n * n + 12 * matrix))
    chunks = [
        _minimize_chunk(*parts, signs.to(X), tolerance, max_iterations)
        for parts in zip(
            torch.split(A, size), torch.split(C, size), torch.split(X, size), strict=True
        )
    ]
    x, value, norm, iterations, status = (torch.cat(pieces) for pieces in zip(*chunks, strict=True))
    return x, value, norm, iterations, status


def _minimize_chunk(
    A: Tensor, C: Tensor, X: Tensor, signs: Tensor, tolerance: float, max_iterations: int
) -> Answer:
    largest = torch.maximum(A.abs().amax((1, 2)), C.abs().amax((1, 2)))
    scale = power_of_two(largest.nan_to_num(1.0, 1.0))[:, None, None]
    points = evaluate(A / scale, C / scale, X, signs)
    index = torch.arange(len(X), device=X.device)
    state = torch.where(points.finite(), RUNNING, NON_FINITE)
    found, value = X.clone(), X.new_empty(len(X))
    norm, status, iterations = (
        torch.empty_like(value),
        torch.empty_like(index),
        torch.empty_like(index),
    )
    turn = 0
    while True:
        state[(state == RUNNING) & (points.norm <= tolerance * points.size)] = CONVERGED
        if turn == max_iterations:
            state[state == RUNNING] = MAX_ITERATIONS
        over = state != RUNNING
        ended, done = index[over], points.select(over)
        found[ended], value[ended], norm[ended] = done.X, done.value, done.norm
        status[ended], iterations[ended] = state[over], turn
        points, index = points.select(~over), index[~over]
        if not len(index):
            break
        before = points.value
        points, lost, spoiled = move(points, direction(points, signs), signs)
        state = torch.full_like(index, RUNNING)
        state[_far_out(points) & (points.value < before)] = UNBOUNDED
        state[lost] = STALLED
        state[spoiled] = NON_FINITE
        turn += 1
    scale = scale[:, 0, 0]
    return found, value * scale, norm * scale, iterations, status


def _far_out(points: Points) -> Tensor:
    """Whether ||X||_F exceeds u^(-1/2), where feasibility has no digits left."""
    far: Tensor = points.X.square().sum((1, 2)) > 1 / unit_roundoff(points.X)
    return far
