"""The result of a run, and the history from which it is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.lapack import dsyevd
from torch import Tensor

from jorth._inputs import describe, unit_roundoff
from jorth.group import polish
from jorth.solvers.problem import (
    AbstractSolver,
    Evaluations,
    Problem,
    ScoredPoint,
    State,
    Status,
    all_finite,
)
from jorth.solvers.stopping import Improvement

MOST_LIGHT = 4096
"""The most entries of a matrix that NumPy measures; it wakes no threads for them."""
COLUMNS = (
    *("time", "iteration", "value", "gradient_norm", "residual", "norm"),
    *("value_evaluations", "gradient_evaluations", "sample_gradient_evaluations"),
    *("pair_updates", "hessian_evaluations"),
)


@dataclass(frozen=True, repr=False)
class Result:
    """The outcome of a run.

    Attributes:
        x: The point, of the kind, dtype and device of the start.
        value: f(x).
        status: Why the run ended.
        message: The same as a sentence.
        iterations: Sweeps for Gauss-Seidel, gradient steps for all others.
        evaluations: The `Evaluations` of the run, with those that score polished or last points.
        time: Seconds spent solving, without recording, callbacks and checkpoints.
        gradient_norm: ||skew(J G x^T)||_F.
        residual: max |x^T J x - J| / max(1, ||x||_2^2), with ||x||_2 to 0.1 per cent.
        violation: The same before polishing for methods that leave the constraint, else the
            residual.
        history: Arrays of equal length, one row per recorded iteration; empty for `procrustes`.
            ``norm`` is ||X||_2 to 0.1 per cent. For a method that leaves the constraint, value and
            gradient norm are those of the polished point (NaN where X cannot be polished), and
            ``residual`` and ``norm`` are those of X before polishing.
        gradient_scale: The scale of the gradient, to which ``gradient_tolerance`` is relative.
        method: The name of the method that ran, such as "riemannian-lbfgs".
        bound: A lower bound on f over all feasible points, of `procrustes`; None if not known.
        gap: (value - bound) / max(value, u f(0)): 0 means that no x is better. None like ``bound``.

    >>> f, sig = jorth.HyperbolicEigenvalue(np.diag([1.0, 2.0, 3.0])), jorth.Signature(2, 1)
    >>> result = jorth.minimize(f, jorth.random_point(sig), signature=sig)
    >>> result.success, round(result.value, 6), len(result.history["value"]) > 1
    (True, 6.0, True)
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
    gradient_scale: float = math.nan
    method: str = ""
    bound: float | None = None
    gap: float | None = None

    @property
    def success(self) -> bool:
        """Whether a stopping criterion was met."""
        return self.status is Status.CONVERGED

    @property
    def fun(self) -> float:
        """``value``, by its name in SciPy."""
        return self.value

    @property
    def nit(self) -> int:
        """``iterations``, by its name in SciPy."""
        return self.iterations

    @property
    def nfev(self) -> int:
        """How often f was evaluated, with or without its gradient."""
        return max(self.evaluations.value, self.evaluations.gradient)

    def __repr__(self) -> str:
        """Return a few lines, without the numbers of x."""
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


def feasibility_limit(X: Tensor) -> float:
    """Return the scaled residual up to which X counts as feasible: the rounding of a long run."""
    return 1e3 * X.shape[-2] * unit_roundoff(X)


def public(X: Tensor, *, numpy_out: bool) -> Any:
    """Return a copy of X for the user."""
    copy = X.detach().clone()
    return copy.cpu().numpy() if numpy_out else copy


