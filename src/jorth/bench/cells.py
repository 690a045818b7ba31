"""A cell: everything that decides a run but the machine."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["race", "trace", "procrustes", "probe"]

_OF_A_RUN = ("method", "theta", "max_time", "max_evaluations")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a benchmark.

    Attributes:
        problem: "race" is the paper's unbounded min -tr(X^T D^T D X); "trace" the well-posed
            min tr(X^T (D^T D + ridge I) X); "procrustes" a planted noisy Procrustes problem; "probe" the structural
            probe of the Euclidean distances of the rows, transform then lift.
        data: The name of the data.
        m: Rows of the data.
        n: Columns of the data, the size of X.
        p: The number of plus signs.
        method: A name of `jorth.bench.methods`.
        seed: Of the subset, the start and the method; of "probe" of the last two, so that all seeds have one data set.
        theta: Of the JOBCD methods in the race, in units of the curvature of f; None for the others.
        ridge: Of "trace", in units of the mean eigenvalue of D^T D; of "probe" as it is.
        condition: Of the source of "procrustes".
        alpha: Of "probe", the radius of the pseudo-hyperboloid.
        scale: Of "probe", the factor on the distances or "fit".
        max_time: Seconds of solving, or None.
        max_evaluations: Gradients, or None.
    """

    problem: Kind
    data: str
    m: int
    n: int
    p: int
    method: str
    seed: int = 0
    theta: float | None = None
    ridge: float | None = None
    condition: float | None = None
    alpha: float | None = None
    scale: float | Literal["fit"] | None = None
    max_time: float | None = None
    max_evaluations: int | None = None

    @property
    def key(self) -> str:
        """What a finished run is known by: all fields, in a fixed order."""
        return json.dumps(asdict(self), sort_keys=True)

    @property
    def problem_key(self) -> str:
        """What cells with the same matrix, start and optimum share."""
        fields = asdict(self)
        return json.dumps({name: value for name, value in fields.items() if name not in _OF_A_RUN})

    @property
    def family_key(self) -> str:
        """What the cells of one problem and one budget share over all seeds and methods."""
        fields = asdict(self)
        return json.dumps(
            {
                name: value
                for name, value in fields.items()
                if name not in ("seed", "method", "theta")
            }
        )

    @property
    def data_seed(self) -> int:
        """Of the subset."""
        return 0 if self.problem == "probe" else self.seed

    @property
    def size(self) -> str:
        """The data and its size as in the paper: name(m-n-p)."""
        return f"{self.data}({self.m}-{self.n}-{self.p})"

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Cell:
        """The cell of a row."""
        return Cell(**fields)
