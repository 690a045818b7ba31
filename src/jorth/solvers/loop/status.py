"""How a run ended; the value of a status is its message."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why `minimize` stopped."""

    CONVERGED = "a stopping criterion was met"
    MAX_ITERATIONS = "the limit on iterations was reached"
    MAX_TIME = "the limit on time was reached"
    MAX_EVALUATIONS = "the limit on evaluations was reached"
    STALLED = "the method gets no further"
    NOT_ATTAINED = "the infimum is not attained: f levels off as ||X|| grows without bound"
    UNBOUNDED = "the objective is unbounded below on the feasible set"
    NON_FINITE = "the objective returned NaN or infinity; x is the last good point"
    INTERRUPTED = "interrupted; x is the last complete point"


class StopRun(Exception):
    """Raised inside a step to end the run at once; the state is valid."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status
