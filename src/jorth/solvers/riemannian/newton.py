"""Riemannian Newton: compiled for quadratics on the CPU, else by conjugate gradients in torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import frobenius, unit_roundoff
from jorth.group.retractions import cayley_step
from jorth.objectives import QuadraticForm
from jorth.solvers.loop.solver import Problem
from jorth.solvers.loop.status import Status, StopRun
from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, inner, search
from jorth.storage.checkpoint import NOT_SAVED

if TYPE_CHECKING:
    from jorth.solvers.riemannian.compiled_newton import Form

INEXACT = 0.1
"""The largest relative residual of conjugate gradients."""
INNER_STEPS = 100

Product = Callable[[Tensor], Tensor]


@dataclass
class CompiledProblem:
    """A quadratic form in the layout of compiled code, divided by ``scale``, and a basis for it."""

    form: Form
    scale: float
    basis: NDArray[np.float64] | None
    basis_of: NDArray[np.float64] | None
    """The point at which the basis was computed; NaN before that. None where none is used."""


@dataclass
class NewtonState(RiemannianState):
    """The state of `RiemannianNewton`."""

    largest: float = 0.0
    """The largest ||g||_F so far, with which the accuracy of a direction is compared."""
    basis_of: Tensor | None = None
    """The point at which the basis was computed, from which a resumed run computes it again.

    Compiled code changes it in place.
    """
    compiled: CompiledProblem | None = field(default=None, metadata=NOT_SAVED)


@dataclass(frozen=True, kw_only=True)
class RiemannianNewton(RiemannianMethod):
    """Newton's method on O(p, q), within the component of the start: a few iterations to rounding.

    The Hessian of S -> f(R(J S) X) at S = 0 is S -> skew(J f''(X)[J S X] X^T - J S M) with the
    multiplier M = sym(J G X^T). For quadratics f''(X)[V] = A V D, and on the CPU in float64 an
    iteration is one compiled call, which solves the Newton system by Cholesky factors for n up to
    10 and by preconditioned conjugate gradients beyond. For other functions f''(X)[V] is a
    difference of two gradients; conjugate gradients take one for each of their steps. Where the
    Hessian is not positive definite the direction is still one of descent.

    Args:
        preconditioner: "auto" uses the preconditioner of `jorth.RiemannianLBFGS` for convex
            quadratics outside compiled code; "none" does not.
    """

    name = "riemannian-newton"
    state_type = NewtonState
    metric_matters = False

    def prepare(self) -> None:
        _load_compiled(2)

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if _runs_compiled(problem, X):
            _load_compiled(len(X))

    def step(self, problem: Problem, state: NewtonState) -> None:
        form = problem.objective.quadratic()
        if form is not None and _runs_compiled(problem, state.X):
            self._compiled_step(problem, state, form)
        else:
            super().step(problem, state)

    # -- quadratics on the CPU

    def _compiled_step(self, problem: Problem, state: NewtonState, form: QuadraticForm) -> None:
        """One step, or several of them if nobody looks at each."""
        from jorth.solvers.riemannian.compiled_newton import NON_FINITE, newton_steps

        tools = state.compiled = state.compiled or _compiled_problem(problem, state, form)
        X = state.X.numpy().copy()
        rows = np.empty((state.burst.most, 4))
        enough = (state.burst.target / tools.scale, state.burst.fall / tools.scale)
        done, ending = newton_steps(tools.form, X, tools.basis, tools.basis_of, enough, rows)
        if done == 0:
            if ending == NON_FINITE:
                raise StopRun(Status.NON_FINITE)
            state.stalled = True
            return
        rows[:, :2] *= tools.scale
        state.burst.rows = rows[:done]
        problem.objective.count_gradients(done - 1)
        point = torch.from_numpy(X)
        value, G = problem.objective.value_and_gradient(point)
        if not math.isfinite(value):
            raise StopRun(Status.NON_FINITE)
        state.move_to(point, value, G)

    # -- everything else

    def search(self, problem: Problem, state: NewtonState, line: Line) -> Trial | None:
        """Search along the Newton direction, and along -g if f does not fall there."""
        state.largest = max(state.largest, frobenius(line.g))
        direction, scaled = self._newton_direction(problem, state, line.g)
        first = 1.0 if scaled else self.first_step(state, line)
        newton = Line(line.g, direction)
        found = search(problem, state, newton, first=first) if newton.slope < 0 else None
        return super().search(problem, state, line) if found is None else found

    def direction(self, state: NewtonState, g: Tensor) -> Tensor:
        """The direction of descent to fall back on."""
        return -self.precondition(state, g)

    def remember(self, state: NewtonState, line: Line, trial: Trial) -> None:
        return None

    def _newton_direction(
        self, problem: Problem, state: NewtonState, g: Tensor
    ) -> tuple[Tensor, bool]:
        """-H^-1 g by conjugate gradients up to the first negative curvature.

        Also returns whether the curvature gives it its length.
        """
        product = _hessian(problem, state)
        wanted = min(INEXACT, math.sqrt(frobenius(g) / state.largest)) ** 2
        S = torch.zeros_like(g)
        r = g.clone()
        p = -self.precondition(state, r)
        weight = -inner(r, p)
        first = weight
        for step in range(INNER_STEPS):
            Hp = product(p)
            curvature = inner(p, Hp)
            if not curvature > 0:
                return (p, state.preconditioner.basis is not None) if step == 0 else (S, True)
            length = weight / curvature
            S.add_(p, alpha=length)
            r.add_(Hp, alpha=length)
            z = self.precondition(state, r)
            before, weight = weight, inner(r, z)
            if not weight > wanted * first:
                break
            p = (weight / before) * p - z
        return S, True


def _runs_compiled(problem: Problem, X: Tensor) -> bool:
    """Whether a step from X is one compiled call."""
    on_cpu = X.device.type == "cpu" and X.dtype == torch.float64
    return problem.objective.quadratic() is not None and on_cpu and X.shape[0] == X.shape[1]


@cache
def _load_compiled(n: int) -> None:
    """Compile a step for matrices (n, n), or load it from the cache."""
    from jorth.solvers.riemannian.compiled_newton import DENSE, Form, newton_steps

    I = np.eye(n)  # noqa: E741
    form = Form(I, I, np.empty((0, 0)), np.ones(n))
    basis = None if n <= DENSE else I.copy()
    newton_steps(form, I.copy(), basis, basis, (0.0, 0.0), np.empty((1, 4)))


def _compiled_problem(problem: Problem, state: NewtonState, form: QuadraticForm) -> CompiledProblem:
    """Contiguous arrays: no product of them over- or underflows if X is of moderate size."""
    from jorth.solvers.riemannian.compiled_newton import DENSE, Form, eigenbasis

    same = form.like(state.X)
    none = np.empty((0, 0))
    A = same.A.numpy()
    C = none if same.C is None else same.C.numpy()
    D = none if same.D is None else same.D.numpy()
    of_d = 1.0 if same.D is None else _size(D)
    scale = max(_size(A) * of_d, _size(C))
    if not 0 < scale < math.inf:
        scale = 1.0
    arrays = (A * (of_d / scale), C / scale, D / of_d, problem.signs.numpy())
    compiled = Form(*(np.ascontiguousarray(array) for array in arrays))
    if len(A) <= DENSE:
        return CompiledProblem(compiled, scale, None, None)
    if state.basis_of is None:
        state.basis_of = torch.full_like(state.X, math.nan)
        return CompiledProblem(compiled, scale, np.empty_like(A), state.basis_of.numpy())
    known = state.basis_of.numpy()
    return CompiledProblem(compiled, scale, eigenbasis(compiled, known), known)


def _size(matrix: NDArray[np.float64]) -> float:
    """The power of two next to the largest entry; 0 for zero and NaN if one is not finite."""
    largest = float(abs(matrix).max()) if matrix.size else 0.0
    return math.ldexp(1.0, math.frexp(largest)[1]) if 0 < largest < math.inf else largest


def _hessian(problem: Problem, state: NewtonState) -> Product:
    """S -> skew(J f''(X)[J S X] X^T - J S M)."""
    X, s = state.X, problem.signs[:, None]
    N = s * (state.gradient @ X.mT)
    M = (N + N.mT) / 2
    second = _second_derivative(problem, state)

    def product(S: Tensor) -> Tensor:
        P = s * (second(S) @ X.mT - S @ M)
        return (P - P.mT) / 2

    return product


def _second_derivative(problem: Problem, state: NewtonState) -> Product:
    """S -> f''(X)[J S X]: A J S X D, or a difference of gradients along the retraction."""
    X, s = state.X, problem.signs[:, None]
    form: Any = problem.objective.quadratic()
    if form is not None:
        form = form.like(X)

        def exact(S: Tensor) -> Tensor:
            image: Tensor = form.A @ (s * (S @ X))
            return image if form.D is None else image @ form.D

        return exact

    def difference(S: Tensor) -> Tensor:
        t = math.sqrt(unit_roundoff(X)) / max(frobenius(S), 1e-300)
        _, moved = problem.objective.value_and_gradient(cayley_step(t * s * S, X))
        return (moved - state.gradient) / t

    return difference
