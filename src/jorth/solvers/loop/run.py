"""A run: step, record, save and check whether to continue, until something ends it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._checkpoint import ADVICE, Content, Folder
from jorth._distributed import only_first
from jorth.solvers.loop import snapshot, stalls
from jorth.solvers.loop.budget import Interrupt, Limits, all_finite
from jorth.solvers.loop.escape import Escape
from jorth.solvers.loop.progress import ProgressLine
from jorth.solvers.loop.record import COLUMNS, Record, Result, public
from jorth.solvers.loop.solver import AbstractSolver, Problem, State
from jorth.solvers.loop.status import Status, StopRun
from jorth.solvers.loop.stopping import (
    STALL_PATIENCE,
    Criterion,
    GradientNorm,
    Improvement,
    MaxIterations,
    RelativeGradient,
    Report,
    ValueBelow,
)
from jorth.solvers.stationarity import block_stationarity, lowest_plane

PLANE_DECREASE = 1e3
"""A plane step away from a critical point must lower f by this many u times its size."""
STATIONARITY_THETA = 1e-5
"""The proximal weight of `BlockStationary`, relative to the curvature, whatever the units of f."""

BURST = 32
"""The most iterations of a compiled solver between two looks at the clock and at Ctrl-C."""

DIGESTS = ("objective", "gradient at the start", "start")
"""The parts of a run's identity that are hashes, which say nothing to a reader."""
HINTS = {"objective": f"the kind of the objective or its data differ; {ADVICE}"}

