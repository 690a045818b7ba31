"""What `minimize` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.solvers.loop.budget import Evaluations
from jorth.solvers.loop.status import Status

COLUMNS = (
    "time",
    "iteration",
    "value",
    "gradient_norm",
    "residual",
    "norm",
    *Evaluations().columns(),
)


@dataclass(frozen=True)
class Result:
    """The outcome of a run.

    Attributes:
        x: The point, of the kind, dtype and device of the start.
        value: f(x).
        status: Why the run ended.
        message: The same in words.
        iterations: Sweeps for Gauss-Seidel, gradient steps for all others.
        evaluations: Counts of value, gradient, sample_gradient, pair_updates: of all calls in the run, those that score
            a polished or a last point included.
        time: Seconds spent solving, without recording, callbacks and checkpoints.
        gradient_norm: ||skew(J G x^T)||_F.
        residual: max |x^T J x - J| / max(1, ||x||_2^2).
        violation: The same before polishing, for the methods that leave the constraint; for all others the residual.
        history: Arrays of equal length, one row a recorded iteration; ``norm`` is ||X||_2 to one per cent. Of a
            method that leaves the constraint value and gradient norm are those of the polished point, what x would
            be if the run ended there (NaN where it cannot be polished), and ``residual`` and
            ``norm`` are those of X before polishing.
        stages: The results of the methods of a chain, one after the other, or of runs from several starts;
            empty for a single run.
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

    @property
    def success(self) -> bool:
        """Whether a stopping criterion was met; a limit, Ctrl-C or a callback that stops a run is none."""
        return self.status is Status.CONVERGED


class History:
    """Rows of numbers while a run goes on. They are only added: rows once taken do not change."""

    def __init__(self, rows: NDArray[np.float64] | None = None) -> None:
        self._table = np.empty((0, len(COLUMNS))) if rows is None else rows
        self._count = len(self._table)

    @property
    def rows(self) -> NDArray[np.float64]:
        """The rows so far, not a copy."""
        return self._table[: self._count]

    def add(self, **row: float) -> None:
        """Append a row; every column must be given."""
        if self._count == len(self._table):
            room = np.empty((max(64, self._count), len(COLUMNS)))
            self._table = np.concatenate([self._table, room])
        self._table[self._count] = [row[name] for name in COLUMNS]
        self._count += 1

    def last(self, name: str, back: int = 1) -> float:
        """The value of a column ``back`` rows from the end."""
        return float(self.rows[-int(back), COLUMNS.index(name)])

    def __len__(self) -> int:
        return self._count

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The columns as arrays."""
        return {name: self.rows[:, column].copy() for column, name in enumerate(COLUMNS)}