def spectral_norm(X: Any, *, dense: int = 100) -> float:
    """Return ||X||_2 of a tensor or a small array (n, k) to 0.1 per cent, the same each time.

    It is the root of the largest eigenvalue of X^T X or X X^T: for few rows or columns of the whole
    matrix, to rounding, and otherwise by ARPACK, from products with X on its device.
    """
    largest = float(abs(X).max()) if 0 not in X.shape else 0.0
    if not 0 < largest < math.inf:
        return largest
    x = X if X.shape[0] >= X.shape[1] else X.T
    x = x / largest  # no square over- or underflows
    columns = x.shape[1]
    if columns <= dense:
        gram = x.T @ x
        gram = gram.double().cpu().numpy() if isinstance(gram, Tensor) else gram
        return largest * math.sqrt(float(dsyevd(gram, compute_v=0)[0][-1]))
    from scipy.sparse.linalg import LinearOperator, eigsh

    def product(v: Any) -> Any:
        vector = torch.from_numpy(v).to(x)
        return (x.T @ (x @ vector)).cpu().numpy()

    start = np.random.default_rng(0).standard_normal(columns)
    gram_map = LinearOperator((columns, columns), product, dtype=np.float64)
    squares = eigsh(gram_map, 1, tol=1e-3, v0=start, return_eigenvectors=False)
    return largest * math.sqrt(float(squares[0]))


class Norms(NamedTuple):
    """Norms of a point and of the gradient there, these in the unit of the run."""

    of_x: float
    """||X||_2 to 0.1 per cent."""
    violation: float
    """max |X^T J X - J| / max(1, ||X||_2^2)."""
    gradient_norm: float
    """||skew(J G X^T)||_F."""
    gradient_size: float
    """||G X^T||_F / max(1, ||X||_2^2); NaN where nobody needs it."""


