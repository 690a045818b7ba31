"""Riemannian Newton: compiled for quadratics on the CPU, else a trust region in torch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import frobenius, unit_roundoff
from jorth.group.exp_log import cayley_step
from jorth.objectives import QuadraticForm
from jorth.objectives.base import NotTwiceDifferentiable, Product, is_derivative
from jorth.solvers.problem import NOT_SAVED, Problem, State, Status, StopRun
from jorth.solvers.riemannian.base import RiemannianMethod
from jorth.solvers.riemannian.lbfgs import LBFGSState, Pair, RiemannianLBFGS
from jorth.solvers.riemannian.line_search import NEWTON_ARMIJO, Line, Trial, inner, search
from jorth.solvers.riemannian.preconditioner import definite_form

LBFGS = RiemannianLBFGS()
SHORT_STEPS, LEAST_PRODUCTS = 20, 5.0
"""The steps of `Adaptive` after which fewer products per step mean that the model is cut short."""


@dataclass
class NewtonState(LBFGSState):
    """The state of `RiemannianNewton`, and of L-BFGS where that takes over."""

    largest: float = 0.0
    """The largest ||g||_F so far, with which the accuracy of a direction is compared."""
    radius: float = 1.0
    """The ||S||_F to which the second-order model is trusted."""
    twice: bool | None = None
    """Whether autograd has the second derivatives of f; None if this is not known or not asked."""
    basis_of: Tensor | None = None
    """The point at which compiled code found its basis; a resumed run finds it there again."""
    steps: int = 0
    switched: str = ""
    """The number of steps of `Adaptive`, and why L-BFGS has taken over, if it has."""
    compiled: Any = field(default=None, metadata=NOT_SAVED)
    """The `Quadratics` of compiled code in the unit of the run, and the `Workspace`; or None."""


@dataclass(frozen=True, kw_only=True)
class RiemannianNewton(RiemannianMethod):
    """Newton's method on O(p, q), within the component of the start: a few iterations to rounding.

    For quadratics, on the CPU in float64, an iteration is one compiled call, which solves the
    Newton system by Cholesky factors for n up to 10 and by preconditioned conjugate gradients
    beyond.

    In all other cases conjugate gradients are truncated at the boundary of a trust region (Steihaug
    and Toint). Each of their steps takes one product f''(X)[V]: exact for quadratics, by autograd
    for torch functions, by ``hessian`` for a `jorth.Objective` that has it, and otherwise a
    difference of two gradients.

    In the end the gradient norm falls quadratically in compiled steps, with the order 1.5 in those
    of the trust region, and only linearly with differences of gradients.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.RiemannianNewton()).iterations < 20
    True
    """

    name = "riemannian-newton"
    state_type = NewtonState
    metric_matters = False

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if _runs_compiled(problem, X):
            _load_compiled(len(X))

    def init(self, problem: Problem, X: Tensor) -> NewtonState:
        state: NewtonState = super().init(problem, X)
        state.radius = math.sqrt(len(X))
        return state

    def step(self, problem: Problem, state: Any) -> None:
        form = problem.objective.quadratic()
        if form is not None and _runs_compiled(problem, state.X):
            self._compiled_step(problem, state, form)
        else:
            super().step(problem, state)

    # -- quadratics on the CPU

    def _compiled_step(self, problem: Problem, state: NewtonState, form: QuadraticForm) -> None:
        """Take one iteration in one compiled call."""
        from jorth.solvers.riemannian import _newton_numba as compiled

        X = state.X
        if state.compiled is None:
            if not problem.bounded:  # another form may be convex, and so easier
                form = definite_form(form, problem.signature, strictly=False) or form
            A, none = form.A.to(X).numpy(), np.empty((len(X), 0))
            C = none if form.C is None else form.C.to(X).numpy()
            D = none if form.D is None else form.D.to(X).numpy()
            signs = problem.signs.numpy()
            quadratic = compiled.quadratics(A[None], C[None], D, signs, X[None].numpy())
            if state.basis_of is not None:
                compiled.renew_bases(quadratic, slice(1), state.basis_of[None].numpy())
            state.compiled = quadratic, compiled.Workspace.of(len(X))
        quadratic, space = state.compiled
        quadratic.X[0], quadratic.value[0], quadratic.iterations[0] = state.X.numpy(), math.nan, 0
        rule = compiled.Rule(np.array([-1.0]), 1, np.zeros(1, np.int64))  # one step in any case
        compiled.minimize_quadratics(quadratic, 0, 1, rule, space)
        if quadratic.bases is not None:
            state.basis_of = torch.from_numpy(quadratic.bases[1, 0].copy())
        if quadratic.iterations[0] == 0:
            if quadratic.status[0] == compiled.NON_FINITE:
                raise StopRun(Status.NON_FINITE)
            state.stalled = True
            return
        point = torch.from_numpy(quadratic.X[0].copy())
        value, G = problem.objective.value_and_gradient(point)
        if not math.isfinite(value):
            raise StopRun(Status.NON_FINITE)
        state.move_to(point, value, G)

    # -- everything else

    def search(self, problem: Problem, state: NewtonState, line: Line) -> Trial | None:
        """Search along the step of the trust region, and along -g if f does not fall there.

        A step that is too long is shortened and the region with it (Nocedal and Yuan, 1998), so
        that no product f''(X)[V] is wasted.
        """
        slope, u = frobenius(line.g), unit_roundoff(state.X)
        state.largest = max(state.largest, slope)
        rounding = 2 * u * frobenius(state.gradient) * frobenius(state.X)
        if not slope > rounding:
            return None
        self.check_products(problem, state)
        product, noise = hessian(problem, state, exact=state.twice is not False)
        step = truncated_step(
            line.g,
            product,
            lambda r: self.precondition(state, r),
            state.radius,
            relative=slope / max(state.largest, state.size),
            noise=max(noise, len(state.X) * rounding / slope),
        )
        if step.at_boundary and state.radius < u ** (2 / 3):
            return None  # the model is wrong at any distance that can be resolved
        newton = Line(line.g, step.S)
        found = None
        if newton.slope < 0:
            found = search(problem, state, newton, armijo=NEWTON_ARMIJO)
        if found is None:
            state.radius *= SHRINK
            return super().search(problem, state, line)
        state.radius = step.next_radius(state.radius, newton, state.value, found)
        return found

    def direction(self, state: NewtonState, g: Tensor) -> Tensor:
        """The direction of descent to fall back on."""
        return -self.precondition(state, g)

    def remember(self, state: NewtonState, line: Line, trial: Trial) -> list[Pair]:
        return []

    def check_products(self, problem: Problem, state: NewtonState) -> None:
        """Find out once whether the products of autograd can be trusted, by two gradients."""
        objective = problem.objective
        if not objective.objective.twice_by_autograd:
            return
        if state.twice is None:
            product = objective.hessian(state.X)

            def gradient(X: Tensor) -> Tensor:
                return objective.value_and_gradient(X)[1]

            state.twice = product is not None and is_derivative(gradient, product, state.X)
        objective.keeps_products = state.twice


@dataclass(frozen=True, kw_only=True)
class Adaptive(RiemannianNewton):
    """Newton's method, and L-BFGS for good from where Newton's method does not pay.

    That is where f has no second derivatives, where Newton's method stalls, and after `SHORT_STEPS`
    steps with fewer than `LEAST_PRODUCTS` products each: near kinks the model holds no further.
    """

    def step(self, problem: Problem, state: NewtonState) -> None:
        if not state.switched:
            self.check_products(problem, state)
            if state.twice is False or problem.objective.hessian(state.X) is None:
                self._switch(problem, state, "f has no second derivatives")
        if state.switched:
            LBFGS.step(problem, state)
            return
        try:
            super().step(problem, state)
        except NotTwiceDifferentiable:  # here, but not where the products were checked
            self._switch(problem, state, "f has no second derivatives there")
            return
        state.steps += 1
        products = problem.objective.count.hessian
        if state.stalled:
            self._switch(problem, state, "Newton's method got no further")
        elif state.steps >= SHORT_STEPS and products < LEAST_PRODUCTS * state.steps:
            self._switch(problem, state, "second derivatives held along short steps only")

    def _switch(self, problem: Problem, state: NewtonState, reason: str) -> None:
        after = f"after {state.steps} iterations" if state.steps else "from the start"
        state.switched = f"{LBFGS.name} {after}, as {reason}"
        state.stalled = problem.objective.keeps_products = False
        state.forget()

    def taken(self, state: NewtonState) -> tuple[str, str]:
        return (LBFGS.name if state.switched else self.name), state.switched


def _runs_compiled(problem: Problem, X: Tensor) -> bool:
    """Check that a step from X is one compiled call."""
    on_cpu = X.device.type == "cpu" and X.dtype == torch.float64
    return problem.objective.quadratic() is not None and on_cpu and X.shape[0] == X.shape[1]


@cache
def _load_compiled(n: int) -> None:
    """Compile a step for matrices (n, n), or load it from the cache."""
    from jorth.solvers.riemannian import _newton_numba as compiled

    I, none = np.eye(n)[None], np.empty((1, n, 0))  # noqa: E741
    problem = compiled.quadratics(I, none, none[0], np.ones(n), I)
    rule = compiled.Rule(np.ones(1), 0, np.zeros(1, np.int64))
    compiled.minimize_quadratics(problem, 0, 1, rule, compiled.Workspace.of(n))


# -- the trust region


INEXACT = 0.3
"""The largest relative residual of conjugate gradients; near the optimum it falls with ||g||."""
INNER_STEPS = 500
DAMPING, LARGEST_DAMPING = 0.03, 1e-2
"""The share of the curvature that is added to it, over ||g|| relative to the largest one, and the
largest share."""
GOOD, BAD = 0.75, 0.25
"""The shares of the expected decrease above which the region grows, and below which it shrinks."""
GROW, SHRINK = 2.0, 0.25


@dataclass
class Step:
    """A step S in the region, which minimises the model along the path of conjugate gradients."""

    S: Tensor
    curvature: float
    """<S, H S> with the damped H."""
    at_boundary: bool

    def next_radius(self, radius: float, line: Line, before: float, trial: Trial) -> float:
        """The radius after the search from f = ``before``: how far the model was right."""
        length = frobenius(self.S)
        if trial.t < 1:
            return trial.t * length
        expected = line.slope + self.curvature / 2
        rounding = 1e3 * unit_roundoff(self.S) * max(abs(before), abs(trial.value))
        if abs(expected) <= rounding:
            return radius
        share = (trial.value - before) / expected
        if share < BAD:
            return SHRINK * length
        return GROW * radius if self.at_boundary and share > GOOD else radius


def truncated_step(
    g: Tensor, product: Product, precondition: Product, radius: float, *,
    relative: float, noise: float,
) -> Step:  # fmt: skip
    """Minimise <g, S> + <S, H S> / 2 for ||S||_F <= radius (Steihaug, SINUM 20, 1983).

    ``relative`` is ||g|| over the largest one of the run, ``noise`` the relative error of g and H.
    A share of the curvature along g is added to all, as that of a constant f is only rounding.
    """
    wanted = max(min(INEXACT, math.sqrt(relative)), min(noise, 1.0)) ** 2
    r = g.clone()
    S, HS = torch.zeros_like(r), torch.zeros_like(r)
    p = -precondition(r)
    weight = first = -inner(r, p)
    damping = 0.0
    for step in range(INNER_STEPS):
        Hp = product(p)
        curvature, size = inner(p, Hp), inner(p, p)
        if not math.isfinite(curvature) or not size > 0:
            break
        if step == 0:
            share = min(LARGEST_DAMPING, max(noise, DAMPING * relative))
            damping = share * abs(curvature) / size
        Hp.add_(p, alpha=damping)
        curvature += damping * size
        length = weight / curvature if curvature > 0 else math.inf
        reach = _to_boundary(S, p, radius)
        S.add_(p, alpha=min(length, reach))
        HS.add_(Hp, alpha=min(length, reach))
        if length >= reach:
            return Step(S, inner(S, HS), True)
        r.add_(Hp, alpha=length)
        z = precondition(r)
        before, weight = weight, inner(r, z)
        if not weight > wanted * first:
            break
        p = (weight / before) * p - z
    return Step(S, inner(S, HS), False)


def _to_boundary(S: Tensor, p: Tensor, radius: float) -> float:
    """The t >= 0 with ||S + t p||_F = radius; 0 if S is outside already."""
    a, b, c = inner(p, p), inner(S, p), inner(S, S) - radius * radius
    if not c < 0:
        return 0.0
    root = math.sqrt(b * b - a * c)
    return -c / (b + root) if b > 0 else (root - b) / a


def hessian(problem: Problem, state: State, *, exact: bool = True) -> tuple[Product, float]:
    """Return H: S -> skew(J f''(X)[J S X] X^T - J S M), and its error relative to H."""
    X, s = state.X, problem.signs[:, None]
    N = s * (state.gradient @ X.mT)
    M = (N + N.mT) / 2
    given = problem.objective.hessian(X) if exact else None
    step = math.sqrt(unit_roundoff(X))

    def product(S: Tensor) -> Tensor:
        if given is not None:
            change = given(s * (S @ X))
        else:
            t = step / max(frobenius(S), 1e-300)
            _, moved = problem.objective.value_and_gradient(cayley_step(t * s * S, X))
            change = (moved - state.gradient) / t
        P = s * (change @ X.mT - S @ M)
        return (P - P.mT) / 2

    return product, step if given is None else 0.0
