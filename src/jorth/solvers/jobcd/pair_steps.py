"""One majorised step on disjoint pairs, shared by Gauss-Seidel (one pair at a time) and Jacobi (many).

Steps act on the left, on rows. A right step is a left step on the transposes: f(X) as a function of X^T has the
gradient G^T, and X^T is J-orthogonal too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.objectives import QuadraticForm
from jorth.plane import apply_rows, solve_plane, solve_rows
from jorth.plane.proximal import RELATIVE_THETA, signed_theta
from jorth.plane.solve import Components
from jorth.signature import Signature
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State

ENOUGH = 0.01
"""The part of the promised decrease that must be met. All of it would ask for the largest curvature anywhere near: on a
rough f, such as a structural probe, the estimate then grows without end."""


class Outcome(Enum):
    """What became of a proposal."""

    TAKEN = "taken"
    REFUSED = "f did not fall enough"
    NOT_FINITE = "the value or gradient there is not finite"


@dataclass
class Proposal:
    """A trial point, the decrease its majoriser promises, and the majoriser's quadratic term there."""

    X: Tensor
    decrease: float
    quadratic: float
    pairs: int
    unbounded: bool = False


def oriented(X: Tensor, side: str) -> Tensor:
    """The matrix whose rows are changed: X for left steps, a copy of X^T for right ones."""
    return X if side == "left" else X.mT.contiguous()


def transposed_form(form: QuadraticForm, side: str, columns: int) -> QuadraticForm:
    """The quadratic form in the matrix whose rows are changed."""
    if side == "left":
        return form
    D = (
        form.D
        if form.D is not None
        else torch.eye(columns, dtype=form.A.dtype, device=form.A.device)
    )
    return QuadraticForm(D, None if form.C is None else form.C.mT, form.A, form.constant)


def propose_pairs(
    problem: Problem,
    X: Tensor,
    G: Tensor,
    pairs: NDArray[np.int64],
    L: float,
    *,
    form: QuadraticForm | None,
    theta: float | None,
    everywhere: bool,
    scalar: bool = False,
) -> Proposal:
    """The best steps on disjoint pairs of rows of X at once.

    Q = L (Z Z^T) (x) I_2 for an L-smooth f; with a quadratic form Q = L (Z D Z^T) (x) A_BB, where L >= 1 makes up for
    what the pairs have in common; Q = L I if ``scalar``.
    """
    if X.device.type == "cpu":
        return _compiled_round(
            problem, X, G, pairs, L, form=form, theta=theta, everywhere=everywhere, scalar=scalar
        )
    index = torch.from_numpy(pairs).to(X.device)
    Z = X[index]
    P = G[index] @ Z.mT
    signs = torch.from_numpy(problem.signature.signs[pairs]).to(X.device)
    components: Components = "all" if everywhere else "identity"
    weight: Tensor | float
    if scalar:
        weight = RELATIVE_THETA * L if theta is None else theta
        V, decrease, unbounded = solve_plane(
            P, L, signs, theta=weight, components=components, check=False
        )
    else:
        D = None if form is None else form.D
        A = L if form is None else L * form.A[index[:, :, None], index[:, None, :]]
        size = (Z @ (Z if D is None else Z @ D).mT).abs().amax(dim=(-2, -1))
        size = size * (L if form is None else A.abs().amax(dim=(-2, -1)))  # type: ignore[union-attr]
        weight = RELATIVE_THETA * size if theta is None else theta
        V, decrease, unbounded = solve_rows(
            G[index], Z, A, signs, D=D, theta=weight, components=components, check=False
        )
    trial = X.clone()
    apply_rows(trial, index, V)
    step = V - torch.eye(2, dtype=V.dtype, device=V.device)
    total = decrease.sum().item()
    quadratic = -2 * (total + (step * P).sum().item())
    return Proposal(trial, total, quadratic, len(pairs), bool(unbounded.any()))


def _compiled_round(
    problem: Problem,
    X: Tensor,
    G: Tensor,
    pairs: NDArray[np.int64],
    L: float,
    *,
    form: QuadraticForm | None,
    theta: float | None,
    everywhere: bool,
    scalar: bool,
) -> Proposal:
    """`propose_pairs` on the CPU: one pass over X and G."""
    from jorth.plane.compiled.rounds import propose_round

    D = None if form is None else form.D
    A = X[:0] if form is None else form.A
    rows, weighted = X.double().numpy(), (X if D is None else X @ D).double().numpy()
    trial = rows.copy()
    total, linear, unbounded = propose_round(
        trial, rows, G.double().numpy(), weighted, A.double().numpy(), float(L), scalar, D is not None,
        problem.signature.signs, pairs, signed_theta(theta), everywhere,
    )  # fmt: skip
    return Proposal(
        torch.from_numpy(trial).to(X), total, -2 * (total + linear), len(pairs), unbounded
    )