class History:
    """The recorded iterations of a run, whose points are scored by the objective.

    ``rows`` has a list for each, see `COLUMNS`. ``value``, ``gradient_norm`` and
    ``gradient_scale``, in the units of f, are those of the last point, and NaN where f is not
    known. ``point`` is the last one that could be scored, at the iteration ``scored_at``; the last
    row is that of ``recorded_at``.
    """

    def __init__(self, problem: Problem, start: Tensor, *, feasible: bool) -> None:
        self.problem = problem
        self.feasible = feasible
        self.rows: list[list[float]] = []
        self.iteration = 0
        self.value = self.gradient_norm = math.nan
        self.gradient_scale = 0.0
        self.improvement = Improvement()
        self._eps = 2 * unit_roundoff(start)
        self._light = start.device.type == "cpu" and start.numel() <= MOST_LIGHT
        signs = problem.signs
        thin = start.shape[1] < start.shape[0]
        self.gram: Any = start.mT @ (signs[:, None] * start) if thin else torch.diag(signs)
        self._column: Any = signs[:, None]
        fewer, more = sorted((problem.signature.positive, problem.signature.negative), key=len)
        self._across: Any = more[:, None], fewer
        if self._light:
            self._column, self.gram = self._column.numpy(), self.gram.numpy()
        else:
            self._across = tuple(torch.tensor(at, device=start.device) for at in self._across)
        self.point = ScoredPoint(start, math.nan, torch.full_like(start, math.nan), math.nan)
        self.norms_of_point = Norms(math.nan, math.nan, math.nan, math.nan)
        self.scored_at = self.recorded_at = -1

    def record(self, state: State) -> dict[str, float]:
        """Score the point of the state and append a row."""
        objective = self.problem.objective
        norms = self.norms(state.X, state.gradient)
        residual, norm = norms.violation, norms.of_x
        point: ScoredPoint | None = None
        if self.feasible:
            point = ScoredPoint(state.X.clone(), state.value, state.gradient, residual)
        else:
            point = state.scored = self._polished(state.X, residual)
            norms = norms if point is None else self.norms(point.X, point.gradient)
        self.value = self.gradient_norm = math.nan
        if point is not None:
            self.point, self.norms_of_point, self.scored_at = point, norms, self.iteration
            size = norms.gradient_size * objective.unit
            if not objective.scale_is_known and objective.scale < size < math.inf:
                objective.scale = size
            self.value = objective.unit * point.value
            self.gradient_norm = objective.unit * norms.gradient_norm
        self.gradient_scale = objective.scale
        row = [objective.clock.seconds, float(self.iteration), self.value, self.gradient_norm]
        row += [residual, norm, *map(float, vars(objective.count).values())]
        self.rows.append(row)
        self.recorded_at = self.iteration
        self.improvement.update(self.value, self.gradient_norm, self._eps)
        return dict(zip(COLUMNS, row, strict=True))

    def norms(self, X: Tensor, G: Tensor) -> Norms:
        """Measure a point and the gradient there; no square over- or underflows."""
        x: Any = X.numpy() if self._light else X
        g: Any = G.numpy() if self._light else G
        largest, slope = float(abs(x).max()), float(abs(g).max())
        if not largest < math.inf:
            return Norms(largest, math.nan, math.nan, math.nan)
        scale = max(largest, 1.0)
        x, s = x / scale, self._column
        defect = float(abs(x.T @ (s * x) - self.gram / scale / scale).max())
        norm = math.nan
        if len(x) == x.shape[1]:  # if X is feasible, its norm is that of a boost
            norm = math.hypot(1 / scale, across := spectral_norm(x[self._across])) + across
        if not len(x) * defect <= 1e-3 * norm**2:
            norm = spectral_norm(x)
        size, divisor = slope, max(norm, 1 / scale)
        if 0 < slope < math.inf:
            M = s * ((g / slope) @ x.T)
            of_m, of_skew = (math.sqrt(N.ravel() @ N.ravel()) for N in (M, M - M.T))
            size *= of_m / divisor / divisor / scale
            slope *= of_skew / 2 * scale
        return Norms(scale * norm, defect / divisor / divisor, slope, size)

    def _polished(self, X: Tensor, violation: float) -> ScoredPoint | None:
        """Return the point as the user would get it; None if it cannot be polished or evaluated."""
        try:
            X = polish(X, self.problem.signature)
        except ValueError:  # not near a feasible point, or not finite
            return None
        value, gradient = self.problem.objective.value_and_gradient(X, limited=False)
        return ScoredPoint(X, value, gradient, violation) if all_finite(value, gradient) else None

    @property
    def time(self) -> float:
        """Return seconds spent solving, the same in all processes of a job."""
        return self.problem.objective.clock.seconds

    def last(self, name: str, back: int = 1) -> float:
        """Return the value of a column ``back`` rows from the end."""
        return self.rows[-back][COLUMNS.index(name)]

    def result(
        self, status: Status, reason: str, solver: AbstractSolver, last: State | None, *,
        numpy_out: bool,
    ) -> Result:  # fmt: skip
        """Return the result at the last point, or if not CONVERGED at the solver's best."""
        objective, state, feasible = self.problem.objective, last, self.feasible
        if state is None or not state.exact:
            X = self.point.X if state is None else state.X
            value, gradient = math.nan, torch.full_like(X, math.nan)
            if feasible:
                value, gradient = objective.value_and_gradient(X, limited=False)
            state = State(X, value, gradient)
        if last is not None and status is not Status.CONVERGED:
            state = solver.choose_result(last, state)
        recorded = self.recorded_at == self.iteration
        if recorded and feasible:  # a step cut short may have moved X since
            recorded = self.rows[-1][2] == state.value * objective.unit
        if self.rows and feasible and not all_finite(state.value, state.gradient):
            status, reason = Status.NON_FINITE, ""
        elif not recorded:
            self.record(state)
        # f may have been looked at once more, to say how the run ended
        self.rows[-1][-5:] = map(float, vars(objective.count).values())
        message = f"{status.value}: {reason}" if reason else status.value
        if self.scored_at != self.iteration:
            at = max(self.scored_at, 0)
            message += f"; the last point cannot be polished or scored, x is that of iteration {at}"
        point, (_, residual, slope, _) = self.point, self.norms_of_point
        if residual > feasibility_limit(point.X):
            message += f"; rounding on a long path left a residual of {residual:.1g}: polish x"
        return Result(
            x=public(point.X, numpy_out=numpy_out),
            value=point.value * objective.unit,
            status=status,
            message=message,
            iterations=self.iteration,
            evaluations=objective.count,
            time=objective.clock.seconds,
            gradient_norm=slope * objective.unit,
            residual=residual,
            violation=residual if self.feasible else point.violation,
            history=dict(zip(COLUMNS, np.array(self.rows).T.copy(), strict=True)),
            gradient_scale=self.gradient_scale,
            method=solver.name if last is None else solver.taken(last)[0],
        )
