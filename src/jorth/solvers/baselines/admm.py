"""ADMM: the constraint split over two copies of X."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from jorth.arrays import check_auto, frobenius
from jorth.group.slopes import symmetric_multiplier
from jorth.solvers.baselines import watch
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

EQUALITY = 0.1
"""The penalty of X = Y relative to that of X^T J Y = J."""
PATIENCE = 100
"""Steps over which the constraints must have come closer, else the penalties double."""
RAISE = 4.0
"""The factor by which the penalties grow where the method goes back to its best point."""
LOOSE = 0.1
"""Violations below this are left to the multipliers."""


@dataclass(frozen=True, kw_only=True)
class ADMM(AbstractSolver):
    """The alternating direction method of multipliers on min f(X) subject to X = Y, X^T J Y = J.

    With scaled multipliers U, W and penalties rho = penalty L / 10 and sigma = penalty L, a step is three lines, two
    of them symmetric positive definite solves:

        (H + rho I + sigma J Y Y^T J) X' = H X - G + rho (Y - U) + sigma J Y (J - W^T)
        (rho I + sigma J X' X'^T J) Y' = rho (X' + U) + sigma J X' (J - W)
        U += X' - Y',  W += X'^T J Y' - J

    H is the curvature of f: A itself for a convex quadratic f = 1/2 tr(X^T A X) + <C, X>, so that the first line
    is exact, and L I otherwise, L the Lipschitz constant or the largest secant seen. X is what the loop polishes,
    scores and returns; nothing holds it in the component of the start. Where it cannot be polished, or gets no better
    for 15 steps, the method goes back to the best polished point, with the multipliers of a stationary one.

    Args:
        penalty: Of the constraints, in units of the curvature; "auto" starts from 1, doubles whenever the
            constraints come no closer over 100 steps, and grows fourfold where the method goes back.
    """

    penalty: float | Literal["auto"] = "auto"
    name = "admm"
    feasible = False
    thin = False

    def __post_init__(self) -> None:
        check_auto(self.penalty, "penalty")

    def init(self, problem: Problem, X: Tensor) -> State:
        """Both copies at the start, multipliers zero."""
        state: State = super().init(problem, X)
        known = problem.objective.curvature()
        state.numbers["curvature"] = known or frobenius(state.gradient) / frobenius(X) or 1.0
        state.numbers["penalty"] = 1.0 if self.penalty == "auto" else float(self.penalty)
        state.numbers.update(gap=math.inf, steps=0.0)
        state.tensors.update(Y=X.clone(), U=torch.zeros_like(X), W=torch.zeros_like(X))
        return state

    def step(self, problem: Problem, state: State) -> None:
        """X, then Y, then the multipliers; then curvature and penalties where they must grow."""
        if watch.lost(state, problem.signs):
            self._go_back(problem, state)
        X, numbers = state.X, state.numbers
        found = self._primal(problem, state)
        if found is None:
            self._give_up_or_go_back(problem, state)
            return
        new, Y = found
        s = problem.signs
        apart, violation = new - Y, new.mT @ (s[:, None] * Y) - torch.diag(s)
        value, gradient = problem.objective.value_and_gradient(new)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        if problem.objective.curvature() is None:
            moved = float((new - X).norm())
            secant = frobenius(gradient - state.gradient) / moved if moved > 0 else 0.0
            self._rescale(state, max(secant, numbers["curvature"]), numbers["penalty"])
        state.tensors.update(Y=Y, U=state.tensors["U"] + apart, W=state.tensors["W"] + violation)
        X.copy_(new)
        state.value, state.gradient = value, gradient
        self._balance(state, math.hypot(float(apart.norm()), float(violation.norm())))

    def _primal(self, problem: Problem, state: State) -> tuple[Tensor, Tensor] | None:
        """The two solves; None where a system is not positive definite in this precision: Y or X has run off."""
        s, tensors = problem.signs, state.tensors
        X, Y, U, W = state.X, tensors["Y"], tensors["U"], tensors["W"]
        sigma = state.numbers["penalty"] * state.numbers["curvature"]
        rho = EQUALITY * sigma
        J, identity = torch.diag(s), torch.eye(len(s)).to(X)
        H, JY = self._curvature(problem, state), s[:, None] * Y
        near = rho * (Y - U) + sigma * (JY @ (J - W.mT))
        new = _solve(H + rho * identity + sigma * (JY @ JY.mT), H @ X - state.gradient + near)
        if new is None:
            return None
        JX = s[:, None] * new
        other = _solve(
            rho * identity + sigma * (JX @ JX.mT), rho * (new + U) + sigma * (JX @ (J - W))
        )
        return None if other is None else (new, other)

    def _give_up_or_go_back(self, problem: Problem, state: State) -> None:
        """Once more from the best point, unless that is where the step failed."""
        if state.numbers["steps"] == 0:
            state.stalled, state.reason = (
                True,
                "the linear systems of a step are singular in this precision",
            )
            return
        self._go_back(problem, state)

    def _go_back(self, problem: Problem, state: State) -> None:
        """To the best point with higher penalties, and with the multipliers that would make it stationary.

        rho U + sigma J X W = -G and rho U = sigma J X W hold at a stationary X = Y: W = -Lambda / (2 sigma).
        """
        numbers, point = state.numbers, watch.best(state)
        if self.penalty == "auto":
            numbers["penalty"] *= RAISE
        state.X.copy_(point.X)
        state.value, state.gradient = point.value, point.gradient
        sigma = numbers["penalty"] * numbers["curvature"]
        W = -symmetric_multiplier(point.X, point.gradient, problem.signs) / (2 * sigma)
        U = problem.signs[:, None] * (point.X @ W) / EQUALITY
        state.tensors.update(Y=point.X.clone(), U=U, W=W)
        numbers.update(gap=math.inf, steps=0.0)

    def _curvature(self, problem: Problem, state: State) -> Tensor:
        """H: A where it is positive semidefinite and alone, else L I."""
        if "H" not in state.cache:
            form = problem.objective.quadratic()
            convex = (
                form is not None and form.D is None and bool(torch.linalg.eigvalsh(form.A)[0] >= 0)
            )
            state.cache["H"] = form.A.to(state.X) if form is not None and convex else None
        if state.cache["H"] is not None:
            exact: Tensor = state.cache["H"]
            return exact
        return state.numbers["curvature"] * torch.eye(len(state.X)).to(state.X)

    def _balance(self, state: State, gap: float) -> None:
        """Double the penalties where the constraints have come no closer for a while."""
        numbers = state.numbers
        numbers["steps"] += 1
        if self.penalty != "auto" or numbers["steps"] % PATIENCE:
            return
        if gap > max(LOOSE, numbers["gap"]):
            self._rescale(state, numbers["curvature"], 2 * numbers["penalty"])
        numbers["gap"] = gap

    def _rescale(self, state: State, curvature: float, penalty: float) -> None:
        """New penalties; the scaled multipliers shrink as these grow."""
        numbers = state.numbers
        ratio = numbers["curvature"] * numbers["penalty"] / (curvature * penalty)
        numbers.update(curvature=curvature, penalty=penalty)
        for name in ("U", "W"):
            state.tensors[name] = ratio * state.tensors[name]


def _solve(K: Tensor, right: Tensor) -> Tensor | None:
    """K^-1 right for a symmetric positive definite K; None where it is not in this precision."""
    factor, failed = torch.linalg.cholesky_ex(K)
    if bool(failed):
        return None
    # one memory layout: a resumed run must round as this one does
    return torch.cholesky_solve(right, factor).contiguous()
