"""The record of a run: its points as the user would get them, the history and the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import describe, unit_roundoff
from jorth.group import polish
from jorth.group.elements import scaled_violation, spectral_norm
from jorth.group.gradient import gradient_norm
from jorth.solvers.loop.budget import Evaluations, all_finite
from jorth.solvers.loop.scale import Scale, gradient_size
from jorth.solvers.loop.solver import AbstractSolver, Problem, Scored, State
from jorth.solvers.loop.status import Status

EVALUATIONS = tuple(Evaluations().columns())
COLUMNS = ("time", "iteration", "value", "gradient_norm", "residual", "norm", *EVALUATIONS)
SMALL = 64
"""The most rows for which a compiled look at a point is faster than one by torch."""
DRIFT = 1e3
"""After a long run a feasible point may violate the constraint by this many n u ||X||^2."""


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Attributes:
        x: The point, of the kind, dtype and device of the start.
        value: f(x).
        status: Why the run ended.
        message: The same as a sentence.
        iterations: Sweeps for Gauss-Seidel, gradient steps for all others.
        evaluations: The `Evaluations` of the run, including those that score a polished or last
            point.
        time: Seconds spent solving, without recording, callbacks and checkpoints.
        gradient_norm: ||skew(J G x^T)||_F.
        residual: max |x^T J x - J| / max(1, ||x||_2^2), with ||x||_2 to one per cent.
        violation: The same before polishing for methods that leave the constraint, else the
            residual.
        history: Arrays of equal length, one row per recorded iteration; ``norm`` is ||X||_2 to one
            per cent. For a method that leaves the constraint, value and gradient norm are those of
            the polished point, which x would be if the run ended there (NaN where it cannot be
            polished), and ``residual`` and ``norm`` are those of X before polishing.
        stages: The results of runs from several starts; empty for a single run.
        gradient_scale: The scale of the gradient, to which ``gradient_tolerance`` is relative.
        method: The name of the method that ran, such as "riemannian-lbfgs".
        bound: A lower bound on f over all feasible points, of `procrustes`; None where no bound is
            known.
        gap: (value - bound) / max(value, u f(0)), so that 0 means that no x is better; None where
            no bound is known.
    """

    x: Any
    value: float
    status: Status
    message: str
    iterations: int
    evaluations: Evaluations
    time: float
    gradient_norm: float
    residual: float
    violation: float
    history: dict[str, NDArray[np.float64]] = field(repr=False)
    stages: tuple[Result, ...] = field(default=(), repr=False)
    gradient_scale: float = math.nan
    method: str = ""
    bound: float | None = None
    gap: float | None = None

    @property
    def success(self) -> bool:
        """Whether a stopping criterion was met."""
        return self.status is Status.CONVERGED

    def __str__(self) -> str:
        """A few lines for `print`; `repr` has the numbers of x, too."""
        lines = {
            "status": f"{self.status.name}, {self.message}",
            "method": self.method,
            "value": f"{self.value:.10g}",
            "gradient norm": f"{self.gradient_norm:.3g}",
            "residual": f"{self.residual:.3g}",
            "iterations": f"{self.iterations} in {self.time:.3g} s",
            "x": describe(self.x),
        }
        if self.gap is not None:
            lines["gap"] = f"{self.gap:.3g}, no feasible x has a value below {self.bound:.10g}"
        return "\n".join(f"{name:<13}  {text}" for name, text in lines.items())


def best_of(runs: Sequence[Result]) -> Result:
    """Return the run with the lowest value, with the counts of all of them, which are its stages.

    It is not called converged if the last run was interrupted, or found the objective unbounded.
    """
    last = runs[-1]
    best = min(runs, key=lambda run: math.inf if math.isnan(run.value) else run.value)
    if last.status is Status.UNBOUNDED:
        best = last
    elif last.status is Status.INTERRUPTED:  # components without a run may hold something better
        best = replace(best, status=last.status, message=last.message)
    return replace(
        best,
        iterations=sum(run.iterations for run in runs),
        time=sum(run.time for run in runs),
        evaluations=sum((run.evaluations for run in runs), Evaluations()),
        stages=tuple(runs),
    )


