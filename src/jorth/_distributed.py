"""Several processes of `torch.distributed` that work on one problem: sums, agreement, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

T = TypeVar("T")
MARKS = 1021
"""The number of different marks, so small that their sum over 16,000 processes is exact."""


class RankLost(RuntimeError):
    """Another process of the job has ended, or has not answered within the group's time limit.

    >>> try:  # doctest: +SKIP
    ...     jorth.minimize(sharded, signature=sig, checkpoint="run")
    ... except jorth.RankLost:
    ...     sys.exit("start again: the run continues from its checkpoint")
    """


class Ranks:
    """The processes of a group (None: all), which must call the same methods in the same order.

    Sums are identical to the last bit on every process, and so is what is computed from them.
    """

    def __init__(self, group: Any = None, device: torch.device | str = "cpu") -> None:
        if not (distributed.is_available() and distributed.is_initialized()):
            raise RuntimeError(
                "torch.distributed must be initialised first: start the script with torchrun and "
                "call torch.distributed.init_process_group()"
            )
        self._own = group
        self._device = torch.device(device)
        self.rank = distributed.get_rank(self._group)
        self.size = distributed.get_world_size(self._group)

    @property
    def _group(self) -> Any:
        """The group of processes, looked up at each call.

        Whoever keeps that of all processes beyond `destroy_process_group` keeps its threads
        alive, and the process may abort at its end.
        """
        return distributed.group.WORLD if self._own is None else self._own

    @property
    def first(self) -> bool:
        """Return whether this is the process that writes files and shows progress."""
        return self.rank == 0

    def sum(self, tensors: Sequence[Tensor], *, same: Tensor | None = None) -> list[Tensor]:
        """Return the sums over all processes, by one all-reduce.

        A mark of ``same``, a small integer that depends on all its bits, is sent along, to check
        that it is equal on all processes.
        """
        mark = torch.zeros(1).to(tensors[0])
        if same is not None:
            integers = torch.int64 if same.element_size() == 8 else torch.int32
            mark[0] = same.detach().contiguous().view(integers).sum().remainder(MARKS)
        packed = torch.cat([tensor.detach().reshape(-1) for tensor in (*tensors, mark)])
        with self._detecting_loss():
            distributed.all_reduce(packed, group=self._group)
        if packed[-1] != self.size * mark:
            raise RuntimeError(
                f"the processes are at different points (seen by rank {self.rank}): they must run "
                "the same script with the same seeds, on the same kind of machine, with the same "
                "number of threads"
            )
        parts = torch.split(packed[:-1], [tensor.numel() for tensor in tensors])
        return [part.reshape(tensor.shape) for part, tensor in zip(parts, tensors, strict=True)]

    def largest(self, numbers: Sequence[float]) -> list[float]:
        """Return the maximum of each number over all processes."""
        packed = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        with self._detecting_loss():
            distributed.all_reduce(packed, distributed.ReduceOp.MAX, group=self._group)
        return [float(number) for number in packed.tolist()]

    def gather(self, mine: T) -> list[T]:
        """Return the values of all processes, ordered by rank."""
        found: list[Any] = [None] * self.size
        with self._detecting_loss():
            distributed.all_gather_object(found, mine, group=self._group)
        return found

    def from_first(self, make: Callable[[], T]) -> T:
        """Call ``make`` on the first process; all return its result or raise its error."""
        answer: list[Any] = [None, None]
        if self.first:
            try:
                answer[0] = make()
            except Exception as error:
                answer[1] = error
        with self._detecting_loss():
            group = self._group
            source = distributed.get_global_rank(group, 0)
            distributed.broadcast_object_list(answer, source, group=group, device=self._device)
        if answer[1] is not None:
            raise answer[1]
        made: T = answer[0]
        return made

    @contextmanager
    def _detecting_loss(self) -> Iterator[None]:
        """Raise `RankLost` for what torch.distributed raises when a process does not answer."""
        try:
            yield
        except RuntimeError as error:
            reason = str(error).strip().splitlines()[0].split(". ")[0]  # without the advice
            raise RankLost(
                f"rank {self.rank} of {self.size} can no longer reach the others; one of them has "
                f"ended or does not answer ({reason}); with checkpoint=... a job that is started "
                "again goes on where it was"
            ) from error
