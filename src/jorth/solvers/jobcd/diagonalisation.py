"""Right steps on tr(X^T A X): the J-Jacobi method, which diagonalises X^T A X."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import frobenius
from jorth.objectives.quadratic import is_semidefinite, square_root
from jorth.plane import apply_rows
from jorth.plane.families import NEAR_NULL
from jorth.plane.problem import RELATIVE_THETA
from jorth.solvers.jobcd.quadratic_sweeps import CHUNK
from jorth.solvers.problem import Problem, State


class Trace(NamedTuple):
    """A, its factor F with A = F^T F if it is semidefinite, and their rounding relative to ||x||^2.

    The rounding is that of the entries of W = X^T A X, or of squares ||F x||^2 that should be zero.
    An entry of W has an error of at most 2 n eps ||A||_F ||x_i|| ||x_j||, hence w_ii + w_jj +-
    2 w_ij one of four times as much for the longest x; the rotations of a sweep add the same again.
    ||F x|| has an error of n eps ||F||_F ||x||, and its square the square of that.
    """

    A: Tensor
    F: Tensor | None
    rounding: float


def trace_to_diagonalise(problem: Problem, X: Tensor, theta: float | None) -> Trace | None:
    """The trace if right steps can diagonalise it, else None.

    They can if f is 1/2 tr(X^T A X) and nothing else, X is square, theta is None, and the run need
    not continue on a concave f, which is unbounded.
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
    """Rotate each pair (m, 2) in turn, in compiled code, then evaluate f."""
    from jorth.solvers.jobcd._sweeps_numba import sweep_trace

    rows = np.array(state.X.mT.double().cpu().numpy(), order="C")
    W = np.zeros((0, 0))
    half = np.zeros((len(rows), 0))
    if trace.F is None:
        W = rows @ trace.A.cpu().numpy() @ rows.T
        W = np.ascontiguousarray(W + W.T) / 2
    else:
        half = np.ascontiguousarray(rows @ trace.F.cpu().numpy().T)
    signs = problem.signature.signs
    stop = problem.ends_unbounded
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
        state.exact = False  # a limit may end the run before the value is known
    _score(problem, state)


def rotate_rounds(problem: Problem, state: State, trace: Trace, rounds: NDArray[np.int64]) -> None:
    """Rotate all disjoint pairs of each round (r, m, 2) at once, on the device of X."""
    if state.X.device.type == "cpu":
        rotate_pairs(problem, state, trace, rounds.reshape(-1, 2))
        return
    rows = state.X.mT.contiguous()
    # W = X^T A X, or the transpose of F X
    W = rows @ trace.A.to(rows) @ rows.mT if trace.F is None else rows @ trace.F.mT.to(rows)
    for pairs in rounds:
        index = torch.from_numpy(pairs).to(rows.device)
        rounding = trace.rounding * rows.square().sum(dim=1).max()
        if trace.F is None:
            blocks = W[index[:, :, None], index[:, None, :]]
            V, unbounded = _rotations(blocks, problem.signs[index], rounding)
        else:
            V = _rotations_of_rows(W[index], problem.signs[index], rounding)
            unbounded = torch.zeros(0)
        if problem.ends_unbounded and bool(unbounded.any()):
            state.unbounded = True
            break
        apply_rows(rows, index, V)
        apply_rows(W, index, V)
        if trace.F is None:
            W = W.mT.contiguous()
            apply_rows(W, index, V)
        problem.objective.count.pair_updates += len(pairs)
    state.X.copy_(rows.mT)
    state.exact = False
    _score(problem, state)


def _score(problem: Problem, state: State) -> None:
    state.value, state.gradient = problem.objective.value_and_gradient(state.X)
    state.exact = True


def _rotations(B: Tensor, signs: Tensor, rounding: Tensor | float = 0.0) -> tuple[Tensor, Tensor]:
    """V (m, 2, 2) with V B V^T diagonal, and where none exists; formulas as in `sweep_trace`."""
    a, b, c = B[:, 0, 0], B[:, 1, 1], (B[:, 0, 1] + B[:, 1, 0]) / 2
    plus = a + b + 2 * c
    minus = a + b - 2 * c
    opposite = signs[:, 0] != signs[:, 1]
    least = torch.minimum(plus, minus)
    fixed = (c == 0) | (opposite & (least <= rounding))
    boosts = _boosts(plus, minus, -4 * c, ~opposite | fixed)
    V = torch.where(opposite[:, None, None], boosts, _turns(b - a, c, fixed))
    return V, opposite & (c != 0) & (least < -rounding)


def _rotations_of_rows(Z: Tensor, signs: Tensor, rounding: Tensor | float) -> Tensor:
    """The same for B = Z Z^T, Z (m, 2, n); V always exists as a small weight is added to B."""
    B = Z @ Z.mT
    total = Z.square().sum(dim=(1, 2))
    plus = (Z[:, 0] + Z[:, 1]).square().sum(dim=1)
    minus = (Z[:, 0] - Z[:, 1]).square().sum(dim=1)
    weight = RELATIVE_THETA * (plus + minus)
    c = B[:, 0, 1]
    # minus - plus cancels if c is small, but is consistent with both if one of them is nearly null
    gap = torch.where(torch.minimum(plus, minus) > NEAR_NULL * total, -4 * c, minus - plus)
    fixed = (c == 0) | (total <= rounding)
    opposite = signs[:, 0] != signs[:, 1]
    boosts = _boosts(plus + weight, minus + weight, gap, ~opposite | fixed)
    return torch.where(opposite[:, None, None], boosts, _turns(B[:, 1, 1] - B[:, 0, 0], c, fixed))


def _turns(difference: Tensor, c: Tensor, fixed: Tensor) -> Tensor:
    """Rotations (m, 2, 2) for difference = w_jj - w_ii and c = w_ij; I where fixed."""
    ratio = difference / (2 * torch.where(fixed, 1.0, c))
    one = torch.ones_like(ratio)
    tangent = torch.copysign(one, ratio) / (ratio.abs() + torch.hypot(one, ratio))
    cosine = 1 / (1 + tangent.square()).sqrt()
    even = torch.where(fixed, 1.0, cosine)
    odd = torch.where(fixed, 0.0, tangent * cosine)
    return torch.stack([even, -odd, odd, even], dim=-1).reshape(-1, 2, 2)


def _boosts(plus: Tensor, minus: Tensor, gap: Tensor, fixed: Tensor) -> Tensor:
    """Boosts (m, 2, 2) for plus, minus = w_ii + w_jj +- 2 w_ij, gap = -4 w_ij; I where fixed."""
    root_plus = torch.where(fixed, 1.0, plus).sqrt()
    root_minus = torch.where(fixed, 1.0, minus).sqrt()
    product = (root_plus * root_minus).sqrt()
    total = root_plus + root_minus
    even = torch.where(fixed, 1.0, total / (2 * product))
    odd = torch.where(fixed, 0.0, gap / (2 * total * product))
    return torch.stack([even, odd, odd, even], dim=-1).reshape(-1, 2, 2)
