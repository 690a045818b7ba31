"""Riemannian L-BFGS in the trivialisation X <- R(J S) X, S skew, preconditioned where the objective is a quadratic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from jorth.group.retractions import cayley_step
from jorth.solvers.base import AbstractSolver, State, check_choice
from jorth.solvers.counting import all_finite
from jorth.solvers.criticality import skew_gradient
from jorth.solvers.problem import Problem
from jorth.solvers.status import Status, StopRun

ARMIJO = 1e-4
HALVINGS = 50
LONGEST = 1.4
"""The norm of the boost part of a step: before the pole of the Cayley transform at 2."""
FAR = 4e4
"""||X||_F^2 - n beyond which the model is no good: there the steps that it asks for are cut to nothing at the pole."""
STALE = 0.05
"""The relative change of X after which the preconditioner is made anew, and the pairs of the old metric are dropped."""


@dataclass(frozen=True, kw_only=True)
class RiemannianLBFGS(AbstractSolver):
    """L-BFGS on O(p, q) with the left-invariant metric and the Cayley retraction; it stays in the start's component.

    Points move by X <- R(J S) X. The gradient in S is g = skew(J G X^T), and vectors are carried from point to point
    unchanged. For a convex quadratic f = 1/2 tr(X^T A X) + <C, X> (`Procrustes`, `Quadratic` without D) the curvature
    is S -> (J A J S X X^T + X X^T S J A J) / 2 up to a term that vanishes with G. That operator is inverted exactly:
    with J X^T A X J = U diag(l) U^T and W = J X J U it is Z -> (l_i + l_j) Z_ij / 2 in S = W Z W^T. With it as the
    first metric some tens of iterations suffice. Far out, at condition numbers of X beyond 1e4, it is not used.

    Args:
        memory: The number of pairs kept; None takes 3 with the preconditioner and 10 without.
        preconditioner: "auto" uses the inverse above where it exists; "none" does not.
    """

    memory: int | None = None
    preconditioner: Literal["auto", "none"] = "auto"
    name = "riemannian-lbfgs"

    def __post_init__(self) -> None:
        check_choice("preconditioner", self.preconditioner, ("auto", "none"))
        if self.memory is not None and self.memory < 1:
            raise ValueError(f"memory must be None or at least 1, got {self.memory!r}")

    def step(self, problem: Problem, state: State) -> None:
        """One quasi-Newton step with a backtracking line search."""
        g = state.cache.pop("g", None)
        if g is None:
            g = skew_gradient(state.X, state.gradient, problem.signs)
        direction = self._inverse_hessian(problem, state, g).neg_()
        slope = _inner(g, direction)
        if not slope < 0:  # the memory has gone bad: start it anew
            self._forget(state)
            direction = -self._first_metric(problem, state, g)
            slope = _inner(g, direction)
        if not slope < 0:
            state.stalled = True
            return
        self._search(problem, state, g, direction, slope)

    def _search(self, problem: Problem, state: State, g: Tensor, direction: Tensor, slope: float) -> None:
        eps = torch.finfo(state.X.dtype).eps
        t = min(1.0, LONGEST / max(_boost_norm(problem, direction), 1e-300))
        for _ in range(HALVINGS):
            S = t * direction
            trial = cayley_step(problem.signs[:, None] * S, state.X).contiguous()
            value, gradient = problem.objective.value_and_gradient(trial)
            new_g = skew_gradient(trial, gradient, problem.signs)
            # within rounding of f the slope decides: it must not have turned
            flat = abs(t * slope) < 100 * eps * abs(state.value) and value <= state.value + 10 * eps * abs(state.value)
            enough = value <= state.value + ARMIJO * t * slope
            if all_finite(value, gradient) and (enough or (flat and new_g.norm() < g.norm())):
                self._remember(state, S, new_g - g)
                state.X.copy_(trial)
                state.value, state.gradient = value, gradient
                state.cache["g"] = new_g
                return
            t /= 2
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        if state.numbers.get("pairs"):
            self._forget(state)  # next time along the first metric
        else:
            state.stalled = True

    def _remember(self, state: State, step: Tensor, change: Tensor) -> None:
        """Keep a pair in the oldest slot, if its curvature is positive."""
        if _inner(step, change) <= 1e-10 * float(step.norm() * change.norm()):
            return
        count, size = int(state.numbers.get("pairs", 0)), self._size(state)
        state.tensors[f"step {count % size}"] = step
        state.tensors[f"change {count % size}"] = change
        state.numbers["pairs"] = count + 1

    def _size(self, state: State) -> int:
        return self.memory or (3 if state.cache.get("basis") is not None else 10)

    def _forget(self, state: State) -> None:
        state.numbers["pairs"] = 0

    def _pairs(self, state: State) -> list[tuple[Tensor, Tensor]]:
        """The pairs that are kept, the newest first."""
        count, size = int(state.numbers.get("pairs", 0)), self._size(state)
        slots = [(count - 1 - back) % size for back in range(min(count, size))]
        return [(state.tensors[f"step {slot}"], state.tensors[f"change {slot}"]) for slot in slots]

    def _inverse_hessian(self, problem: Problem, state: State, g: Tensor) -> Tensor:
        """The two-loop recursion."""
        self._basis(problem, state)
        r, loop = g.clone(), []
        for step, change in self._pairs(state):
            weight = 1 / _inner(step, change)
            coefficient = weight * _inner(step, r)
            r.sub_(change, alpha=coefficient)
            loop.append((step, change, weight, coefficient))
        r = self._first_metric(problem, state, r)
        for step, change, weight, coefficient in reversed(loop):
            r.add_(step, alpha=coefficient - weight * _inner(change, r))
        return r

    def _first_metric(self, problem: Problem, state: State, r: Tensor) -> Tensor:
        """The inverse of the curvature of a quadratic, or a scalar from the last pair."""
        basis = self._basis(problem, state)
        if basis is not None:
            W, eigenvalues = basis
            Z = 2 * (W.mT @ r @ W) / (eigenvalues[:, None] + eigenvalues)
            S = W @ Z @ W.mT
            return (S - S.mT).div_(2)
        kept = self._pairs(state)
        if kept:
            step, change = kept[0]
            return r * (_inner(step, change) / _inner(change, change))
        return r / max(1.0, float(r.norm()))

    def _basis(self, problem: Problem, state: State) -> tuple[Tensor, Tensor] | None:
        """W and l of the preconditioner, made at the point stored in the state so that a resumed run makes the same."""
        if self.preconditioner == "none" or state.X.shape[0] != state.X.shape[1]:
            return None
        form = problem.objective.quadratic()
        if form is None or form.D is not None:
            return None
        made_at = state.tensors.get("made_at")
        if made_at is None or (state.X - made_at).norm() > STALE * state.X.norm():
            made_at = state.tensors["made_at"] = state.X.clone()
            state.cache.pop("basis", None)
            self._forget(state)
        if "basis" not in state.cache:
            s = problem.signs
            B = s[:, None] * (made_at.mT @ form.A.to(made_at) @ made_at) * s
            eigenvalues, U = torch.linalg.eigh((B + B.mT) / 2)
            floor = 1e-8 * eigenvalues[-1]
            convex = bool(eigenvalues[0] > -floor) and bool(floor > 0)
            if not convex or float(made_at.square().sum()) > len(made_at) + FAR:
                state.cache["basis"] = None
            else:
                state.cache["basis"] = (s[:, None] * made_at * s) @ U, eigenvalues.clamp(min=floor.item())
        found: tuple[Tensor, Tensor] | None = state.cache["basis"]
        return found


def _inner(a: Tensor, b: Tensor) -> float:
    return float(torch.dot(a.flatten(), b.flatten()))


def _boost_norm(problem: Problem, S: Tensor) -> float:
    """||S[+,-]||_2, or its Frobenius norm where that is short of the limit already."""
    plus, minus = problem.signature.positions(S.device)
    block = S[plus[:, None], minus]
    frobenius = float(block.norm())
    if frobenius <= LONGEST:
        return frobenius
    gram = block.mT @ block if len(plus) > len(minus) else block @ block.mT
    return float(torch.linalg.eigvalsh(gram)[-1].sqrt())
