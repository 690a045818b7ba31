"""Steps on a CUDA device replayed from a CUDA graph: one launch instead of a hundred."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.kge.batches import Batch
from jorth.optim.rounds import codes_of_turn, given_codes

PLAIN_STEPS = 2
"""Steps before one is captured: they compile kernels and start what optimisers remember."""


class CapturedStep:
    """A step on a batch, captured in a CUDA graph and replayed on others of the same shape.

    The step may not wait for the device. What changes from step to step is copied to where the
    graph reads it: the batch, in which all is that is random, and the pairs of J-JOBCD; learning
    rates have to be on the device. Batches of another shape than the first take plain steps.

    Args:
        step: A function that takes a step on a batch and returns the loss before it.
        group: The parameter group of the optimiser of the relations.
    """

    def __init__(self, step: Callable[[Batch], Tensor], group: dict[str, Any]) -> None:
        self._step = step
        self._group = group
        self._plain_steps = 0
        self._fails = False
        self._batch: Batch | None = None
        self._captured: _Captured | None = None

    def __call__(self, batch: Batch) -> Tensor:
        """Take a step; the loss that it returns is overwritten by the next one."""
        if self._batch is None:
            self._batch = _clone(batch)
        if self._fails or _shapes(batch) != _shapes(self._batch):
            return self._step(batch)
        if self._plain_steps < PLAIN_STEPS:
            self._plain_steps += 1
            return self._step(batch)
        codes = codes_of_turn(self._group, batch.queries.device)
        if self._captured is None:
            self._captured = self._try_to_capture(self._batch, codes.clone())
        if self._captured is None:
            return self._step(batch)
        _copy(batch, self._batch)
        self._captured.codes.copy_(codes)
        self._captured.graph.replay()
        self._group["turn"] += 1
        return self._captured.loss

    def _try_to_capture(self, batch: Batch, codes: Tensor) -> _Captured | None:
        """The captured step, or None and a warning if it cannot be captured."""
        turn, stream = self._group["turn"], torch.cuda.current_stream()
        try:
            return _capture(self._step, batch, codes)
        except RuntimeError as error:
            self._fails = True
            torch.cuda.set_stream(stream)  # torch may have left that of the capture
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            text = f"steps cannot be captured in a CUDA graph and are launched one by one: {reason}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)
            return None
        finally:
            self._group["turn"] = turn  # captured, but not taken yet


class _Captured(NamedTuple):
    """A graph, where it reads the pairs, and where it leaves the loss."""

    graph: torch.cuda.CUDAGraph
    codes: Tensor
    loss: Tensor


def _capture(step: Callable[[Batch], Tensor], batch: Batch, codes: Tensor) -> _Captured:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"), given_codes(codes):
        loss = step(batch)
    return _Captured(graph, codes, loss)


def _clone(batch: Batch) -> Batch:
    copies: dict[str, Any] = dict(vars(batch))
    for name, part in copies.items():
        copies[name] = part if part is None else part.clone()
    return Batch(**copies)


def _copy(batch: Batch, into: Batch) -> None:
    for name, part in vars(batch).items():
        if part is not None:
            getattr(into, name).copy_(part)


def _shapes(batch: Batch) -> list[torch.Size | None]:
    return [part if part is None else part.shape for part in vars(batch).values()]
