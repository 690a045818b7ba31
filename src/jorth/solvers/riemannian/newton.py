"""Riemannian Newton: compiled for quadratics on the CPU, else a trust region in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import frobenius, unit_roundoff
from jorth.objectives import QuadraticForm
from jorth.objectives.base import is_derivative
from jorth.solvers.problem import Problem, Status, StopRun
from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, Trial, search
from jorth.solvers.riemannian.trust_region import SHRINK, Model, hessian, truncated_step

if TYPE_CHECKING:
    from jorth.solvers.riemannian.compiled_newton import Form


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
    radius: float = 1.0
    """The ||S||_F to which the second-order model is trusted."""
    twice: bool | None = None
    """Whether autograd has the second derivatives of f; None if this is not known or not asked."""
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
    10 and by preconditioned conjugate gradients beyond. Where the Hessian is not positive definite
    the direction is still one of descent.

    In all other cases conjugate gradients are truncated at the boundary of a trust region (Steihaug
    and Toint), to which directions of negative curvature are followed. Each of their steps takes
    one product f''(X)[V]: exact for quadratics, by autograd for torch functions, by ``hessian`` for
    a `jorth.Objective` that has it, and otherwise a difference of two gradients. The products of
    autograd are compared with gradients once, as some functions have no second derivatives.

    The gradient norm falls quadratically in the end, with differences of gradients only linearly.

    Args:
        preconditioner: "auto" uses the preconditioner of `jorth.RiemannianLBFGS` for convex
            quadratics outside compiled code; "none" does not.
    """

    name = "riemannian-newton"
    state_type = NewtonState
    metric_matters = False

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if _runs_compiled(problem, X):
            _load_compiled(len(X))

    def step(self, problem: Problem, state: NewtonState) -> NDArray[np.float64] | None:
        form = problem.objective.quadratic()
        if form is not None and _runs_compiled(problem, state.X):
            return self._compiled_step(problem, state, form)
        return super().step(problem, state)

    # -- quadratics on the CPU

    def _compiled_step(
        self, problem: Problem, state: NewtonState, form: QuadraticForm
    ) -> NDArray[np.float64] | None:
        """Take one iteration, or several of them if nobody looks at each."""
        from jorth.solvers.riemannian.compiled_newton import NON_FINITE, newton_steps

        tools = state.compiled = state.compiled or _compiled_problem(problem, state, form)
        X = state.X.numpy().copy()
        rows = np.empty((problem.most_iterations, 4))
        enough = (problem.tolerance * problem.objective.gradient_scale / tools.scale, math.inf)
        done, ending = newton_steps(tools.form, X, tools.basis, tools.basis_of, enough, rows)
        if done == 0:
            if ending == NON_FINITE:
                raise StopRun(Status.NON_FINITE)
            state.stalled = True
            return None
        rows[:, :2] *= tools.scale
        problem.objective.count_gradients(done - 1)
        point = torch.from_numpy(X)
        value, G = problem.objective.value_and_gradient(point)
        if not math.isfinite(value):
            raise StopRun(Status.NON_FINITE)
        state.move_to(point, value, G)
        return rows[:done]

    # -- everything else

    def search(self, problem: Problem, state: NewtonState, line: Line) -> Trial | None:
        """Search along the step of the trust region, and along -g if f does not fall there.

        A step that is too long is shortened and the region with it (Nocedal and Yuan, 1998), so
        that no product f''(X)[V] is wasted.
        """
        slope = frobenius(line.g)
        state.largest = max(state.largest, slope)
        rounding = 2 * unit_roundoff(state.X) * frobenius(state.gradient) * frobenius(state.X)
        if not slope > rounding:
            return None
        self._check_products(problem, state)
        second = hessian(problem, state, exact=state.twice is not False)
        noise = max(second.noise, len(state.X) * rounding / slope)
        relative = slope / max(state.largest, state.size)
        model = Model(
            line.g, second.product, lambda r: self.precondition(state, r), relative, noise
        )
        step = truncated_step(model, state.radius)
        if step.at_boundary and state.radius < unit_roundoff(state.X) ** (2 / 3):
            return None  # the model is wrong at any distance that can be resolved
        newton = Line(line.g, step.S)
        found = search(problem, state, newton) if newton.slope < 0 else None
        if found is None:
            state.radius *= SHRINK
            return super().search(problem, state, line)
        state.radius = step.next_radius(state.radius, newton, state.value, found)
        return found

    def direction(self, state: NewtonState, g: Tensor) -> Tensor:
        """The direction of descent to fall back on."""
        return -self.precondition(state, g)

    def remember(self, state: NewtonState, line: Line, trial: Trial) -> None:
        return None

    def _check_products(self, problem: Problem, state: NewtonState) -> None:
        """Find out once whether the products of autograd can be trusted, by two gradients."""
        if state.twice is not None or not problem.objective.objective.twice_by_autograd:
            return
        product = problem.objective.hessian(state.X)

        def gradient(X: Tensor) -> Tensor:
            return problem.objective.value_and_gradient(X)[1]

        state.twice = product is not None and is_derivative(gradient, product, state.X)


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
