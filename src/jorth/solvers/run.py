"""A run: step, look, record, save, until something ends it."""

from __future__ import annotations

import math
import time as clock_time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.arrays import unit_roundoff
from jorth.group import polish
from jorth.ranks import only_first
from jorth.solvers import checkpoint as checkpoints
from jorth.solvers.base import AbstractSolver, State
from jorth.solvers.counting import Clock, Evaluations, all_finite
from jorth.solvers.criticality import block_stationarity
from jorth.solvers.monitor import NormEstimate, Progress, escaped, gradient_norm, scaled_violation
from jorth.solvers.problem import FEASIBLE, Problem
from jorth.solvers.progress import ProgressLine
from jorth.solvers.result import COLUMNS, History, Result
from jorth.solvers.status import Status, StopRun
from jorth.solvers.stopping import Criterion, Report


class Scored(NamedTuple):
    """A feasible point with its value and gradient, and the violation that it had before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


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
        self.problem, self.solver, self.criterion, self.callback = problem, solver, criterion, callback
        self.numpy_out = numpy_out
        self.start = X
        self.state: State | None = None
        self.iteration = 0
        self.history = History()
        self.improvement = Progress()
        self.gram = X.mT @ (problem.signs[:, None] * X) if X.shape[1] < X.shape[0] else torch.diag(problem.signs)
        self.norm = NormEstimate(X.shape[1], X)
        self.scored = Scored(X, math.nan, torch.full_like(X, math.nan), math.nan)
        self.scored_at = -1
        self.folder: Path | None = None

    # -- the loop

    def go(self, line: ProgressLine) -> Result:
        """Step until something ends the run. Whatever does, the last whole iteration is saved."""
        status, message = Status.INTERRUPTED, None
        try:
            self._begin()
            while True:
                ended = self._look(line)
                if ended is not None:
                    status, message = self._unless_interrupted(*ended)
                    break
                self._step()
        except StopRun as signal:
            status = signal.status
        except KeyboardInterrupt:  # a second Ctrl-C, or not in the main thread
            if self.problem.objective.objective.ranks is not None:  # out of step with the others
                raise
            status = Status.INTERRUPTED
        finally:
            self.problem.objective.clock.pause()
            self._save_at_the_end()
        return self._result(status, message or status.value)

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
            self.last_whole = self._snapshot()
        self.problem.objective.clock.start()
        self.problem.objective.check_limits()
        self.state.whole = False
        self.solver.step(self.problem, self.state)
        self.state.whole = True
        self.problem.objective.clock.pause()
        self.iteration += 1
        self._save()

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
            return Status.CONVERGED, "the callback asked to stop"
        row["time"] = self.problem.objective.clock.seconds
        if not state.exact:  # value and gradient are unknown: only limits can end the run
            return self._fired(row)
        constant = self.problem.objective.objective.constant
        if constant is not None:
            return Status.CONVERGED, f"{Status.CONVERGED.value}: {constant}"
        ended = self._fired(row)
        if ended is not None:
            return ended
        if self.problem.stop_unbounded and self._runs_away(state):
            status = Status.STALLED if self.problem.bounded else Status.UNBOUNDED
            return status, f"{status.value}: ||X|| has grown beyond u^(-1/2) and f still falls"
        if state.stalled or self.improvement.stalled(row["value"], row["gradient_norm"], 2 * unit_roundoff(state.X)):
            return Status.STALLED, None
        return None

    def _show(self, row: dict[str, float], line: ProgressLine) -> bool:
        """Tell the terminal and the callback; whether the latter asks to stop."""
        line.show(self.iteration, row)
        return self.callback is not None and bool(self.callback(self._public(self.scored.X), row))

    def _fired(self, row: dict[str, float]) -> tuple[Status, str] | None:
        fired = self.criterion.fired(self._report(row))
        return None if fired is None else (fired.status, f"{fired.status.value}: {fired.reason()}")

    def _runs_away(self, state: State) -> bool:
        if len(self.history) < 2 or not escaped(state.X):
            return False
        grown = self.history.last("norm") > 10 * self.history.last("norm", len(self.history))
        return grown and self.history.last("value") < self.history.last("value", 2)

    def _record(self, state: State) -> dict[str, float]:
        """Score the point and append a row."""
        norm = self.norm(state.X)
        violation = scaled_violation(state.X, self.problem.signs, self.gram, norm)
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
            return Scored(state.X, state.value, state.gradient, violation)
        try:
            X = polish(state.X, self.problem.signature)
        except ValueError:  # not near a feasible point, or not finite
            return None
        value, gradient = self.problem.objective.objective.value_and_gradient(X)  # not part of the run's counts
        return Scored(X, value.item(), gradient.detach(), violation) if all_finite(value.item(), gradient) else None

    def _gradient_norm(self, point: Scored) -> float:
        return gradient_norm(point.X, point.gradient, self.problem.signs)

    def _report(self, row: dict[str, float]) -> Report:
        state, problem = self.state, self.problem
        assert state is not None

        def stationarity(pairs: int | None) -> float:
            if not state.exact:
                return math.nan
            point = self.scored
            L = state.numbers.get("curvature") or problem.objective.curvature()
            L = L or float(point.gradient.norm() / point.X.norm())
            return block_stationarity(
                problem.objective.objective, point.X, problem.signature, pairs=pairs, curvature=L
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

        It is the last row of the history.
        """
        state, objective = self.state, self.problem.objective
        if state is None or not state.exact:
            X = self.start if state is None else state.X
            value, gradient = objective.objective.value_and_gradient(X)  # not part of the run's counts
            state = State(X, value.item(), gradient.detach())
        if self.state is not None:
            state = self.solver.settle(self.state, state)
        if not self._is_recorded(state):
            self._record(state)
        point = self.scored
        if self.scored_at != self.iteration:
            message += f"; the last point cannot be polished or scored, x is that of iteration {max(self.scored_at, 0)}"
        norm = torch.linalg.matrix_norm(point.X.double(), ord=2).item()
        residual = scaled_violation(point.X, self.problem.signs, self.gram, norm)
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

    def keep(self, folder: Path, identity: dict[str, str], interval: float) -> None:
        """Save into ``folder`` from now on, and go on from what is there. Of several processes the first does both."""
        ranks = self.problem.objective.objective.ranks
        if only_first(ranks):
            self.folder, self.identity, self.interval = folder, identity, interval
            self.saved_at = clock_time.monotonic()
        found = checkpoints.open_folder(folder, identity, self.start.device, ranks)
        if found is not None:
            self._restore(*found)

    def _save(self) -> None:
        if self.folder is not None and clock_time.monotonic() - self.saved_at >= self.interval:
            checkpoints.save(self.folder, self.identity, *self._snapshot())
            self.saved_at = clock_time.monotonic()

    def _save_at_the_end(self) -> None:
        if self.folder is None or self.state is None:
            return
        snapshot = self._snapshot() if self.state.whole else self.last_whole
        try:
            checkpoints.save(self.folder, self.identity, *snapshot)
        except OSError as error:  # the result is worth more than the checkpoint
            warnings.warn(f"the last checkpoint could not be written: {error}", stacklevel=2)

    def _snapshot(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        state = self.state
        assert state is not None
        self.solver.pack(state)
        tensors = {"X": state.X.clone(), "gradient": state.gradient.clone()}
        tensors |= {f"tensors.{name}": tensor.clone() for name, tensor in state.tensors.items()}
        numbers = {
            "value": state.value,
            "exact": state.exact,
            "numbers": dict(state.numbers),
            "iteration": self.iteration,
            "count": self.problem.objective.count.as_dict(),
            "seconds": self.problem.objective.clock.seconds,
            "history": self.history.rows,
            "rows": len(self.history),
            "improvement": asdict(self.improvement),
            "rng": self.problem.rng.bit_generator.state,
        }
        return tensors, numbers

    def _restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        extra = {name.removeprefix("tensors."): t for name, t in tensors.items() if name.startswith("tensors.")}
        self.state = State(
            tensors["X"],
            numbers["value"],
            tensors["gradient"],
            exact=numbers["exact"],
            numbers=numbers["numbers"],
            tensors=extra,
        )
        self.iteration = numbers["iteration"]
        rows = numbers["history"][: numbers["rows"]]
        if rows and rows[-1][COLUMNS.index("iteration")] == self.iteration:
            rows.pop()  # it is recorded again at the first look
        self.history = History(rows)
        self.improvement = Progress(**numbers["improvement"])
        objective = self.problem.objective
        objective.count = Evaluations(**numbers["count"])
        objective.clock = Clock(numbers["seconds"])
        self.problem.rng.bit_generator.state = numbers["rng"]