Callback = Callable[[Any, dict[str, float]], object]
Ending = tuple[Status, str]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of `minimize` that are the same for every method."""

    limits: Limits
    gradient_tolerance: float
    stop: Criterion | None
    seed: int | np.random.Generator
    callback: Callback | None
    progress: bool
    checkpoint: str | os.PathLike[str] | None
    checkpoint_interval: float
    on_unbounded: Literal["stop", "continue"]

    def __post_init__(self) -> None:
        _inputs.check_choice(self.on_unbounded, "on_unbounded", ("stop", "continue"))
        _inputs.check_number(self.gradient_tolerance, "gradient_tolerance", 0)
        _inputs.check_number(self.checkpoint_interval, "checkpoint_interval", 0)
        _inputs.check_flag(self.progress, "progress")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback must be a function, got {_inputs.describe(self.callback)}")
        if self.checkpoint is not None:
            _inputs.file_path(self.checkpoint, "checkpoint")
        if self.stop is not None and not isinstance(self.stop, Criterion):
            raise TypeError(
                f"stop must be a criterion from jorth.stopping, got {_inputs.describe(self.stop)}"
            )

    @property
    def folder(self) -> Path | None:
        return None if self.checkpoint is None else Path(self.checkpoint)

    @property
    def unwatched(self) -> bool:
        """Whether nobody needs to look at every iteration.

        Compiled code knows when the gradient norm or the value is low enough.
        """
        watchers = (self.callback, self.checkpoint, self.limits.max_evaluations)
        by_value = self.stop is None or isinstance(self.stop, ValueBelow)
        return by_value and not self.progress and all(part is None for part in watchers)

    def criterion(self) -> Criterion:
        """Whatever may end the run after an iteration."""
        criterion: Criterion = RelativeGradient(self.gradient_tolerance)
        if self.stop is not None:
            criterion = criterion | self.stop
        limit = self.limits.max_iterations
        return criterion if limit is None else criterion | MaxIterations(limit)


class Run:
    """A run in progress: its state, its record and what may end it."""

    def __init__(
        self,
        problem: Problem,
        solver: AbstractSolver,
        start: Tensor,
        settings: Settings,
        *,
        numpy_out: bool,
    ) -> None:
        self.problem = problem
        self.solver = solver
        self.start = start
        self.callback = settings.callback
        self.criterion = settings.criterion()
        self.settings = settings
        self.numpy_out = numpy_out
        self.state: State | None = None
        self.iteration = 0
        self.record = Record(problem, solver, start)
        self.improvement = Improvement()
        self.folder: Folder | None = None
        self.last_complete: Content | None = None
        self.beyond: tuple[Tensor, float, Tensor] | None = None
        """The point that a plane step leads to, f and its gradient there, for the next step."""

    @property
    def escape(self) -> Escape:
        """What is asked about f if X runs away."""
        return Escape(self.problem, self.solver, self.record)

    # -- the loop

    def solve(self, interrupt: Interrupt, line: ProgressLine | None) -> Result:
        """Step until something ends the run; the last complete iteration is saved in any case."""
        try:
            status, message = self._iterate_until_ended(interrupt, line)
        finally:
            self.problem.objective.clock.pause()
            self._save_at_the_end()
        return self._result(status, message)

    def _iterate_until_ended(self, interrupt: Interrupt, line: ProgressLine | None) -> Ending:
        """Return why the run ended; from then on Ctrl-C must not destroy what was found."""
        try:
            try:
                return self._iterate(interrupt, line)
            except StopRun as signal:
                return signal.status, signal.status.value
            finally:
                interrupt.hold()
        except KeyboardInterrupt:  # a second Ctrl-C, or a run outside the main thread
            interrupt.hold()
            if self.problem.objective.objective.ranks is not None:  # the others are elsewhere
                raise
            if self.state is not None and not self.state.complete:
                self.state.exact = False
            return Status.INTERRUPTED, Status.INTERRUPTED.value

    def _iterate(self, interrupt: Interrupt, line: ProgressLine | None) -> Ending:
        with interrupt.at_once():  # compilation may take some seconds
            self.solver.prepare_for(self.problem, self.start)
        objective = self.problem.objective
        if self.state is None:
            objective.clock.start()
            self.state = self.solver.init(self.problem, self.start)
            objective.clock.pause()
        while True:
            ending = self._record_and_check(self.state, line)
            if ending is None:
                self._step(self.state)
                continue
            if self.state.exact:
                self.record.history.recount(objective.count)
            if objective.interrupted() and ending[0] is not Status.CONVERGED:
                return Status.INTERRUPTED, Status.INTERRUPTED.value
            return ending

    def _step(self, state: State) -> None:
        if self.folder is not None:
            self.last_complete = snapshot.take(self)
        self.problem.objective.clock.start()
        self.problem.objective.check_limits()
        state.complete = False
        state.burst.most = self._steps_at_once(state)
        began = self.problem.objective.clock.seconds
        if self.beyond is None:
            self.solver.step(self.problem, state)
        else:
            state.move_to(*self.beyond)
            self.solver.restart(state)
            self.beyond = None
        self.iteration += 1 + self._record_passed(state, began)
        state.complete = True
        self.problem.objective.clock.pause()
        self._save_when_due()

    def _steps_at_once(self, state: State) -> int:
        """How many iterations a compiled solver may take before the next look."""
        if not self.settings.unwatched or not self.record.small:
            return 1
        state.burst.target = self.settings.gradient_tolerance * self.record.scale.size
        if isinstance(self.settings.stop, ValueBelow):
            lowest = self.settings.stop.target / self.record.scale.unit
            state.burst.fall = state.value - lowest
        limit = self.settings.limits.max_iterations
        return BURST if limit is None else min(BURST, limit - self.iteration)

    def _record_passed(self, state: State, began: float) -> int:
        """Record the iterations that a step took before its last one, and return their number."""
        rows = state.burst.rows
        state.burst.rows = None
        if rows is None or len(rows) < 2:
            return 0
        eps = 2 * _inputs.unit_roundoff(state.X)
        table = self.record.add_passed(rows, state.value, self.iteration, began)
        values = table[:, [COLUMNS.index("value"), COLUMNS.index("gradient_norm")]]
        for value, gradient_norm in values.tolist():
            self.improvement.update(value, gradient_norm, eps)
        return len(rows) - 1

    def _record_and_check(self, state: State, line: ProgressLine | None) -> Ending | None:
        """Record the iteration; if the run ends here, return why."""
        if state.unbounded:
            return _ending(*self.escape.in_a_plane(state))
        if not state.exact:  # value and gradient are unknown, so only limits can end the run
            row = dict.fromkeys(COLUMNS, math.nan)
            asked = False
        else:
            row = self.record.add(state, self.iteration)
            if line is not None:
                line.show(row)
            asked = self._callback_asks_to_stop(row)
        if self.problem.objective.agree(asked):
            return Status.INTERRUPTED, "the callback asked to stop"
        row["time"] = self.problem.objective.clock.seconds
        constant = self.problem.objective.objective.constant
        if state.exact and constant is not None:
            return _ending(Status.CONVERGED, constant)
        report = self._report(state, row)
        fired = self.criterion.fired(report)
        if fired is not None:
            return self._ended_by(fired, report, state, scored=state.exact)
        return self._futile(state, row) if state.exact else None

    def _ended_by(
        self, fired: Criterion, report: Report, state: State, *, scored: bool
    ) -> Ending | None:
        """The ending by a criterion, unless X runs away, which says more, or a plane leads on."""
        reason = fired.explain(report)
        found = None
        if scored and isinstance(fired, (GradientNorm, RelativeGradient)):
            found = self.escape.converged() or self._look_at_planes(state)
            if self.beyond is not None:
                return None
        elif scored and fired.status is Status.STALLED:  # the norm alone
            found = self.escape.far_out()
        if found is not None:
            return _ending(found[0], f"{found[1]}; {reason}")
        if fired.status is Status.STALLED:
            return fired.status, f"{reason}, and f tells nothing of what is beyond"
        return _ending(fired.status, reason)

    def _futile(self, state: State, row: dict[str, float]) -> Ending | None:
        """Why it is of no use to go on: the run diverges or has stalled."""
        if self.problem.stop_unbounded and self._diverges():
            reason = "||X|| has grown beyond u^(-1/2), where feasibility has no digits left"
            return _ending(*(self.escape.far_out() or (Status.STALLED, reason)))
        reason = state.reason if state.stalled else ""
        eps = 2 * _inputs.unit_roundoff(state.X)
        if self.improvement.update(row["value"], row["gradient_norm"], eps) >= STALL_PATIENCE:
            reason = f"{STALL_PATIENCE} iterations without a better value or gradient norm"
        if not reason:
            return None
        return self._stalled(state, row, reason)

    def _look_at_planes(self, state: State) -> Ending | None:
        """Look for a lower f in the planes of all pairs, where all components are allowed.

        A critical point is not block stationary if there is one; the next step leads to it.
        """
        objective = self.problem.objective
        allowed = getattr(self.solver, "components", "start") == "all" and len(state.X) > 1
        if not allowed or objective.objective.nonsmooth:
            return None
        form = objective.quadratic()
        L = objective.curvature() or state.curvature
        L = L or _inputs.frobenius(state.gradient) / _inputs.frobenius(state.X)
        curvature = (L, None) if form is None else (form.like(state.X).A, form.like(state.X).D)
        moved, decrease, unbounded = lowest_plane(
            state.X, state.gradient, self.problem.signature, STATIONARITY_THETA * L, curvature
        )
        if unbounded and self.problem.ends_unbounded:
            return self.escape.in_a_plane(state)
        size = abs(state.value) + abs(float((state.gradient * state.X).sum()))
        least = PLANE_DECREASE * _inputs.unit_roundoff(state.X) * size
        if moved is None or not decrease > least:
            return None
        value, gradient = objective.value_and_gradient(moved)
        if all_finite(value, gradient) and value < state.value - least:
            self.beyond = moved, value, gradient
        return None

    def _stalled(self, state: State, row: dict[str, float], reason: str) -> Ending | None:
        """The ending of a run that gets no further, for a reason."""
        stalls.look_around(self.problem, self.record)
        report = self._report(state, row)
        fired = self.criterion.fired(report)
        if fired is not None:
            return self._ended_by(fired, report, state, scored=True)
        found = self.escape.stalled()
        if found is not None:
            return _ending(*found)
        tolerance = self.settings.gradient_tolerance
        return _ending(Status.STALLED, stalls.explain(self.problem, self.record, reason, tolerance))

    def _diverges(self) -> bool:
        """Whether f falls while ||X||_2 exceeds u^(-1/2), where feasibility has no digits left."""
        history = self.record.history
        if len(history) < 2 or self.record.scored_at != self.iteration:
            return False
        X = self.record.scored.X
        limit = _inputs.unit_roundoff(X) ** -0.5
        if not history.last("norm") > limit / 2:  # that of X before it was polished, roughly
            return False
        if not bool(torch.linalg.matrix_norm(X, ord=2) > limit):
            return False
        grown = history.last("norm") > 10 * history.last("norm", len(history))
        return grown and history.last("value") < history.last("value", 2)

    def _callback_asks_to_stop(self, row: dict[str, float]) -> bool:
        if self.callback is None:
            return False
        answer = self.callback(public(self.record.scored.X, numpy_out=self.numpy_out), row)
        try:
            return bool(answer)
        except (TypeError, ValueError, RuntimeError):
            found = _inputs.describe(answer)
            raise TypeError(f"callback must return True, False or None, got {found}") from None

    def _report(self, state: State, row: dict[str, float]) -> Report:
        problem = self.problem

        def stationarity(pairs: int | None) -> float:
            if not state.exact:
                return math.nan
            if problem.signature.n == 1:  # there are no planes
                return 0.0
            point = self.record.scored
            L = state.curvature or problem.objective.curvature()
            L = L or _inputs.frobenius(point.gradient) / _inputs.frobenius(point.X)
            unit = problem.objective.unit
            if L == 0:  # f is flat here, and its curvature unknown
                return 0.0
            return block_stationarity(
                problem.objective.objective,
                point.X,
                problem.signature,
                theta=STATIONARITY_THETA * L * unit,
                pairs=pairs,
                curvature=L * unit,
                gradient=point.gradient * unit,
            ).value

        return Report(
            self.iteration,
            row["value"],
            row["gradient_norm"],
            row["time"],
            problem.objective.count,
            self.record.history,
            stationarity,
            self.record.scale.largest,
        )

    def _result(self, status: Status, message: str) -> Result:
        """The last point, or a better one that the solver remembers; it is the last row.

        It is evaluated if the solver only has an estimate there. A run that met a criterion met it
        at the last point, so this one is returned.
        """
        state = self.state
        if state is None or not state.exact:
            X = self.start if state is None else state.X
            if self.solver.feasible:
                state = State(X, *self.record.evaluate(X, self.iteration))
            else:
                state = State(X, math.nan, torch.full_like(X, math.nan))
        if self.state is not None and status is not Status.CONVERGED:
            state = self.solver.choose_result(self.state, state)
        usable = all_finite(state.value, state.gradient) or not self.solver.feasible
        if len(self.record.history) and not usable:
            status = Status.NON_FINITE
            message = status.value
        elif not self.record.has(state, self.iteration):
            self.record.add(state, self.iteration)
        return self.record.result(status, message, self.iteration, numpy_out=self.numpy_out)

    # -- checkpoints

    def keep_in(self, path: Path, identity: dict[str, str], interval: float) -> None:
        """Continue from the checkpoint in a folder, if there is one, and save there from now on.

        Of several processes only the first one reads and writes.
        """
        ranks = self.problem.objective.objective.ranks
        folder = Folder(path, identity, hints=HINTS, digests=DIGESTS)
        if only_first(ranks):
            self.folder = folder
            self.interval = interval
            self.saved_at = time.monotonic()
        found = folder.open(self.start.device, ranks)
        if found is not None:
            snapshot.put_back(self, found, path)

    def leave_folder(self) -> None:
        """Let other runs have the checkpoint."""
        if self.folder is not None:
            self.folder.close()

    def _save_when_due(self) -> None:
        if self.folder is not None and time.monotonic() - self.saved_at >= self.interval:
            self.folder.save(*snapshot.take(self))
            self.saved_at = time.monotonic()

    def _save_at_the_end(self) -> None:
        if self.folder is None or self.state is None:
            return
        content = snapshot.take(self) if self.state.complete else self.last_complete
        if content is not None:
            self.folder.save(*content)


def _ending(status: Status, reason: str) -> Ending:
    return status, f"{status.value}: {reason}"
