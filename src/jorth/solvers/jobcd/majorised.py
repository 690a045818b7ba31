"""Majorised steps: propose a point, move there if f falls enough, and adapt the curvature estimate.

Steps act on rows, from the left. A right step is a left step on the transposes: as a function of
X^T, f has the gradient G^T, and X^T is J-orthogonal too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import frobenius
from jorth.plane.pairs import rounds_in_tournament, tournament_rounds
from jorth.plane.rounds import Proposal, QuadraticRounds
from jorth.signature import Signature
from jorth.solvers.jobcd.quadratic_sweeps import StepRule, oriented
from jorth.solvers.problem import Problem, State, Status, StopRun, all_finite

DOUBLINGS = 60
RELAX = {0.9: 0.8, 0.5: 0.9, -math.inf: 1.0}
"""The factor on the estimate after a step that achieved this part of the promised decrease."""
ENOUGH = 0.01
"""The part of the promised decrease that a step must achieve.

To demand all of it would ask for the largest curvature nearby; on a rough f, such as a structural
probe, the estimate would then grow without bound.
"""


@dataclass
class MajorisedState(State):
    """The state of a method that takes majorised steps."""

    secants: int = 0
    """How often the curvature along a step has been measured."""


class Verdict(Enum):
    """What became of a proposal."""

    TAKEN = "the state has moved there"
    REFUSED = "f did not fall enough"
    NOT_FINITE = "the value or gradient there is not finite"


def first_curvature(problem: Problem, state: State, curvature: float | Literal["auto"]) -> float:
    """The estimate L; at first it is the option, what the objective knows, or a guess."""
    if state.curvature is None and curvature != "auto":
        state.curvature = problem.objective.in_unit(float(curvature))
    elif state.curvature is None:
        size = state.X.norm().item()
        guess = frobenius(state.gradient) / size if size else 1.0
        state.curvature = problem.objective.curvature() or guess or 1.0
    return state.curvature


def majorised_step(
    problem: Problem,
    state: MajorisedState,
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
    """
    before = estimate
    value = state.value
    X, G = state.X.clone(), state.gradient
    verdict = Verdict.REFUSED
    for _ in range(DOUBLINGS):
        proposal = propose(estimate)
        if proposal.unbounded and problem.ends_unbounded:
            state.unbounded = True
            return estimate
        if proposal.decrease <= 0:  # all pairs are optimal, or the step has shrunk to nothing
            problem.objective.count.pair_updates += proposal.pairs
            break
        verdict = accept(problem, state, proposal, side, strict=adaptive)
        if verdict is Verdict.TAKEN and not adaptive:
            return estimate
        if verdict is Verdict.TAKEN:
            met = (value - state.value) / proposal.decrease
            relaxed = estimate * next(f for least, f in RELAX.items() if met >= least)
            if secant:
                relaxed = secant_curvature(state, state.X - X, state.gradient - G, relaxed)
            return max(relaxed, floor)
        if not adaptive:
            break
        estimate *= 2
    else:
        state.stalled = True
    if verdict is Verdict.NOT_FINITE:
        raise StopRun(Status.NON_FINITE)
    return before


def accept(
    problem: Problem, state: State, proposal: Proposal, side: str, *, strict: bool
) -> Verdict:
    """Evaluate f at the proposed point, and move there if f falls enough, or always if not strict.

    f falls enough if f(proposed) <= f - decrease / 100. If the decrease is lost in the rounding of
    f, the test is <dX, dG> <= dX^T Q dX: the curvature found is not above the curvature assumed.
    """
    X = oriented(proposal.X, side)
    value, gradient = problem.objective.value_and_gradient(X)
    problem.objective.count.pair_updates += proposal.pairs
    if not all_finite(value, gradient):
        return Verdict.NOT_FINITE
    # f is rounded like its terms, which may cancel; <G, X> stands for their size
    size = abs(state.value) + abs(float((state.gradient * state.X).sum()))
    rounding = torch.finfo(X.dtype).eps * size
    if not strict:
        sound = True
    elif proposal.decrease > 50 * rounding:
        sound = value <= state.value - ENOUGH * proposal.decrease + 4 * rounding
    else:
        met = ((X - state.X) * (gradient - state.gradient)).sum().item()
        sound = met <= proposal.quadratic * (1 + 1e-6) and value <= state.value + 8 * rounding
    if not sound:
        return Verdict.REFUSED
    state.move_to(X, value, gradient)
    return Verdict.TAKEN


