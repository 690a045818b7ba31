"""Riemannian steepest descent with Barzilai-Borwein steps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from jorth.solvers.riemannian.base import RiemannianMethod, RiemannianState
from jorth.solvers.riemannian.line_search import Line, RunningMean, Trial, inner


@dataclass
class DescentState(RiemannianState):
    """The next step length and the running mean of the values; None without a memory."""

    step: float | None = None
    mean: RunningMean | None = None


@dataclass(frozen=True, kw_only=True)
class RiemannianSD(RiemannianMethod):
    """Steepest descent on O(p, q): Barzilai-Borwein step lengths, a non-monotone line search.

    With the preconditioner P the direction is d = -P^-1 g and the step
    <s, P s> / <s, y> = t <-d, g> / <d, y>, y the change of the gradient. Values may rise for a
    while; they must stay below the running mean of Zhang and Hager (SIAM J. Optim. 14, 2004).
    """

    name = "riemannian-sd"
    state_type = DescentState

    def direction(self, state: DescentState, g: Tensor) -> Tensor:
        return -self.precondition(state, g)

    def first_step(self, state: DescentState, line: Line) -> float:
        return state.step or super().first_step(state, line)

    def reference(self, state: DescentState) -> float | None:
        return None if state.mean is None else state.mean.value

    def remember(self, state: DescentState, line: Line, trial: Trial) -> None:
        bend = inner(line.direction, trial.g) - line.slope
        state.step = trial.t * -line.slope / bend if bend > 0 else 2 * trial.t
        state.mean = state.mean or RunningMean(state.value)
        state.mean.add(trial.value)

    def on_new_metric(self, state: DescentState) -> None:
        """Step lengths and means remain valid."""

    def remembers(self, state: DescentState) -> bool:
        return state.step is not None

    def forget(self, state: DescentState) -> None:
        """Start from a unit step and a monotone search."""
        state.step = None
        state.mean = None
