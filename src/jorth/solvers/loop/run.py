"""A run: step, look, record, save, until something ends it."""

from __future__ import annotations

import math
import time as clock_time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import describe, frobenius, unit_roundoff
from jorth.group import polish
from jorth.group.elements import scaled_violation
from jorth.group.slopes import gradient_norm
from jorth.group.spectral_norm import spectral_norm
from jorth.ranks import only_first
from jorth.solvers.loop import snapshot
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.interrupt import Interrupt
from jorth.solvers.loop.monitor import PATIENCE, Progress, escaped
from jorth.solvers.loop.problem import FEASIBLE, Problem
from jorth.solvers.loop.progress import ProgressLine
from jorth.solvers.loop.result import COLUMNS, History, Result
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import Scored, State
from jorth.solvers.loop.status import Status, StopRun
from jorth.solvers.loop.stopping import Criterion, Report
from jorth.solvers.stationarity import block_stationarity
from jorth.storage.checkpoint import Content, Folder

STATIONARITY_THETA = 1e-5
"""The proximal weight of `BlockStationary`, relative to the curvature: f in other units stops at the same point."""


class Run:
    """A run while it lasts: its state, its history, and what ends it."""

    def __init__(
        self,
        problem: Problem,
        solver: AbstractSolver,
        X: Tensor,
        criterion: Criterion,
        callback: Callable[[Any, dict[str, float]], object] | None,
        numpy_out: bool,
    ) -> None:
        self.problem, self.solver, self.criterion, self.callback = (
            problem,
            solver,
            criterion,
            callback,
        )
        self.numpy_out = numpy_out
        self.start = X
        self.state: State | None = None
        self.iteration = 0
        self.history = History()
        self.improvement = Progress()
        self.gram = (
            X.mT @ (problem.signs[:, None] * X)
            if X.shape[1] < X.shape[0]
            else torch.diag(problem.signs)
        )
        self.scored = Scored(X, math.nan, torch.full_like(X, math.nan), math.nan)
        self.scored_at = -1
        self.counted_at = -1
        self.folder: Folder | None = None
        self.last_whole: Content | None = None

    # -- the loop

    def go(self, line: ProgressLine, interrupt: Interrupt) -> Result:
        """Step until something ends the run. Whatever does, the last whole iteration is saved."""
        try:
            status, message = self._until_the_end(line, interrupt)
        finally:
            self.problem.objective.clock.pause()
            self._save_at_the_end()
        return self._result(status, message or status.value)

    def _until_the_end(self, line: ProgressLine, interrupt: Interrupt) -> tuple[Status, str | None]:
        """Step, and say why no more; from there on Ctrl-C must not take away what was found."""
        try:
            try:
                return self._loop(line)
            except StopRun as signal:
                return signal.status, None
            finally:
                interrupt.hold()
        except KeyboardInterrupt:  # a second Ctrl-C, or not in the main thread
            interrupt.hold()
            if self.problem.objective.objective.ranks is not None:  # out of step with the others
                raise
            if self.state is not None and not self.state.complete:  # cut anywhere
                self.state.exact = False
            return Status.INTERRUPTED, None

    def _loop(self, line: ProgressLine) -> tuple[Status, str | None]:
        self._begin()
        while True:
            ended = self._look(line)
            if ended is not None:
                return self._unless_interrupted(*ended)
            self._step()

    def _unless_interrupted(self, status: Status, message: str | None) -> tuple[Status, str | None]:
        """Ctrl-C at the last look: a chain must not go on after it."""
        asked = self.problem.objective.interrupted() and status is not Status.CONVERGED
        return (Status.INTERRUPTED, None) if asked else (status, message)

    def _begin(self) -> None:
        self.solver.prepare()
        if self.state is None:
            self.problem.objective.clock.start()
            self.state = self.solver.init(self.problem, self.start)
            self.problem.objective.clock.pause()

    def _step(self) -> None:
        assert self.state is not None
        if self.folder is not None:
            self.last_whole = snapshot.take(self)
        self.problem.objective.clock.start()
        self.problem.objective.check_limits()
        self.state.complete = False
        self.solver.step(self.problem, self.state)
        self.iteration += 1
        self.state.complete = True
        self.problem.objective.clock.pause()
        self._save_in_time()

    def _look(self, line: ProgressLine) -> tuple[Status, str | None] | None:
        """Record the iteration and say whether, and why, the run ends here."""
        state = self.state
        assert state is not None
        if state.unbounded:
            reason = "a plane problem has no minimiser, or one where feasibility has no digits left"
            return Status.UNBOUNDED, f"{Status.UNBOUNDED.value}: {reason}"
        row = self._record(state) if state.exact else dict.fromkeys(COLUMNS, math.nan)
        asked = state.exact and self._show(row, line)
        if self.problem.objective.agree(asked):
            return Status.INTERRUPTED, "the callback asked to stop"
        row["time"] = self.problem.objective.clock.seconds
        if not state.exact:  # value and gradient are unknown: only limits can end the run
            return self._fired(row)
        constant = self.problem.objective.objective.constant
        if constant is not None:
            return Status.CONVERGED, f"{Status.CONVERGED.value}: {constant}"
        ended = self._fired(row)
        if ended is not None:
            return ended
        if self.problem.stop_unbounded and self._runs_away():
            status = Status.STALLED if self.problem.bounded else Status.UNBOUNDED
            return status, f"{status.value}: ||X|| has grown beyond u^(-1/2) and f still falls"
        if state.stalled:
            return Status.STALLED, f"{Status.STALLED.value}: {state.reason}"
        if self.improvement.stalled(row["value"], row["gradient_norm"], 2 * unit_roundoff(state.X)):
            reason = f"{PATIENCE} iterations without a better value or gradient norm"
            return Status.STALLED, f"{Status.STALLED.value}: {reason}"
        return None

    def _show(self, row: dict[str, float], line: ProgressLine) -> bool:
        """Tell the terminal and the callback; whether the latter asks to stop."""
        line.show(self.iteration, row)
        if self.callback is None:
            return False
        answer = self.callback(self._public(self.scored.X), row)
        try:
            return bool(answer)
        except (TypeError, ValueError, RuntimeError):
            raise TypeError(
                f"callback must return True, False or None, got {describe(answer)}"
            ) from None

    def _fired(self, row: dict[str, float]) -> tuple[Status, str] | None:
        fired = self.criterion.fired(self._report(row))
        return None if fired is None else (fired.status, f"{fired.status.value}: {fired.reason()}")

    def _runs_away(self) -> bool:
        if len(self.history) < 2 or self.scored_at != self.iteration or not escaped(self.scored.X):
            return False
        grown = self.history.last("norm") > 10 * self.history.last("norm", len(self.history))
        return grown and self.history.last("value") < self.history.last("value", 2)

    def _record(self, state: State) -> dict[str, float]:
        """Score the point and append a row."""
        norm = spectral_norm(state.X)
        violation = scaled_violation(state.X, self.problem.signs, self.gram, norm).item()
        point = self._score(state, violation)
        if point is not None:
            self.scored, self.scored_at = point, self.iteration
        row = {
            "time": self.problem.objective.clock.seconds,
            "iteration": float(self.iteration),
            "value": math.nan if point is None else point.value,
            "gradient_norm": math.nan if point is None else self._gradient_norm(point),
            "residual": violation,
            "norm": norm,
            **self.problem.objective.count.columns(),
        }
        self.history.add(**row)
        return row

    def _score(self, state: State, violation: float) -> Scored | None:
        """The point as the user would get it, by the objective's word; None where it cannot be polished or has none."""
        if self.solver.feasible:
            return Scored(state.X.clone(), state.value, state.gradient, violation)
        state.scored = None
        try:
            X = polish(state.X, self.problem.signature)
        except ValueError:  # not near a feasible point, or not finite
            return None
        value, gradient = self._evaluated(X)
        if all_finite(value, gradient):
            state.scored = Scored(X, value, gradient, violation)
        return state.scored

    def _evaluated(self, X: Tensor) -> tuple[float, Tensor]:
        """Value and gradient for the record, counted once an iteration: a resumed run records its last one again."""
        objective = self.problem.objective
        before = replace(objective.count)
        value, gradient = objective.value_and_gradient_for_the_record(X)
        if self.counted_at == self.iteration:
            objective.count = before
        self.counted_at = self.iteration
        return value, gradient

    def _gradient_norm(self, point: Scored) -> float:
        return gradient_norm(point.X, point.gradient, self.problem.signs)

    def _report(self, row: dict[str, float]) -> Report:
        state, problem = self.state, self.problem
        assert state is not None

        def stationarity(pairs: int | None) -> float:
            if not state.exact:
                return math.nan
            if problem.signature.n == 1:  # there are no planes
                return 0.0
            point = self.scored
            L = state.curvature or problem.objective.curvature()
            L = L or frobenius(point.gradient) / frobenius(point.X)
            if L == 0:  # f is flat here, and its curvature unknown
                return 0.0
            objective, known = problem.objective.objective, point.gradient
            return block_stationarity(
                objective,
                point.X,
                problem.signature,
                theta=STATIONARITY_THETA * L,
                pairs=pairs,
                curvature=L,
                gradient=known,
            ).value

        return Report(
            self.iteration,
            row["value"],
            row["gradient_norm"],
            row["time"],
            problem.objective.count,
            self.history,
            stationarity,
        )

    # -- the end

    def _public(self, X: Tensor) -> Any:
        copy = X.detach().clone()
        return copy.cpu().numpy() if self.numpy_out else copy

    def _result(self, status: Status, message: str) -> Result:
        """The last point, scored afresh where the solver had only an estimate, or a better one that it remembers.

        It is the last row of the history. Where a criterion was met, it was met at the last point.
        """
        state, objective = self.state, self.problem.objective
        if state is None or not state.exact:
            X = self.start if state is None else state.X
            known = (
                self._evaluated(X)
                if self.solver.feasible
                else (math.nan, torch.full_like(X, math.nan))
            )
            state = State(X, *known)
        if self.state is not None and status is not Status.CONVERGED:
            state = self.solver.settle(self.state, state)
        if (
            self.solver.feasible
            and len(self.history)
            and not all_finite(state.value, state.gradient)
        ):
            status, message = Status.NON_FINITE, Status.NON_FINITE.value
        elif not self._is_recorded(state):
            self._record(state)
        point = self.scored
        if self.scored_at != self.iteration:
            message += f"; the last point cannot be polished or scored, x is that of iteration {max(self.scored_at, 0)}"
        norm = torch.linalg.matrix_norm(point.X.double(), ord=2).item()
        residual = scaled_violation(point.X, self.problem.signs, self.gram, norm).item()
        if residual > FEASIBLE * len(point.X) * unit_roundoff(point.X):
            message += f"; the path was long or went far out and left a residual of {residual:.1g}: polish x"
        return Result(
            x=self._public(point.X),
            value=point.value,
            status=status,
            message=message,
            iterations=self.iteration,
            evaluations=objective.count,
            time=objective.clock.seconds,
            gradient_norm=self._gradient_norm(point),
            residual=residual,
            violation=residual if self.solver.feasible else point.violation,
            history=self.history.arrays(),
        )

    def _is_recorded(self, state: State) -> bool:
        """Whether the last row is of this point; a step that was cut short may have moved on from it."""
        if not len(self.history) or self.history.last("iteration") != self.iteration:
            return False
        return not self.solver.feasible or self.history.last("value") == state.value

    # -- checkpoints

    def keep(self, path: Path, identity: dict[str, str], interval: float) -> None:
        """Save into a folder from now on, and go on from what is there. Of several processes the first does both."""
        ranks = self.problem.objective.objective.ranks
        folder = Folder(path, identity)
        if only_first(ranks):
            self.folder, self.interval = folder, interval
            self.saved_at = clock_time.monotonic()
        found = folder.open(self.start.device, ranks)
        if found is not None:
            snapshot.put_back(self, found, path)

    def _save_in_time(self) -> None:
        if self.folder is not None and clock_time.monotonic() - self.saved_at >= self.interval:
            self.folder.save(*snapshot.take(self))
            self.saved_at = clock_time.monotonic()

    def _save_at_the_end(self) -> None:
        if self.folder is None or self.state is None:
            return
        content = snapshot.take(self) if self.state.complete else self.last_whole
        if content is not None:
            self.folder.save(*content)