def secant_curvature(state: MajorisedState, moved: Tensor, bent: Tensor, other: float) -> float:
    """Return the curvature along a step, or the other estimate if it is not positive.

    With s the step and y the change of the gradient it is <s, y> / <s, s> twice, then
    <y, y> / <s, y>: the two lengths of Barzilai and Borwein. The second one alone would be the
    sharpest curvature of a rough f.
    """
    far = float(moved.abs().max())
    size = float(bent.abs().max())
    if not (0 < far < math.inf and 0 < size < math.inf):
        return other
    # without scaling, the squares could be out of range
    s = moved / far
    y = bent / size
    along = float((s * y).sum())
    if not along > 0:
        return other
    state.secants += 1
    if state.secants % 3 == 0:
        return size / far * (float(y.square().sum()) / along)
    return size / far * (along / float(s.square().sum()))


def exact_rounds(
    problem: Problem, rounds: QuadraticRounds, X: Tensor, count: int
) -> Callable[[float], Proposal]:
    """The proposal of ``count`` rounds from X, as a function of the factor on pairs' curvatures.

    Each round has its exact gradient through Y = X D X^T in O(n^2), and the objective is evaluated
    only at the end. Rounds are drawn from a tournament in the order of the indices, whose pairs a
    device reads fastest.
    """
    n = len(X)
    length = rounds_in_tournament(n)
    drawn = [problem.rng.permutation(length) for _ in range(-(-count // length))]
    partners = tournament_rounds(n, np.concatenate(drawn)[:count])

    def propose(factor: float) -> Proposal:
        rounds.start(X)
        rounds.run(partners, factor)
        # the only wait for the device
        decrease, unbounded = torch.stack([rounds.decrease, rounds.unbounded.double()]).tolist()
        # only a decrease is tested: the curvature of a quadratic f is right by construction
        return Proposal(rounds.X.clone(), decrease, math.inf, count * (n // 2), bool(unbounded))

    return propose


Kernels = Literal["majoriser", "trace", "quadratic", "block"]


@cache
def compile_kernels(*kinds: Kernels) -> None:
    """Call compiled kernels once on two rows, all kinds or some: compilation is not on the clock.

    Without numba the solvers still run on a device; on the CPU they say what is missing.
    """
    with suppress(ImportError):
        for kind in kinds or get_args(Kernels):
            _call_once(kind)


def _call_once(kind: Kernels) -> None:
    identity, pairs, signs = np.eye(2), np.array([[0, 1]]), Signature(1, 1).signs
    rule = StepRule(0.0, all_components=False, stop_unbounded=True)
    if kind == "majoriser":
        from jorth.plane._numba import PairCurvature, propose_round, sweep_batch

        curvature = PairCurvature(1.0, identity, identity, has_d=False, scalar=False)
        propose_round(identity.copy(), identity, identity, curvature, signs, pairs, 0.0, False)
        sweep_batch(np.eye(2)[None], np.eye(2)[None], 1.0, signs, pairs, 0.0, False)
    elif kind == "trace":
        from jorth.solvers.jobcd._sweeps_numba import sweep_trace

        sweep_trace(np.eye(2), np.eye(2), np.eye(2), signs, pairs, 0.0, True)
    elif kind == "quadratic":
        from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic

        sweep_quadratic(identity, identity, np.eye(2), np.eye(2), signs, pairs, rule)
    else:
        from jorth.solvers.jobcd._sweeps_numba import sweep_block

        work = np.eye(2), np.eye(2), np.eye(2)
        sweep_block(identity, identity, *work, signs.copy(), pairs, rule)
