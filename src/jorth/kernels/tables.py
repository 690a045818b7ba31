"""Pairings as a device reads them: the partner of every index, an index that rests being its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class RoundTables(NamedTuple):
    """Of r rounds: the two indices of every pair (r, ceil(n / 2)) and every index's partner (r, n), all int32."""

    first: Tensor
    second: Tensor
    partner: Tensor


def tournament_rounds(n: int, turns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rounds of `jorth.plane.tournament` with these numbers, as partners (r, n), without the whole table.

    The partners of neighbours are neighbours: partner(c) = s - c modulo n - 1, so that a device reads the partners'
    columns as fast as the columns themselves.
    """
    modulus = n - 1 + n % 2
    table = np.empty((len(turns), n), dtype=np.int64)
    own = np.arange(modulus)
    sums = (modulus - 2 - 2 * np.asarray(turns)) % modulus
    table[:, :modulus] = (sums[:, None] - own) % modulus
    if n % 2 == 0:  # the one that would meet itself meets the last
        alone = np.argmax(table[:, :modulus] == own, axis=1)
        table[np.arange(len(turns)), alone] = n - 1
        table[:, n - 1] = alone
    return table


def partners(n: int, rounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The partners (r, n) of rounds of disjoint pairs (r, m, 2)."""
    table = np.tile(np.arange(n), (len(rounds), 1))
    turn = np.arange(len(rounds))[:, None]
    table[turn, rounds[:, :, 0]] = rounds[:, :, 1]
    table[turn, rounds[:, :, 1]] = rounds[:, :, 0]
    return table


def round_tables(partner: NDArray[np.int64], device: torch.device) -> RoundTables:
    """The tables on a device, uploaded without waiting for it."""
    own = np.arange(partner.shape[1])
    first = np.broadcast_to(own, partner.shape)[own <= partner].reshape(len(partner), -1)
    second = np.take_along_axis(partner, first, axis=1)
    return RoundTables(*(_upload(table, device) for table in (first, second, partner)))


def _upload(table: NDArray[np.int64], device: torch.device) -> Tensor:
    tensor = torch.from_numpy(table.astype(np.int32))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
