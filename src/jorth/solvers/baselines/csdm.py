"""CSDM and the exponential form: parametrisations X(w) trained by torch's own optimisers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from jorth import _inputs
from jorth.group.elements import scaled_violation
from jorth.nn import CSParametrization, ExponentialParametrization
from jorth.signature import Signature
from jorth.solvers.problem import (
    NOT_SAVED,
    AbstractSolver,
    Problem,
    State,
    Status,
    StopRun,
    all_finite,
)


@dataclass
class ParametrizedState(State):
    """The weights of X = form(*weights), and the optimiser that trains them."""

    learning_rate: float = 0.0
    scale: float = 1.0
    """The factor by which f is multiplied for the optimiser."""
    age: int = 0
    """Steps since the form was set up."""
    restarts: int = 0
    """Restarts in a row."""
    best: float = math.inf
    """The lowest value that Adam has seen."""
    idle: int = 0
    """Steps of Adam without a lower value; after 20 its learning rate is halved."""
    base: Tensor | None = None
    """The point at which the form was set up."""
    weights: list[Tensor] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    """The state of the optimiser for each weight."""
    form: Any = field(default=None, metadata=NOT_SAVED)
    optimizer: Any = field(default=None, metadata=NOT_SAVED)


@dataclass(frozen=True, kw_only=True)
class Parametrized(AbstractSolver):
    """A torch optimiser trains free weights w, and X = X(w) is feasible by construction."""

    optimizer: Literal["lbfgs", "adam"] = "lbfgs"
    learning_rate: float | None = None
    rebase: ClassVar[int | None] = None
    """The steps of L-BFGS after which the present point becomes the base of the form."""
    state_type = ParametrizedState

    def __post_init__(self) -> None:
        _inputs.check_choice(self.optimizer, "optimizer", ("adam", "lbfgs"))
        if self.learning_rate is not None:
            _inputs.positive_number(self.learning_rate, "learning_rate")

    @abstractmethod
    def form(self, signature: Signature) -> CSParametrization | ExponentialParametrization:
        """Return the parametrisation, before a matrix is assigned."""

    def init(self, problem: Problem, X: Tensor) -> ParametrizedState:
        state: ParametrizedState = super().init(problem, X)
        state.learning_rate = self._full_rate
        self._set_up(problem, state)
        return state

    @property
    def _full_rate(self) -> float:
        return self.learning_rate or {"adam": 0.03, "lbfgs": 1.0}[self.optimizer]

    def step(self, problem: Problem, state: ParametrizedState) -> None:
        """Take a step of the optimiser, then value and gradient at the new X."""
        if state.form is None:  # of a checkpoint
            self._assign(problem, state)
            state.optimizer = self._new_optimizer(state)
            state.optimizer.state.update(zip(state.weights, map(dict, state.memory), strict=False))
        adam = self.optimizer == "adam"
        if state.age == self.rebase and not adam:
            self._set_up(problem, state)
        points = _Evaluations(problem, state)
        try:
            state.optimizer.step(points.closure)
            X, value, gradient = points.here()
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # the form has a pole there
            X, value, gradient = state.X, math.nan, state.gradient
        if not (all_finite(value, gradient) and (adam or value < state.value)):
            X, value, gradient = points.here(best=True)
            if not value < state.value:
                self._restart_shorter(state, points.finite)
                return
            self._restart(state)
        state.move_to(X, value, gradient)
        state.age += 1
        if not adam:
            state.restarts = 0
            state.learning_rate = self._full_rate
        elif value < state.best:
            state.best = value
            state.idle = 0
        else:
            state.idle = (state.idle + 1) % 20
            state.learning_rate /= 1 if state.idle else 2
        for group in state.optimizer.param_groups:
            group["lr"] = state.learning_rate
        state.memory = [dict(state.optimizer.state.get(weight, {})) for weight in state.weights]

    def _set_up(self, problem: Problem, state: ParametrizedState) -> None:
        """Assign X to a new form, and take a new optimiser."""
        state.base = state.X.clone()
        state.age = 0
        state.weights = self._assign(problem, state)
        self._restart(state)

    def _assign(self, problem: Problem, state: ParametrizedState) -> list[Tensor]:
        """Make a form with X = base, and return its weights."""
        assert state.base is not None
        state.form = self.form(problem.signature)
        weights = state.form.right_inverse(state.base)
        return [weights] if isinstance(weights, Tensor) else list(weights)

    def _restart(self, state: ParametrizedState) -> None:
        """Take a new optimiser for f over its gradient norm, as its thresholds are absolute."""
        size = _inputs.frobenius(state.gradient)
        state.scale = 1 / size if 1e-150 < size < math.inf else 1.0
        state.memory = []
        state.optimizer = self._new_optimizer(state)

    def _restart_shorter(self, state: ParametrizedState, finite: bool) -> None:
        """Take a new optimiser with shorter first steps; the run stalls after five in a row."""
        state.restarts += 1
        state.stalled = state.restarts > 5
        if state.stalled and not finite:
            raise StopRun(Status.NON_FINITE)
        state.learning_rate = min(state.learning_rate, 1.0) / 4
        self._restart(state)

    def _new_optimizer(self, state: ParametrizedState) -> torch.optim.Optimizer:
        for weight in state.weights:
            weight.requires_grad_()
        if self.optimizer == "adam":
            return torch.optim.Adam(state.weights, lr=state.learning_rate)
        return torch.optim.LBFGS(
            state.weights, lr=state.learning_rate, max_iter=1, max_eval=25, history_size=20,
            line_search_fn="strong_wolfe", tolerance_grad=0.0, tolerance_change=0.0,
        )  # fmt: skip


class _Evaluations:
    """The evaluations of one step, each point once, and the weights with the lowest value."""

    def __init__(self, problem: Problem, state: ParametrizedState) -> None:
        self._problem, self._state = problem, state
        self._seen = [(state.X.clone(), state.value, state.gradient)]
        self.finite = True
        """Whether f was finite wherever X has kept its digits."""
        self.best_value = state.value
        self._best_weights = [weight.detach().clone() for weight in state.weights]

    def closure(self) -> float:
        """Return f and set its gradient in the weights, as torch's optimisers ask for it."""
        state = self._state
        state.optimizer.zero_grad()
        X = state.form(*state.weights)
        value, gradient = self._evaluate(X.detach())
        if all_finite(value, gradient) and value < self.best_value:
            self.best_value = value
            self._best_weights = [weight.detach().clone() for weight in state.weights]
        X.backward(state.scale * gradient)
        for weight in state.weights:  # torch's L-BFGS needs them contiguous
            grad = weight.grad
            weight.grad = torch.zeros_like(weight) if grad is None else grad.contiguous()
        return state.scale * value

    @torch.no_grad()
    def here(self, *, best: bool = False) -> tuple[Tensor, float, Tensor]:
        """Return X, f and its gradient at the present weights, or at the ``best``."""
        if best:
            for weight, lowest in zip(self._state.weights, self._best_weights, strict=True):
                weight.copy_(lowest)
        X = self._state.form(*self._state.weights)
        return (X, *self._evaluate(X))

    def _evaluate(self, X: Tensor) -> tuple[float, Tensor]:
        """Return f and its gradient, or NaN where X has lost half of its digits."""
        for point, value, gradient in reversed(self._seen):
            if torch.equal(point, X):
                return value, gradient
        signs, base = self._problem.signs, self._state.base
        assert base is not None
        gram = base.mT @ (signs[:, None] * base)
        size = _inputs.frobenius(X) / math.sqrt(X.shape[1])
        violation = scaled_violation(X, signs, gram, size).item()
        if math.isfinite(violation) and violation > math.sqrt(_inputs.unit_roundoff(X)):
            return math.nan, torch.full_like(X, math.nan)
        value, gradient = self._problem.objective.value_and_gradient(X)
        self.finite = self.finite and all_finite(value, gradient)
        self._seen.append((X.clone(), value, gradient))
        return value, gradient


