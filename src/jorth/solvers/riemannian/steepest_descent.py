"""Riemannian steepest descent with Barzilai-Borwein steps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, RunningMean, Trial, inner


@dataclass
class NextStep:
    """The length of the next step, and the running mean below which its value must stay."""

    t: float
    mean: RunningMean


@dataclass
class DescentState(RiemannianState):
    """The state of `RiemannianSD`."""

    memory: NextStep | None = None


@dataclass(frozen=True, kw_only=True)
class RiemannianSD(RiemannianMethod):
    """Steepest descent on O(p, q) with Barzilai-Borwein steps and a non-monotone line search.

    With the preconditioner P the direction is d = -P^-1 g and the next step length
    <s, P s> / <s, y> = t <-d, g> / <d, y>, where y is the change of the gradient. Values may rise
    for a while, but stay below the running mean of Zhang and Hager (SIAM J. Optim. 14, 2004).

    >>> sig = jorth.Signature(2, 1)
    >>> f, x0 = jorth.Quadratic(np.diag([1.0, 2.0, 3.0])), jorth.random_point(sig)
    >>> jorth.minimize(f, x0, signature=sig, method=jorth.RiemannianSD()).success
    True
    """

    name = "riemannian-sd"
    state_type = DescentState
    metric_matters = False

    def direction(self, state: DescentState, g: Tensor) -> Tensor:
        return -self.precondition(state, g)

    def first_step(self, state: DescentState, line: Line) -> float:
        known = state.memory is not None and state.memory.t
        return known or super().first_step(state, line)

    def reference(self, state: DescentState) -> float | None:
        return None if state.memory is None else state.memory.mean.value

    def remember(self, state: DescentState, line: Line, trial: Trial) -> NextStep:
        bend = inner(line.direction, trial.g) - line.slope
        t = trial.t * -line.slope / bend if bend > 0 else 2 * trial.t
        mean = RunningMean(state.value) if state.memory is None else state.memory.mean
        mean.add(trial.value)
        return NextStep(t, mean)
