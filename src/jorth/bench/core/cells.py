"""The base class of cells, which describe one run each, and what several kinds share."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

GAPS = (1e-2, 1e-4, 1e-8)
"""The relative gaps (f - optimum) / (f(X0) - optimum) whose times are recorded."""
CellT = TypeVar("CellT", bound="Cell")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Everything that determines a run except the machine; each kind adds its own fields."""

    problem: str
    method: str
    seed: int = 0

    @property
    def key(self) -> str:
        """All fields in a fixed order, by which a finished run is recognised."""
        return json.dumps(self.record(), sort_keys=True)

    def record(self) -> dict[str, Any]:
        """The fields as they are stored in a row."""
        return asdict(self)

    @property
    def size(self) -> str:
        """A short name of the problem and its size."""
        raise NotImplementedError

    @classmethod
    def from_json(cls: type[CellT], fields: dict[str, Any]) -> CellT:
        return cls(**fields)


def plus_signs(n: int, share: float) -> int:
    """The number of plus signs for a share p / n, with at least one of each sign."""
    return min(max(round(share * n), 1), n - 1)
