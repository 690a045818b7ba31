"""A run: step, look, record, save, until something ends it."""

from __future__ import annotations

import time as clock_time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jorth.arrays import unit_roundoff
from jorth.solvers import checkpoint as checkpoints
from jorth.solvers.base import AbstractSolver, State
from jorth.solvers.counting import Clock, Evaluations
from jorth.solvers.criticality import block_stationarity
from jorth.solvers.monitor import NormEstimate, Progress, escaped, gradient_norm, scaled_violation
from jorth.solvers.problem import Problem
from jorth.solvers.progress import ProgressLine
from jorth.solvers.result import History, Result
from jorth.solvers.status import Status, StopRun
from jorth.solvers.stopping import Criterion, Report


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
        self.folder: Path | None = None

    # -- the loop

    def go(self, line: ProgressLine) -> Result:
        """Step until something ends the run."""
        status, message = Status.INTERRUPTED, None
        try:
            self._begin()
            while True:
                ended = self._look(line)
                if ended is not None:
                    status, message = ended
                    break
                self._step()
        except StopRun as signal:
            status = signal.status
        except KeyboardInterrupt:  # a second Ctrl-C, or not in the main thread
            status = Status.INTERRUPTED
        finally:
            self.problem.objective.clock.pause()
        self._save(force=True)
        return self._result(status, message or status.value)

    def _begin(self) -> None:
        self.solver.prepare()
        if self.state is None:
            self.problem.objective.clock.start()
            self.state = self.solver.init(self.problem, self.start)
            self.problem.objective.clock.pause()

    def _step(self) -> None:
        assert self.state is not None
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
            return Status.UNBOUNDED, f"{Status.UNBOUNDED.value}: a plane problem has no minimiser"
        if not state.exact:
            return None
        row = self._record(state)
        line.show(self.iteration, row)
        if self.callback is not None and self.callback(self._public(state.X), row) is True:
            return Status.CONVERGED, "the callback asked to stop"
        report = self._report(row)
        fired = self.criterion.fired(report)
        if fired is not None:
            return fired.status, f"{fired.status.value}: {fired.reason()}"
        if self.problem.stop_unbounded and escaped(state.X):
            return (
                Status.UNBOUNDED,
                f"{Status.UNBOUNDED.value}: ||X|| has passed the square root of 1/u and f still falls",
            )
        if state.stalled or self.improvement.stalled(row["value"], row["gradient_norm"], 2 * unit_roundoff(state.X)):
            return Status.STALLED, None
        return None

    def _record(self, state: State) -> dict[str, float]:
        if len(self.history) and self.history.last("iteration") == self.iteration:
            return self._row_again()
        norm = self.norm(state.X)
        row = {
            "time": self.problem.objective.clock.seconds,
            "iteration": float(self.iteration),
            "value": state.value,
            "gradient_norm": gradient_norm(state.X, state.gradient, self.problem.signs),
            "residual": scaled_violation(state.X, self.problem.signs, self.gram, norm),
            "norm": norm,
            **self.problem.objective.count.columns(),
        }
        self.history.add(**row)
        return row

    def _row_again(self) -> dict[str, float]:
        """The last row, of a run that was just resumed."""
        return {name: float(column[-1]) for name, column in self.history.arrays().items()}

    def _report(self, row: dict[str, float]) -> Report:
        state, problem = self.state, self.problem
        assert state is not None

        def stationarity(pairs: int | None) -> float:
            L = state.numbers.get("curvature")
            return block_stationarity(
                problem.objective.objective, state.X, problem.signature, pairs=pairs, curvature=L
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
        X = self.start if self.state is None else self.state.X
        objective = self.problem.objective
        if self.state is None or not self.state.exact:  # score the last point; not part of the run's counts
            value, gradient = objective.objective.value_and_gradient(X)
            final_value, gradient = value.item(), gradient.detach()
        else:
            final_value, gradient = self.state.value, self.state.gradient
        norm = torch.linalg.matrix_norm(X.double(), ord=2).item()
        return Result(
            x=self._public(X),
            value=final_value,
            status=status,
            message=message,
            iterations=self.iteration,
            evaluations=objective.count,
            time=objective.clock.seconds,
            gradient_norm=gradient_norm(X, gradient, self.problem.signs),
            residual=scaled_violation(X, self.problem.signs, self.gram, norm),
            history=self.history.arrays(),
        )

    # -- checkpoints

    def keep(self, folder: Path, identity: dict[str, str], interval: float) -> None:
        """Save into ``folder`` from now on, and go on from what is there."""
        self.folder, self.identity, self.interval = folder, identity, interval
        self.saved_at = clock_time.monotonic()
        found = checkpoints.load(folder, identity, self.start.device)
        if found is not None:
            self._restore(*found)

    def _save(self, force: bool = False) -> None:
        if self.folder is None or self.state is None:
            return
        if not force and clock_time.monotonic() - self.saved_at < self.interval:
            return
        if not self.state.whole:  # stopped inside an iteration: the last one that was saved stands
            return
        state = self.state
        tensors = {"X": state.X, "gradient": state.gradient}
        tensors |= {f"tensors.{name}": tensor for name, tensor in state.tensors.items()}
        numbers = {
            "value": state.value,
            "exact": state.exact,
            "stalled": state.stalled,
            "unbounded": state.unbounded,
            "numbers": state.numbers,
            "iteration": self.iteration,
            "count": self.problem.objective.count.as_dict(),
            "seconds": self.problem.objective.clock.seconds,
            "history": self.history.rows,
            "improvement": asdict(self.improvement),
            "rng": self.problem.rng.bit_generator.state,
        }
        checkpoints.save(self.folder, self.identity, tensors, numbers)
        self.saved_at = clock_time.monotonic()

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
        self.history = History(numbers["history"])
        self.improvement = Progress(**numbers["improvement"])
        objective = self.problem.objective
        objective.count = Evaluations(**numbers["count"])
        objective.clock = Clock(numbers["seconds"])
        self.problem.rng.bit_generator.state = numbers["rng"]
