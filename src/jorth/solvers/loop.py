"""The loop that runs every solver: step, record, stop.

Ctrl-C ends a run at its next evaluation, and the run returns what it has. A second Ctrl-C breaks
the step off. While the result is put together and saved, Ctrl-C is ignored for `SAVING_SECONDS`;
after that, one more gives up.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.solvers.checkpoint import CheckpointFolder, Content, packed, save_run
from jorth.solvers.problem import AbstractSolver, Problem, State, Status, StopRun, all_finite
from jorth.solvers.result import History, Result, public
from jorth.solvers.stationarity import lower_plane
from jorth.solvers.stopping import STALL_PATIENCE, Criterion, GradientNorm, RelativeGradient
from jorth.solvers.termination import LEAST_NORM, Ending, Termination, ending

if TYPE_CHECKING:
    from rich.status import Status as ProgressLine

SAVING_SECONDS = 5.0
"""Seconds after an ignored Ctrl-C from which the next one is obeyed."""
MOST_AT_ONCE = 32
"""The most iterations of compiled code between two looks at the clock and at Ctrl-C."""

Callback = Callable[[Any, dict[str, float]], object]


@dataclass
class Interrupt:
    """While active in the main thread, the first SIGINT sets a flag; the next raises.

    What is asked of an outer one is asked of the inner ones, and the other way round.
    """

    of_job: bool = False
    """Whether the process is one of several. Then SIGTERM sets the flag too and no signal raises,
    because torchrun passes on signals that its processes have already received from the terminal,
    and ends them itself after a while."""
    signalled: bool = False
    deferring: bool = False
    ignored_at: float | None = None
    handlers: dict[signal.Signals, Any] = field(default_factory=dict)
    """Those before this one."""

    def requested(self) -> bool:
        return self.signalled

    def hold(self) -> None:
        """Only set the flag from now on, because there are results that must not be lost."""
        self.deferring = True

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM) if self.of_job else (signal.SIGINT,):
                self.handlers[number] = signal.signal(number, self._handle)
                outer = getattr(self.handlers[number], "__self__", None)
                self.signalled |= isinstance(outer, Interrupt) and outer.signalled
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first, self.signalled = not self.signalled, True
        if self.of_job:
            return
        if not self.deferring:
            if not first:
                raise KeyboardInterrupt
        elif self.ignored_at is None:
            self.ignored_at = time.monotonic()
        elif time.monotonic() - self.ignored_at > SAVING_SECONDS:
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
            outer = getattr(handler, "__self__", None)
            if isinstance(outer, Interrupt):
                outer.signalled |= self.signalled


@dataclass
class Run:
    """A run in progress: its problem, its state, its history and what may end it."""

    problem: Problem
    solver: AbstractSolver
    start: Tensor
    history: History
    stop: Criterion
    interrupt: Interrupt
    numpy_out: bool
    callback: Callback | None = None
    progress: ProgressLine | None = None
    """A line on the terminal."""
    checkpoint: CheckpointFolder | None = None
    before: Content | None = None
    """The run before the present step, which may be cut short, if there is a checkpoint."""
    all_components: bool = False
    """Whether steps may lead to other components."""
    watched: bool = True
    """Whether someone looks at every iteration; otherwise a step may take several of them."""
    state: State | None = None
    plane_step: tuple[Tensor, float, Tensor] | None = None
    """The point that a plane step leads to, f and its gradient there, for the next step."""

    @property
    def termination(self) -> Termination:
        return Termination(self.problem, self.history, self.all_components)

    def solve(self) -> Result:
        """Step until something ends the run; the last complete iteration is saved in any case."""
        objective = self.problem.objective
        try:
            try:
                if self.state is None:
                    objective.clock.start()
                    self.state = self.solver.init(self.problem, self.start)
                    objective.clock.pause()
                while (found := self._record(self.state)) is None:
                    self._step(self.state)
                status, message = found
                late = status is not Status.CONVERGED and objective.limit_reached()
                if late is Status.INTERRUPTED:
                    status, message = late, late.value
            except StopRun as stop:
                status, message = stop.status, stop.status.value
            finally:
                # from now on Ctrl-C must not destroy what was found
                self.interrupt.deferring = True
        except KeyboardInterrupt:  # a second Ctrl-C, or a run outside the main thread
            self.interrupt.deferring = True
            if objective.objective.ranks is not None:  # the others are elsewhere
                raise
            if self.state is not None and not self.state.complete:
                self.state.exact = False
            status, message = Status.INTERRUPTED, Status.INTERRUPTED.value
        finally:
            objective.clock.pause()
            if self.checkpoint is not None:
                save_run(self, self.checkpoint)
        return self._result(status, message)

    def _step(self, state: State) -> None:
        objective, history = self.problem.objective, self.history
        if self.checkpoint is not None:
            self.before = packed(self)
        objective.clock.start()
        objective.check_limits()
        began = objective.clock.seconds
        if not self.watched:
            most = objective.limits.max_iterations
            left = MOST_AT_ONCE if most is None else most - history.iteration
            self.problem.most_iterations = min(MOST_AT_ONCE, left)
        state.complete = False
        if self.plane_step is None:
            steps = self.solver.step(self.problem, state)
            if steps is not None:
                history.record_steps(steps, state.value, began)
        else:
            state.move_to(*self.plane_step)
            self.solver.restart(state)
            self.plane_step = None
        history.iteration += 1
        state.complete = True
        objective.clock.pause()
        if self.checkpoint is not None and self.checkpoint.due():
            save_run(self, self.checkpoint)

    def _record(self, state: State) -> Ending | None:
        """Append a row, unless f is not known here; return why the run ends, if it does."""
        objective, history = self.problem.objective, self.history
        if state.unbounded:
            history.value = history.gradient_norm = math.nan
            return self.termination.plane_without_minimiser(state.X)
        asked = False
        if state.exact:
            row = history.record(state)
            if self.progress is not None:
                self.progress.update(
                    f"{self.solver.name}  iteration {history.iteration}  f = {history.value:.6e}  "
                    f"gradient {history.gradient_norm:.1e}  {row['time']:.1f} s"
                )
            if self.callback is not None:
                asked = bool(self.callback(public(history.point.X, numpy_out=self.numpy_out), row))
        else:
            history.value = history.gradient_norm = math.nan
        if objective.objective.ranks is not None:
            asked = objective.agree(asked)
        if asked:
            return Status.INTERRUPTED, "the callback asked to stop"
        fired = self.stop.fired(history)
        if fired is not None:
            return self._ended_by(fired, state)
        most = objective.limits.max_iterations
        if most is not None and history.iteration >= most:
            return Status.MAX_ITERATIONS, Status.MAX_ITERATIONS.value
        largest = unit_roundoff(self.start) ** -0.5
        far = self.problem.stop_unbounded and history.norms_of_point.of_x > largest
        if state.exact and far and self.termination.diverges():
            reason = "||X|| has grown beyond u^(-1/2), where feasibility has no digits left"
            return self.termination.divergence() or ending(Status.STALLED, reason)
        idle = history.improvement.idle >= STALL_PATIENCE
        if not (state.exact and (state.stalled or idle)):
            return None
        self.termination.look_for_scale()
        fired = self.stop.fired(history)
        if fired is not None:
            return self._ended_by(fired, state)
        patience = f"{STALL_PATIENCE} iterations without a better value or gradient norm"
        return self.termination.no_progress(patience if idle else state.reason)

    def _ended_by(self, fired: Criterion, state: State) -> Ending | None:
        """Return the ending by a criterion, unless X runs away or a plane leads on.

        A critical point is not block stationary if f is lower in a plane, where all components are
        allowed: the next step leads there.
        """
        reason, history = fired.explain(self.history), self.history
        found = None
        if state.exact and isinstance(fired, (GradientNorm, RelativeGradient)):
            if history.norms_of_point.of_x >= LEAST_NORM:
                found = self.termination.small_gradient()
            if found is None and self.all_components:
                self.plane_step, unbounded = lower_plane(self.problem, state)
                if unbounded:
                    found = self.termination.plane_without_minimiser(state.X)
                elif self.plane_step is not None:
                    return None
            if history.iteration == 0:
                hint = "jorth.hessian_check tells whether it is a minimum"
                reason += f"; the start is a critical point; {hint}"
        elif state.exact and fired.status is Status.STALLED:  # the norm alone
            found = self.termination.divergence()
        if found is not None:
            return found[0], f"{found[1]}; {reason}"
        if fired.status is Status.STALLED:
            return fired.status, f"{reason}, and f tells nothing of what is beyond"
        return fired.status, f"{fired.status.value}: {reason}"

    def _result(self, status: Status, message: str) -> Result:
        """Return the last point, or a better one that the solver remembers, as the last row.

        It is evaluated if the solver only has an estimate there. A run that met a criterion met it
        at the last point, so this one is returned.
        """
        state, history, feasible = self.state, self.history, self.solver.feasible
        if state is None or not state.exact:
            X = self.start if state is None else state.X
            unknown = math.nan, torch.full_like(X, math.nan)
            state = State(X, *(history.evaluate(X) if feasible else unknown))
        if self.state is not None and status is not Status.CONVERGED:
            state = self.solver.choose_result(self.state, state)
        recorded = bool(history.rows) and history.rows[-1][1] == history.iteration
        if recorded and feasible:  # a step cut short may have moved X since
            recorded = history.rows[-1][2] == state.value * self.problem.objective.unit
        if history.rows and feasible and not all_finite(state.value, state.gradient):
            status, message = Status.NON_FINITE, Status.NON_FINITE.value
        elif not recorded:
            history.record(state)
        return history.result(status, message, method=self.solver.name, numpy_out=self.numpy_out)
