"""Right steps on tr(X^T A X): the J-Jacobi method, which diagonalises X^T A X.

It converges quadratically.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import frobenius
from jorth.objectives.definiteness import is_semidefinite, square_root
from jorth.plane import apply_rows
from jorth.plane.proximal import NEAR_NULL, RELATIVE_THETA
from jorth.solvers.jobcd.quadratic_sweeps import CHUNK
from jorth.solvers.loop.solver import Problem, State


class Trace(NamedTuple):
    """A in float64 on the device of X, a factor F of it if it is semidefinite, and their rounding.

    The rounding is relative to ||x||^2, that of the entries of X^T A X, or of the squares ||F x||^2
    that should be zero. An entry of X^T A X is off by at most 2 n eps ||A||_F ||x_i|| ||x_j||,
    hence w_ii + w_jj +- 2 w_ij by four times as much for the longest x; the rotations of a sweep
    add as much again. ||F x|| is off by n eps ||F||_F ||x||, its square by the square of that.
    """

    A: Tensor
    F: Tensor | None
    rounding: float


def trace_to_diagonalise(problem: Problem, X: Tensor, theta: float | None) -> Trace | None:
    """The trace, if right steps decouple; None if they do not.

    They do if f = 1/2 tr(X^T A X) alone, X is square, no proximal weight is asked for, and the run
    does not go on where a concave f is unbounded.
    """
    form = problem.objective.quadratic()
    if theta is not None or X.shape[0] != X.shape[1] or form is None:
        return None
    if form.C is not None or form.D is not None:
        return None
    if not problem.stop_unbounded and not bool((form.A.diagonal() > 0).any()):  # it may be concave
        return None
    dtype = form.A.dtype if X.device.type != "cpu" else torch.float64
    A = form.A.to(device=X.device, dtype=dtype)
    size = 16 * len(A) * torch.finfo(dtype).eps
    F = square_root(A) if is_semidefinite(form.A) else None
    return Trace(A, F, size * frobenius(A) if F is None else (size * frobenius(F)) ** 2)


def rotate_pairs(problem: Problem, state: State, trace: Trace, pairs: NDArray[np.int64]) -> None:
    """One rotation for each pair (m, 2) in turn, in compiled code; then value and gradient."""
    from jorth.plane.compiled.trace import sweep_trace

    rows = np.array(state.X.mT.double().cpu().numpy(), order="C")
    W, half = np.zeros((0, 0)), np.zeros((len(rows), 0))
    if trace.F is None:
        W = rows @ trace.A.cpu().numpy() @ rows.T
        W = np.ascontiguousarray(W + W.T) / 2
    else:
        half = np.ascontiguousarray(rows @ trace.F.cpu().numpy().T)
    signs, stop = problem.signature.signs, problem.ends_unbounded
    try:
        for start in range(0, len(pairs), CHUNK):
            problem.objective.check_limits()
            part = pairs[start : start + CHUNK]
            done = sweep_trace(W, half, rows, signs, part, trace.rounding, stop)
            state.unbounded = done < 0
            problem.objective.count.pair_updates += done if done >= 0 else -done - 1
            if state.unbounded:
                break
    finally:
        state.X.copy_(torch.from_numpy(rows).mT)
        state.exact = False  # until the value is known: a limit may end the run before
    _score(problem, state)


def rotate_rounds(problem: Problem, state: State, trace: Trace, rounds: NDArray[np.int64]) -> None:
    """The rotations of each round (r, m, 2) of disjoint pairs at once, on the device of X."""
    if state.X.device.type == "cpu":
        rotate_pairs(problem, state, trace, rounds.reshape(-1, 2))
        return
    rows = state.X.mT.contiguous()
    kept = rows @ trace.A.to(rows) @ rows.mT if trace.F is None else rows @ trace.F.mT.to(rows)
    """X^T A X, or the rows of F X."""
    for pairs in rounds:
        index = torch.from_numpy(pairs).to(rows.device)
        rounding = trace.rounding * rows.square().sum(dim=1).max()
        if trace.F is None:
            blocks = kept[index[:, :, None], index[:, None, :]]
            V, unbounded = _rotations(blocks, problem.signs[index], rounding)
        else:
            V = _rotations_of_rows(kept[index], problem.signs[index], rounding)
            unbounded = torch.zeros(0)
        if problem.ends_unbounded and bool(unbounded.any()):
            state.unbounded = True
            break
        for matrix in (rows, kept):
            apply_rows(matrix, index, V)
        if trace.F is None:
            kept = kept.mT.contiguous()
            apply_rows(kept, index, V)
        problem.objective.count.pair_updates += len(pairs)
    state.X.copy_(rows.mT)
    state.exact = False
    _score(problem, state)


def _score(problem: Problem, state: State) -> None:
    state.value, state.gradient = problem.objective.value_and_gradient(state.X)
    state.exact = True


def _rotations(B: Tensor, signs: Tensor, rounding: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """V (m, 2, 2) with V B V^T diagonal, and where there is none; formulas as in `sweep_trace`."""
    a, b, c = B[:, 0, 0], B[:, 1, 1], (B[:, 0, 1] + B[:, 1, 0]) / 2
    plus, minus = a + b + 2 * c, a + b - 2 * c
    opposite, least = signs[:, 0] != signs[:, 1], torch.minimum(plus, minus)
    still = (c == 0) | (opposite & (least <= rounding))
    V = torch.where(
        opposite[:, None, None],
        _boosts(plus, minus, -4 * c, ~opposite | still),
        _turns(b - a, c, still),
    )
    return V, opposite & (c != 0) & (least < -rounding)


def _rotations_of_rows(Z: Tensor, signs: Tensor, rounding: Tensor | float) -> Tensor:
    """The same for B = Z Z^T, Z (m, 2, n); there is always one: null lengths have a weight."""
    B, total = Z @ Z.mT, Z.square().sum(dim=(1, 2))
    plus = (Z[:, 0] + Z[:, 1]).square().sum(dim=1)
    minus = (Z[:, 0] - Z[:, 1]).square().sum(dim=1)
    weight, c = RELATIVE_THETA * (plus + minus), B[:, 0, 1]
    # minus - plus cancels where c is small, but not near null, where it agrees with the two lengths
    gap = torch.where(torch.minimum(plus, minus) > NEAR_NULL * total, -4 * c, minus - plus)
    still = (c == 0) | (total <= rounding)
    opposite = signs[:, 0] != signs[:, 1]
    boosts = _boosts(plus + weight, minus + weight, gap, ~opposite | still)
    return torch.where(opposite[:, None, None], boosts, _turns(B[:, 1, 1] - B[:, 0, 0], c, still))


def _turns(difference: Tensor, c: Tensor, still: Tensor) -> Tensor:
    """Rotations (m, 2, 2) for w_jj - w_ii and w_ij, and I where still."""
    ratio = difference / (2 * torch.where(still, 1.0, c))
    one = torch.ones_like(ratio)
    tangent = torch.copysign(one, ratio) / (ratio.abs() + torch.hypot(one, ratio))
    cosine = 1 / (1 + tangent.square()).sqrt()
    even = torch.where(still, 1.0, cosine)
    odd = torch.where(still, 0.0, tangent * cosine)
    return torch.stack([even, -odd, odd, even], dim=-1).reshape(-1, 2, 2)


def _boosts(plus: Tensor, minus: Tensor, gap: Tensor, still: Tensor) -> Tensor:
    """Boosts (m, 2, 2) for plus, minus = w_ii + w_jj +- 2 w_ij, gap = -4 w_ij; I where still."""
    root_plus = torch.where(still, 1.0, plus).sqrt()
    root_minus = torch.where(still, 1.0, minus).sqrt()
    product = (root_plus * root_minus).sqrt()
    total = root_plus + root_minus
    even = torch.where(still, 1.0, total / (2 * product))
    odd = torch.where(still, 0.0, gap / (2 * total * product))
    return torch.stack([even, odd, odd, even], dim=-1).reshape(-1, 2, 2)
