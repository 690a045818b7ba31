"""Counts of matrices that a step did not move, collected without waiting for a device."""

from __future__ import annotations

import torch
from torch import Tensor


class UnmovedCounts:
    """The counts of one batch of parameters: gradients that are not finite, steps too far.

    On a CUDA device they grow with the steps, and are copied to the host when it gets there: the
    numbers, and the warning, come some steps later.

    Attributes:
        totals: (2,), int64, on the device; steps add to it.
    """

    def __init__(self, device: torch.device) -> None:
        self.totals = torch.zeros(2, dtype=torch.int64, device=device)
        pinned = device.type == "cuda"
        self._arrived = torch.zeros(2, dtype=torch.int64, device="cpu", pin_memory=pinned)
        self._known = [0, 0]
        self._event: torch.cuda.Event | None = None
        self._steps = 0

    def add(self, finite: Tensor, far: Tensor) -> None:
        """Count after a step, from masks (b,)."""
        if self.totals.is_cuda or not bool(finite.all()) or bool(far.any()):
            self.totals += torch.stack([(~finite).sum(), far.sum()])

    def ask(self) -> None:
        """After a step have the totals copied to the host, unless that is under way.

        On a device it is done after the first two steps, and after every 16th from then on.
        """
        self._steps += 1
        if (
            self.totals.is_cuda
            and self._event is None
            and (self._steps < 3 or self._steps % 16 == 0)
        ):
            self._copy()

    def _copy(self) -> None:
        if not torch.cuda.is_current_stream_capturing():
            self._arrived.copy_(self.totals, non_blocking=True)
            self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._event.record()

    def news(self) -> list[int]:
        """What has been counted since the last news, as far as it has arrived."""
        if not self.totals.is_cuda:
            return self.latest()
        if not self._has_arrived():
            return [0, 0]
        self._event = None
        return self._since(self._arrived.tolist())

    def latest(self) -> list[int]:
        """All that has been counted since the last news; waits for the device."""
        self._event = None
        return self._since(self.totals.tolist())

    def _since(self, arrived: list[int]) -> list[int]:
        news = [total - known for total, known in zip(arrived, self._known, strict=True)]
        self._known = arrived
        return news

    def _has_arrived(self) -> bool:
        if self._event is None or torch.cuda.is_current_stream_capturing():
            return False
        return bool(self._event.query())  # type: ignore[no-untyped-call]
