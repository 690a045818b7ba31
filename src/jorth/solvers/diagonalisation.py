"""Right steps on tr(X^T A X): the J-Jacobi method, which diagonalises X^T A X and converges quadratically."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.plane import apply_rows
from jorth.solvers.base import State
from jorth.solvers.problem import Problem

CHUNK = 50_000
"""Pairs between two looks at the clock."""


def is_diagonalisation(problem: Problem, state: State, side: str, theta: float | None) -> bool:
    """Whether right steps decouple: f = 1/2 tr(X^T A X) alone, X square, no proximal weight asked for, not a race."""
    if side != "right" or theta is not None or state.X.shape[0] != state.X.shape[1]:
        return False
    form = problem.objective.quadratic()
    if form is None or form.C is not None or form.D is not None:
        return False
    return problem.stop_unbounded or bool((form.A.diagonal() > 0).any())  # else f may be concave


def rotate_pairs(problem: Problem, state: State, pairs: NDArray[np.int64]) -> None:
    """One rotation for each pair (m, 2) in turn, in compiled code; then value and gradient."""
    from jorth.solvers.sweeps import sweep_trace

    form = problem.objective.quadratic()
    assert form is not None
    A, rows = form.A.double().cpu().numpy(), np.array(state.X.mT.double().cpu().numpy(), order="C")
    W = rows @ A @ rows.T
    W = np.ascontiguousarray(W + W.T) / 2
    try:
        for start in range(0, len(pairs), CHUNK):
            problem.objective.check_limits()
            part = pairs[start : start + CHUNK]
            done = sweep_trace(W, rows, problem.signature.signs, part, problem.stop_unbounded)
            state.unbounded = done < 0
            problem.objective.count.pair_updates += done if done >= 0 else -done - 1
            if state.unbounded:
                break
    finally:
        state.X.copy_(torch.from_numpy(rows).mT)
        state.exact = False  # until the value is known: a limit may end the run before
    _score(problem, state)


def rotate_rounds(problem: Problem, state: State, rounds: NDArray[np.int64]) -> None:
    """The rotations of each round (r, m, 2) of disjoint pairs at once, on the device of X; then value and gradient."""
    if state.X.device.type == "cpu":
        rotate_pairs(problem, state, rounds.reshape(-1, 2))
        return
    form = problem.objective.quadratic()
    assert form is not None
    rows = state.X.mT.contiguous()
    W = rows @ form.A.to(rows) @ rows.mT
    for pairs in rounds:
        index = torch.from_numpy(pairs).to(rows.device)
        V, unbounded = _rotations(W[index[:, :, None], index[:, None, :]], problem.signs[index])
        if problem.stop_unbounded and bool(unbounded.any()):
            state.unbounded = True
            break
        for matrix in (rows, W):
            apply_rows(matrix, index, V)
        W = W.mT.contiguous()
        apply_rows(W, index, V)
        problem.objective.count.pair_updates += len(pairs)
    state.X.copy_(rows.mT)
    state.exact = False
    _score(problem, state)


def _score(problem: Problem, state: State) -> None:
    state.value, state.gradient = problem.objective.value_and_gradient(state.X)
    state.exact = True


def _rotations(B: Tensor, signs: Tensor) -> tuple[Tensor, Tensor]:
    """V (m, 2, 2) with V B V^T diagonal, and where there is none; formulas as in `sweep_trace`."""
    a, b, c = B[:, 0, 0], B[:, 1, 1], (B[:, 0, 1] + B[:, 1, 0]) / 2
    total, equal, zero = a + b, signs[:, 0] == signs[:, 1], c == 0
    ratio = (b - a) / (2 * torch.where(zero, 1.0, c))
    turn = torch.copysign(torch.ones_like(ratio), ratio) / (ratio.abs() + torch.hypot(torch.ones_like(ratio), ratio))
    room = total - 2 * c.abs()
    unbounded = ~equal & ~zero & ~(room > 0)
    safe = torch.where(unbounded | equal, 1.0, total)
    root = (torch.where(unbounded | equal, 1.0, room) / safe).sqrt() * ((safe + 2 * c.abs()) / safe).sqrt()
    boost = -2 * c / safe / (1 + root)
    tangent = torch.where(zero | unbounded, 0.0, torch.where(equal, turn, boost))
    length = torch.where(equal, 1 / (1 + tangent.square()).sqrt(), 1 / ((1 - tangent) * (1 + tangent)).sqrt())
    other = tangent * length
    V = torch.stack([length, torch.where(equal, -other, other), other, length], dim=-1).reshape(-1, 2, 2)
    return V, unbounded