class History:
    """The rows of a run so far. Rows are only added; at the end the last one is counted anew."""

    def __init__(self, rows: NDArray[np.float64] | None = None) -> None:
        self._table = np.empty((0, len(COLUMNS))) if rows is None else rows
        self._count = len(self._table)

    @property
    def rows(self) -> NDArray[np.float64]:
        return self._table[: self._count]

    def add(self, **row: float) -> None:
        """Append a row, with a value for every column."""
        self.extend(np.array([[row[name] for name in COLUMNS]]))

    def extend(self, rows: NDArray[np.float64]) -> None:
        """Append rows (t, columns)."""
        end = self._count + len(rows)
        if end > len(self._table):
            room = np.empty((max(64, end), len(COLUMNS)))
            self._table = np.concatenate([self._table, room])
        self._table[self._count : end] = rows
        self._count = end

    def last(self, name: str, back: int = 1) -> float:
        """The value of a column ``back`` rows from the end."""
        return float(self.rows[-int(back), COLUMNS.index(name)])

    def recount(self, count: Evaluations) -> None:
        """The counts of the last row, after f was looked at once more to say how a run ended."""
        if len(self):
            for name, number in count.columns().items():
                self.rows[-1, COLUMNS.index(name)] = number

    def __len__(self) -> int:
        return self._count

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        return {name: self.rows[:, column].copy() for column, name in enumerate(COLUMNS)}


def _small_norms(
    start: Tensor, signs: Tensor, gram: Tensor
) -> Callable[[Tensor, Tensor], tuple[float, float, float]] | None:
    """The compiled norms of a point X and its gradient, if X is small enough for it."""
    if start.device.type != "cpu" or len(start) > SMALL:
        return None
    from jorth.group._numba import point_norms

    s, target = _in_double(signs), _in_double(gram)
    return lambda X, G: point_norms(_in_double(X), _in_double(G), s, target)


