"""Right steps on tr(X^T A X): the J-Jacobi method, which diagonalises X^T A X and converges quadratically."""

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
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State

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


class _Trace(NamedTuple):
    """A in float64 on the device of X, a factor F of it where it is positive semidefinite, and the rounding of both."""

    A: Tensor
    F: Tensor | None
    rounding: float
    """Relative to ||x||^2, of the entries of X^T A X, or of the squares ||F x||^2 that should be zero.

    An entry of X^T A X is off by at most 2 n eps ||A||_F ||x_i|| ||x_j||, hence w_ii + w_jj +- 2 w_ij by four times
    as much for the longest x; the rotations of a sweep add as much again. ||F x|| is off by n eps ||F||_F ||x||, its
    square by the square of that.
    """


def _trace(problem: Problem, state: State) -> _Trace:
    if "trace" not in state.cache:
        form = problem.objective.quadratic()
        assert form is not None
        dtype = form.A.dtype if state.X.device.type != "cpu" else torch.float64
        A, size = (
            form.A.to(device=state.X.device, dtype=dtype),
            16 * len(form.A) * torch.finfo(dtype).eps,
        )
        F = square_root(A) if is_semidefinite(form.A) else None
        state.cache["trace"] = _Trace(
            A, F, size * frobenius(A) if F is None else (size * frobenius(F)) ** 2
        )
    found: _Trace = state.cache["trace"]
    return found


def rotate_pairs(problem: Problem, state: State, pairs: NDArray[np.int64]) -> None:
    """One rotation for each pair (m, 2) in turn, in compiled code; then value and gradient."""
    from jorth.plane.compiled import sweeps

    trace = _trace(problem, state)
    rows = np.array(state.X.mT.double().cpu().numpy(), order="C")
    W, half = np.zeros((0, 0)), np.zeros((len(rows), 0))
    if trace.F is None:
        W = rows @ trace.A.cpu().numpy() @ rows.T
        W = np.ascontiguousarray(W + W.T) / 2
    else:
        half = np.ascontiguousarray(rows @ trace.F.cpu().numpy().T)
    try:
        for start in range(0, len(pairs), CHUNK):
            problem.objective.check_limits()
            part = pairs[start : start + CHUNK]
            done = sweeps.sweep_trace(
                W, half, rows, problem.signature.signs, part, trace.rounding, problem.ends_unbounded
            )
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
    trace, rows = _trace(problem, state), state.X.mT.contiguous()
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
    """The same for B = Z Z^T, Z (m, 2, n): always one, as the null lengths have a proximal weight."""
    B, total = Z @ Z.mT, Z.square().sum(dim=(1, 2))
    plus, minus = (Z[:, 0] + Z[:, 1]).square().sum(dim=1), (Z[:, 0] - Z[:, 1]).square().sum(dim=1)
    weight, c = RELATIVE_THETA * (plus + minus), B[:, 0, 1]
    # minus - plus cancels where c is small; near null it does not, and goes with the two lengths to rounding
    gap = torch.where(torch.minimum(plus, minus) > NEAR_NULL * total, -4 * c, minus - plus)
    still = (c == 0) | (total <= rounding)
    opposite = signs[:, 0] != signs[:, 1]
    boosts = _boosts(plus + weight, minus + weight, gap, ~opposite | still)
    return torch.where(opposite[:, None, None], boosts, _turns(B[:, 1, 1] - B[:, 0, 0], c, still))


def _turns(difference: Tensor, c: Tensor, still: Tensor) -> Tensor:
    """Rotations (m, 2, 2) for w_jj - w_ii and w_ij, and I where still."""
    ratio = difference / (2 * torch.where(still, 1.0, c))
    tangent = torch.copysign(torch.ones_like(ratio), ratio) / (
        ratio.abs() + torch.hypot(torch.ones_like(ratio), ratio)
    )
    cosine = 1 / (1 + tangent.square()).sqrt()
    even, odd = torch.where(still, 1.0, cosine), torch.where(still, 0.0, tangent * cosine)
    return torch.stack([even, -odd, odd, even], dim=-1).reshape(-1, 2, 2)


def _boosts(plus: Tensor, minus: Tensor, gap: Tensor, still: Tensor) -> Tensor:
    """Boosts (m, 2, 2) for plus, minus = w_ii + w_jj +- 2 w_ij and gap = -4 w_ij, and I where still."""
    root_plus, root_minus = (
        torch.where(still, 1.0, plus).sqrt(),
        torch.where(still, 1.0, minus).sqrt(),
    )
    product, total = (root_plus * root_minus).sqrt(), root_plus + root_minus
    even, odd = (
        torch.where(still, 1.0, total / (2 * product)),
        torch.where(still, 0.0, gap / (2 * total * product)),
    )
    return torch.stack([even, odd, odd, even], dim=-1).reshape(-1, 2, 2)