@dataclass(frozen=True, kw_only=True)
class CSDM(Parametrized):
    """CSDM: X = diag(U1, U2) H(mu) diag(V1, V2)^T with free orthogonal factors and free mu.

    The factors start at the CS decomposition of x0, which may lie in any component; X stays in it.
    They start anew after 100 steps of L-BFGS, as a form is best conditioned at its base. The paper
    uses Adam, but L-BFGS needs fewer gradients and is the default. The options are those of
    `Exponential`.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> round(jorth.minimize(f, x0, signature=sig, method=jorth.CSDM()).value, 4)
    3.0
    """

    rebase = 100
    name = "csdm"
    thin = False

    def form(self, signature: Signature) -> CSParametrization:
        return CSParametrization(signature, triangular=True)


@dataclass(frozen=True, kw_only=True)
class Exponential(Parametrized):
    """X = exp(J S) X0 with S skew, as one would write it with torch alone.

    X stays in the component of the start. The base X0 never moves, and the rounding error of a
    matrix exponential grows with ||S||: far from the start the residual, which is reported, is
    larger than that of other methods. X0 is on the right so that it can be thin.

    Args:
        optimizer: "lbfgs" with a strong Wolfe line search, or "adam", whose learning rate is halved
            when the value stops falling.
        learning_rate: None takes 1 for L-BFGS and 0.03 for Adam.

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> round(jorth.minimize(f, x0, signature=sig, method=jorth.Exponential()).value, 4)
    3.0
    """

    name = "exponential"

    def form(self, signature: Signature) -> ExponentialParametrization:
        return ExponentialParametrization(signature)