def _in_double(M: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = M.detach().double().contiguous().numpy()
    return array


def drift(X: Tensor) -> float:
    """The scaled residual up to which X counts as feasible, after the rounding of a long run."""
    return DRIFT * len(X) * unit_roundoff(X)


class Record:
    """Scores the points of a run by the objective, and keeps its history.

    ``scored`` is the last point that could be scored, at iteration ``scored_at``. Scoring counts
    once per iteration, last at ``counted_at``, because a resumed run scores its last point again.
    """

    def __init__(self, problem: Problem, solver: AbstractSolver, start: Tensor) -> None:
        self.problem = problem
        self.method = solver.name
        self.feasible = solver.feasible
        self.history = History()
        thin = start.shape[1] < start.shape[0]
        signs = problem.signs
        self.gram = start.mT @ (signs[:, None] * start) if thin else torch.diag(signs)
        self._small = _small_norms(start, signs, self.gram)
        self.scored = Scored(start, math.nan, torch.full_like(start, math.nan), math.nan)
        self.scored_at = -1
        self.counted_at = -1

    def add(self, state: State, iteration: int) -> dict[str, float]:
        """Score the point and append a row."""
        norm, violation, slope = self._norms(state.X, state.gradient)
        point = self._score(state, violation, iteration)
        if point is not None:
            self.scored = point
            self.scored_at = iteration
            if not self.scale.stated:
                self.scale.raise_to(self._gradient_size(point, norm) * self.scale.unit)
            slope = slope * self.scale.unit if self.feasible else self.gradient_norm(point)
        row = {
            "time": self.problem.objective.clock.seconds,
            "iteration": float(iteration),
            "value": math.nan if point is None else point.value * self.scale.unit,
            "gradient_norm": math.nan if point is None else slope,
            "residual": violation,
            "norm": norm,
            **self.problem.objective.count.columns(),
        }
        self.history.add(**row)
        return row

    def add_passed(
        self, rows: NDArray[np.float64], value: float, iteration: int, began: float
    ) -> NDArray[np.float64]:
        """Append a row for each iteration of a `Burst` but the last, after which f is ``value``.

        Values are ``value`` plus the later decreases, so that they do not cancel. The times are
        spread evenly.
        """
        objective = self.problem.objective
        done = np.arange(1, len(rows))
        ended = np.array(list(objective.count.columns().values()))
        each = Evaluations(value=1, gradient=1, sample_gradient=objective.samples)
        one = np.array(list(each.columns().values()))  # what an iteration adds to the counts
        table = np.empty((len(done), len(COLUMNS)))
        table[:, 0] = began + done * (objective.clock.seconds - began) / len(rows)
        table[:, 1] = iteration + done
        table[:, 2] = (value + np.cumsum(rows[::-1, 0])[::-1][1:]) * self.scale.unit
        table[:, 3] = rows[:-1, 1] * self.scale.unit
        table[:, 4:6] = rows[:-1, 2:]
        table[:, 6:] = ended - (len(rows) - done)[:, None] * one
        self.history.extend(table)
        return table

    @property
    def small(self) -> bool:
        """Whether points are so small that compiled code looks at them."""
        return self._small is not None and self.feasible

    def _norms(self, X: Tensor, G: Tensor) -> tuple[float, float, float]:
        """||X||_2 to one per cent, the violation and the gradient norm."""
        if self._small is not None:
            return self._small(X, G)
        norm = spectral_norm(X)
        return norm, self.violation(X, norm), gradient_norm(X, G, self.problem.signs)

    def _gradient_size(self, point: Scored, norm: float) -> float:
        """||G X^T||_F / max(1, ||X||_2^2), in the unit of the run."""
        if self._small is None:
            return gradient_size(point.X, point.gradient, norm)
        from jorth.group import _numba

        size: float = _numba.gradient_size(_in_double(point.X), _in_double(point.gradient), norm)
        return size

    def _score(self, state: State, violation: float, iteration: int) -> Scored | None:
        """The point as the user would get it; None if it cannot be polished or evaluated."""
        if self.feasible:
            return Scored(state.X.clone(), state.value, state.gradient, violation)
        state.scored = None
        try:
            X = polish(state.X, self.problem.signature)
        except ValueError:  # not near a feasible point, or not finite
            return None
        value, gradient = self.evaluate(X, iteration)
        if all_finite(value, gradient):
            state.scored = Scored(X, value, gradient, violation)
        return state.scored

    @property
    def scale(self) -> Scale:
        """The size of the problem, which is known from the first evaluation on."""
        return self.problem.objective.scale or Scale()

    def evaluate(self, X: Tensor, iteration: int) -> tuple[float, Tensor]:
        """f and its gradient at X, counted unless this iteration was counted before."""
        objective = self.problem.objective
        before = replace(objective.count)
        value, gradient = objective.value_and_gradient_beyond_limits(X)
        if self.counted_at == iteration:
            objective.count = before
        self.counted_at = iteration
        return value, gradient

    def violation(self, X: Tensor, norm: float) -> float:
        """The scaled violation of the constraint, given ||X||_2."""
        return scaled_violation(X, self.problem.signs, self.gram, norm).item()

    def gradient_norm(self, point: Scored) -> float:
        """||skew(J G X^T)||_F, in the units of f."""
        if self._small is not None:
            return self._small(point.X, point.gradient)[2] * self.scale.unit
        return gradient_norm(point.X, point.gradient, self.problem.signs) * self.scale.unit

    def has(self, state: State, iteration: int) -> bool:
        """Whether the last row is that of this state; a step cut short may have moved X since."""
        if not len(self.history) or self.history.last("iteration") != iteration:
            return False
        return not self.feasible or self.history.last("value") == state.value * self.scale.unit

    def result(self, status: Status, message: str, iterations: int, *, numpy_out: bool) -> Result:
        """The result, with the last point that was scored."""
        point = self.scored
        if self.scored_at != iterations:
            at = max(self.scored_at, 0)
            message += f"; the last point cannot be polished or scored, x is that of iteration {at}"
        recorded = self.feasible and self.scored_at == self.history.last("iteration")
        if recorded:
            residual = self.history.last("residual")
            slope = self.history.last("gradient_norm")
        else:
            residual = self.violation(point.X, spectral_norm(point.X))
            slope = self.gradient_norm(point)
        if residual > drift(point.X):
            message += f"; rounding on a long path left a residual of {residual:.1g}: polish x"
        return Result(
            x=public(point.X, numpy_out=numpy_out),
            value=point.value * self.scale.unit,
            status=status,
            message=message,
            iterations=iterations,
            evaluations=self.problem.objective.count,
            time=self.problem.objective.clock.seconds,
            gradient_norm=slope,
            residual=residual,
            violation=residual if self.feasible else point.violation,
            history=self.history.arrays(),
            gradient_scale=self.scale.largest,
            method=self.method,
        )


def public(X: Tensor, *, numpy_out: bool) -> Any:
    """A copy of X for the user."""
    copy = X.detach().clone()
    return copy.cpu().numpy() if numpy_out else copy
