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

from torch import Tensor

from jorth.solvers.checkpoint import CheckpointFolder, Content, packed, save_run
from jorth.solvers.problem import AbstractSolver, Problem, State, Status, StopRun
from jorth.solvers.result import History, Result, public
from jorth.solvers.stopping import Criterion
from jorth.solvers.termination import Termination

if TYPE_CHECKING:
    from rich.status import Status as ProgressLine

SAVING_SECONDS = 5.0
"""Seconds after an ignored Ctrl-C from which the next one is obeyed."""

Callback = Callable[[Any, dict[str, float]], object]


@dataclass
class Interrupt:
    """The first SIGINT sets a flag, also in an inner one; the next raises. For the main thread."""

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
    criteria: tuple[Criterion, ...]
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
    state: State | None = None

    def solve(self) -> Result:
        """Step until something ends the run; the last complete iteration is saved in any case."""
        objective, history = self.problem.objective, self.history
        termination = Termination(self.problem, history, self.criteria, self.all_components)
        try:
            try:
                if self.state is None:
                    objective.clock.start()
                    self.state = self.solver.init(self.problem, self.start)
                    objective.clock.pause()
                while (
                    found := termination.ending(self.state, asked=self._record(self.state))
                ) is None:
                    self._step(self.state, termination)
            except StopRun as stop:
                found = stop.status, ""
            finally:
                # from now on Ctrl-C must not destroy what was found
                self.interrupt.hold()
        except KeyboardInterrupt:  # a second Ctrl-C, or a run outside the main thread
            self.interrupt.hold()
            if objective.objective.ranks is not None:  # the others are elsewhere
                raise
            if self.state is not None and not self.state.complete:
                self.state.exact = False
            found = Status.INTERRUPTED, ""
        finally:
            objective.clock.pause()
            if self.checkpoint is not None:
                save_run(self, self.checkpoint)
        return history.result(*found, self.solver, self.state, numpy_out=self.numpy_out)

    def _step(self, state: State, termination: Termination) -> None:
        objective, history = self.problem.objective, self.history
        if self.checkpoint is not None:
            self.before = packed(self)
        objective.clock.start()
        objective.check_limits()
        state.complete = False
        if termination.leads_on is None:
            self.solver.step(self.problem, state)
        else:
            state.move_to(*termination.leads_on)
            self.solver.restart(state)
        history.iteration += 1
        state.complete = True
        objective.clock.pause()
        if self.checkpoint is not None and self.checkpoint.due():
            save_run(self, self.checkpoint)

    def _record(self, state: State) -> bool:
        """Append a row, unless f is not known here; return whether the callback asks to stop."""
        history, asked = self.history, False
        if state.unbounded or not state.exact:
            history.value = history.gradient_norm = math.nan
        elif history.recorded_at < history.iteration:
            row = history.record(state)
            if self.progress is not None:
                self.progress.update(
                    f"{self.solver.name}  iteration {history.iteration}  f = {history.value:.6e}  "
                    f"gradient {history.gradient_norm:.1e}  {row['time']:.1f} s"
                )
            if self.callback is not None:
                asked = bool(self.callback(public(history.point.X, numpy_out=self.numpy_out), row))
        if self.problem.objective.objective.ranks is not None:
            asked = self.problem.objective.agree(asked)
        return asked