@cache
def compile_kernels() -> None:
    """Call every compiled kernel once on a problem of two rows: loading and compiling stay off the clock.

    Where numba is not installed the solvers still run on a device, and say what is missing on the CPU.
    """
    try:
        from jorth.plane.compiled.rounds import propose_round
        from jorth.plane.compiled.sweeps import (
            sweep_block,
            sweep_majoriser,
            sweep_quadratic,
            sweep_trace,
        )
    except ImportError:
        return
    identity, pairs, signs = np.eye(2), np.array([[0, 1]]), Signature(1, 1).signs
    propose_round(
        identity.copy(),
        identity,
        identity,
        identity,
        identity,
        1.0,
        False,
        False,
        signs,
        pairs,
        0.0,
        False,
    )
    sweep_majoriser(identity.copy(), identity, 1.0, signs, pairs, 0.0, False)
    for half in (np.zeros((2, 0)), identity.copy()):
        sweep_trace(identity.copy(), half, identity.copy(), signs, pairs, 0.0, True)
    sweep_block(
        identity, identity, identity.copy(), identity.copy(), np.zeros((2, 0)), False, signs.copy(), pairs,
        0, 0.0, False, True,
    )  # fmt: skip
    for C in (np.zeros((2, 0)), identity):
        sweep_quadratic(
            identity,
            C,
            identity.copy(),
            identity.copy(),
            False,
            signs,
            pairs,
            0.0,
            False,
            True,
            False,
        )


def propose_rounds(
    problem: Problem,
    X: Tensor,
    G: Tensor,
    rounds: NDArray[np.int64],
    *,
    L: float,
    theta: float | None,
    everywhere: bool,
) -> Proposal:
    """Several rounds (r, m, 2) of disjoint pairs on the majoriser <Y - X, G> + L/2 ||Y - X||^2, with one gradient."""
    if X.device.type != "cpu":
        return _rounds_on_device(problem, X, G, rounds, L=L, theta=theta, everywhere=everywhere)
    from jorth.plane.compiled.sweeps import sweep_majoriser

    trial = X.double().numpy().copy()
    centre = (X - G / L).double().numpy()
    pairs = rounds.reshape(-1, 2)
    decrease = sweep_majoriser(
        trial, centre, L, problem.signature.signs, pairs, signed_theta(theta), everywhere
    )
    result = torch.from_numpy(trial).to(X)
    return Proposal(result, decrease, L * (result - X).square().sum().item(), len(pairs))


def _rounds_on_device(
    problem: Problem,
    X: Tensor,
    G: Tensor,
    rounds: NDArray[np.int64],
    *,
    L: float,
    theta: float | None,
    everywhere: bool,
) -> Proposal:
    trial, decrease, count = X, 0.0, 0
    for pairs in rounds:
        inner = propose_pairs(
            problem,
            trial,
            G + L * (trial - X),
            pairs,
            L,
            form=None,
            theta=theta,
            everywhere=everywhere,
        )
        trial, decrease, count = inner.X, decrease + inner.decrease, count + inner.pairs
    return Proposal(trial, decrease, L * (trial - X).square().sum().item(), count)


def accept(
    problem: Problem, state: State, proposal: Proposal, side: str, *, strict: bool
) -> Outcome:
    """Evaluate f at the trial point and move there if it fell enough; without ``strict`` if f is finite.

    The test is f(trial) <= f - decrease / 100. Where the decrease drowns in the rounding of f, it is
    <dX, dG> <= dX^T Q dX: the curvature met is not above the curvature assumed.
    """
    X = oriented(proposal.X, side)
    value, gradient = problem.objective.value_and_gradient(X)
    problem.objective.count.pair_updates += proposal.pairs
    if not all_finite(value, gradient):
        return Outcome.NOT_FINITE
    # the rounding of f is that of its terms, which may cancel: <G, X> stands for their size
    rounding = torch.finfo(X.dtype).eps * (
        abs(state.value) + abs(float((state.gradient * state.X).sum()))
    )
    if not strict:
        sound = True
    elif proposal.decrease > 50 * rounding:
        sound = value <= state.value - ENOUGH * proposal.decrease + 4 * rounding
    else:
        met = ((X - state.X) * (gradient - state.gradient)).sum().item()
        sound = met <= proposal.quadratic * (1 + 1e-6) and value <= state.value + 8 * rounding
    if sound:
        state.X.copy_(X)
        state.value, state.gradient = value, gradient
    return Outcome.TAKEN if sound else Outcome.REFUSED
