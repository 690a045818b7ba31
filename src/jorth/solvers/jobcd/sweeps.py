"""What the methods share: compiled sweeps over pairs of rows, and steps on a majoriser of f.

Steps act on rows, from the left. A right step is a left step on the transposes: as a function of
X^T, f has the gradient G^T, and X^T is J-orthogonal too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import frobenius
from jorth.objectives import QuadraticForm
from jorth.objectives.quadratic import is_semidefinite, square_root
from jorth.plane.rounds import Majoriser, Proposal
from jorth.signature import Signature
from jorth.solvers.problem import Problem, State, Status, StopRun, all_finite
from jorth.solvers.riemannian.preconditioner import definite_form

Matrix = NDArray[np.float64]
Pairs = NDArray[np.int64]


def oriented(X: Tensor, side: str) -> Tensor:
    """Return the matrix whose rows change: X for left steps, a copy of X^T for right steps."""
    return X.mT.contiguous() if side == "right" else X


def transposed_form(form: QuadraticForm, side: str, columns: int) -> QuadraticForm:
    """Return the quadratic form in the matrix whose rows change."""
    if side != "right":
        return form
    A = form.A
    D = form.D if form.D is not None else torch.eye(columns, dtype=A.dtype, device=A.device)
    return QuadraticForm(D, None if form.C is None else form.C.mT, A, form.constant)


def score(problem: Problem, state: State) -> None:
    """Evaluate f and its gradient at X after a sweep."""
    state.value, state.gradient = problem.objective.value_and_gradient(state.X)
    state.exact = True


# -- exact sweeps on a quadratic f


class StepRule(NamedTuple):
    """How exact pair steps on a quadratic form are taken."""

    theta: float
    """The proximal weight; negative is relative to the curvature."""
    all_components: bool
    stop_unbounded: bool
    has_d: bool = False
    """Whether the form has a D: null lengths then come from X D X^T, not from the rows of X."""
    concave: bool = False
    """Whether f is concave, and therefore majorised by its linear part."""


class SweepForm(NamedTuple):
    """f = 1/2 tr(X^T A X D) + <C, X> in the matrix X (n, m) whose rows change.

    A (n, n) and D (m, m) are symmetric, and None is the identity; a zero C has no columns.
    """

    A: Matrix
    C: Matrix
    D: Matrix | None

    @classmethod
    def of(cls, form: QuadraticForm, side: str, columns: int) -> SweepForm:
        """Return the arrays of a form in the layout that compiled code needs."""

        def array(M: Tensor | None) -> Any:
            return None if M is None else np.ascontiguousarray(M.double().cpu().numpy())

        form = transposed_form(form, side, columns)
        C = np.zeros((len(form.A), 0)) if form.C is None else array(form.C)
        return cls(array(form.A), C, array(form.D))

    def concave(self) -> bool:
        """Check that -A and D, or A and -D, are positive semidefinite up to rounding."""
        low, high = np.linalg.eigvalsh(self.A)[[0, -1]]
        least, most = (1.0, 1.0) if self.D is None else np.linalg.eigvalsh(self.D)[[0, -1]]
        tiny_a = 1e-12 * max(abs(low), abs(high))
        tiny_d = 1e-12 * max(abs(least), abs(most))
        return bool((high <= tiny_a and least >= -tiny_d) or (low >= -tiny_a and most <= tiny_d))


def sweep(problem: Problem, form: SweepForm, X: Matrix, pairs: Pairs, rule: StepRule) -> bool:
    """Take the exact step on pairs (t, 2) of rows of X (n, m) in turn, in place and in O(n) each.

    Return whether a plane without a minimiser has ended the sweep.
    """
    from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic

    A, C, D = form
    n = len(X)
    # rows of an odd number of cache lines: the entries of a column would compete for a few of them
    Y = np.zeros((n, n + (8 - n) % 16 if n > 64 else n))
    Y[:, :n] = X @ X.T if D is None else X @ D @ X.T
    signs, rule = problem.signature.signs, rule._replace(has_d=D is not None)
    return _in_parts(problem, pairs, lambda part: sweep_quadratic(A, C, X, Y, signs, part, rule))


def _in_parts(
    problem: Problem, pairs: Pairs, sweep_part: Callable[[Pairs], int], size: int = 50_000
) -> bool:
    """Sweep over ``size`` pairs at a time: it returns their number t, or -t - 1 if unbounded."""
    for start in range(0, len(pairs), size):
        done = sweep_part(pairs[start : start + size])
        problem.objective.count.pair_updates += done if done >= 0 else -done - 1
        problem.objective.check_limits()
        if done < 0:
            return True
    return False


# -- right steps on tr(X^T A X): the J-Jacobi method, which diagonalises X^T A X


class Trace(NamedTuple):
    """The factor F of A = F^T F, or of A - mu J, and the error of ||F x||^2 for ||x|| <= 1."""

    F: Matrix
    rounding: float


def trace_to_diagonalise(problem: Problem, X: Tensor, theta: float | None) -> Trace | None:
    """Return the trace if f is 1/2 tr(X^T A X) with a semidefinite A or A - mu J, or None."""
    form = problem.objective.quadratic()
    if theta is not None or X.shape[0] != X.shape[1] or form is None:
        return None
    if form.C is not None or form.D is not None:
        return None
    A = form.A.double().cpu()
    if not is_semidefinite(form.A):
        shifted = definite_form(form, problem.signature) if bool(A.isfinite().all()) else None
        if shifted is None:
            return None
        A = shifted.A.double().cpu()
    F = square_root(A)
    return Trace(F.numpy(), (16 * len(A) * torch.finfo(A.dtype).eps * frobenius(F)) ** 2)


def diagonalise(problem: Problem, state: State, trace: Trace, pairs: Pairs) -> None:
    """Rotate columns so that w_ij = 0 for each pair (t, 2) in turn, W = X^T A X; evaluate f."""
    from jorth.solvers.jobcd._sweeps_numba import sweep_trace

    rows = np.array(state.X.mT.double().cpu().numpy(), order="C")
    F, signs = np.ascontiguousarray(rows @ trace.F.T), problem.signature.signs
    try:
        _in_parts(problem, pairs, lambda part: sweep_trace(F, rows, signs, part, trace.rounding))
    finally:
        state.X.copy_(torch.from_numpy(rows).mT)
        state.exact = False  # a limit may end the run before the value is known
    score(problem, state)


# -- steps on a majoriser


def first_curvature(problem: Problem, state: State, curvature: float | Literal["auto"]) -> float:
    """Return the estimate L; at first it is the option, what the objective knows, or a guess."""
    if state.curvature is None and curvature != "auto":
        state.curvature = problem.objective.in_unit(float(curvature))
    elif state.curvature is None:
        size = state.X.norm().item()
        guess = frobenius(state.gradient) / size if size else 1.0
        state.curvature = problem.objective.curvature() or guess or 1.0
    return state.curvature


def majorised_step(
    problem: Problem,
    state: Any,
    propose: Callable[[float], Proposal],
    estimate: float,
    *,
    side: str,
    adaptive: bool,
    floor: float = 0.0,
    secant: bool = False,
) -> float:
    """Propose until f falls enough, doubling the estimate on failure; return the next estimate.

    After a success the estimate is lowered, or with ``secant`` set to the curvature along the step.
    Without ``adaptive`` the first proposal is taken, whether f falls or not.
    """
    before, finite = estimate, True
    for _ in range(60):
        proposal = propose(estimate)
        if proposal.unbounded and problem.ends_unbounded:
            state.unbounded = True
            return estimate
        problem.objective.count.pair_updates += proposal.pairs
        if proposal.decrease <= 0:  # all pairs are optimal, or the step has shrunk to nothing
            break
        X = oriented(proposal.X, side)
        value, gradient = problem.objective.value_and_gradient(X)
        finite = all_finite(value, gradient)
        if finite and not adaptive:
            state.move_to(X, value, gradient)
            return estimate
        if finite and _falls_enough(state, proposal, X, value, gradient):
            met = (state.value - value) / proposal.decrease
            estimate *= 0.8 if met >= 0.9 else 0.9 if met >= 0.5 else 1.0
            if secant:
                estimate = secant_curvature(state, X - state.X, gradient - state.gradient, estimate)
            state.move_to(X, value, gradient)
            return max(estimate, floor)
        if not adaptive:
            break
        estimate *= 2
    else:
        state.stalled = True
    if not finite:
        raise StopRun(Status.NON_FINITE)
    return before


def _falls_enough(
    state: State, proposal: Proposal, X: Tensor, value: float, gradient: Tensor
) -> bool:
    """Check f(X) <= f - decrease / 100 for a proposed X: on a rough f more is never met.

    If the decrease is lost in the rounding of f, the test is <dX, dG> <= dX^T Q dX.
    """
    # f is rounded like its terms, which may cancel; <G, X> stands for their size
    size = abs(state.value) + abs(float((state.gradient * state.X).sum()))
    rounding = torch.finfo(X.dtype).eps * size
    if proposal.decrease > 50 * rounding:
        return value <= state.value - 0.01 * proposal.decrease + 4 * rounding
    met = ((X - state.X) * (gradient - state.gradient)).sum().item()
    return met <= proposal.quadratic * (1 + 1e-6) and value <= state.value + 8 * rounding


def secant_curvature(state: Any, step: Tensor, change: Tensor, fallback: float) -> float:
    """Return <s, y> / <s, s>, and each third time <y, y> / <s, y>; or else the fallback."""
    longest, largest = float(step.abs().max()), float(change.abs().max())
    if not (0 < longest < math.inf and 0 < largest < math.inf):
        return fallback
    # without scaling, the squares could be out of range
    s, y = step / longest, change / largest
    along = float((s * y).sum())
    if not along > 0:
        return fallback
    state.secants += 1
    if state.secants % 3 == 0:
        return largest / longest * (float(y.square().sum()) / along)
    return largest / longest * (along / float(s.square().sum()))


@cache
def compile_kernels() -> None:
    """Call each compiled kernel once on two rows, so that compilation is not on the clock."""
    from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic, sweep_trace

    I, pairs, signature = np.eye(2), np.array([[0, 1]]), Signature(1, 1)  # noqa: E741
    sweep_trace(I, I.copy(), signature.signs, pairs, 0.0)
    rule = StepRule(0.0, all_components=False, stop_unbounded=True)
    sweep_quadratic(I, I, I.copy(), I.copy(), signature.signs, pairs, rule)
    X = torch.eye(2, dtype=torch.float64)
    Majoriser(signature).propose(X, X, 1.0, pairs[None])
