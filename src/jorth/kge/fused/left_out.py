"""Which candidates do not compete with the true answers of a batch: lists, not a mask."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class LeftOut(NamedTuple):
    """Row i must not compete with the entities ``answers[first[i] : last[i]]``.

    Attributes:
        first: (B,), where the list of each row starts.
        last: (B,), where it ends.
        answers: (M,), entities, those of a list all different.
        column: (entities,), the column of each entity among the candidates, -1 if it is none.
    """

    first: Tensor
    last: Tensor
    answers: Tensor
    column: Tensor

    def places(self) -> tuple[Tensor, Tensor]:
        """The rows and columns of all scores that are left out; the host waits for their number."""
        count = self.last - self.first
        device = count.device
        rows = torch.repeat_interleave(torch.arange(len(count), device=device), count)
        within = torch.arange(len(rows), device=device) - (count.cumsum(0) - count)[rows]
        columns = self.column[self.answers[self.first[rows] + within]]
        candidates = columns >= 0
        return rows[candidates], columns[candidates]
