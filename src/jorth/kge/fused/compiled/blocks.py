"""The fused loss of a batch on the CPU: matrix products of torch, and compiled code in between.

A block has so many rows that its scores stay in the cache. Its rows are shared among as many
threads as torch uses, and their sums are added in order: the result has the same bits whenever the
number of threads is the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kge.fused.compiled.rows import Lists, Scores, soften
from jorth.kge.fused.gradients import Gradients
from jorth.kge.fused.left_out import LeftOut

CACHE = 2**18
"""How many bytes the scores of a block take, for each thread."""
FEWEST_ROWS = 8
"""Of a block, for each thread: matrix products with fewer rows are slow."""


class _Rows(NamedTuple):
    """What the compiled code reads and writes beside the matrix of a block.

    Attributes:
        truth: (B,).
        scores: What all rows share.
        lists: What each row leaves out.
        truth_slopes: (B,), written.
        bias_slopes: (threads, k), added to by each thread on its own.
    """

    truth: NDArray[Any]
    scores: Scores
    lists: Lists
    truth_slopes: NDArray[Any]
    bias_slopes: NDArray[Any]


def by_blocks(
    signed: Tensor,
    candidates: Tensor,
    bias: Tensor,
    truth: Tensor,
    area: Tensor,
    smoothing: float,
    left_out: LeftOut | None,
) -> tuple[Tensor, Gradients]:
    """The loss of `jorth.kge.fused.distance_softmax` with its gradients."""
    across = candidates.mT.contiguous()
    signed_slopes, across_slopes = torch.empty_like(signed), torch.zeros_like(across)
    truth_slopes = torch.empty_like(truth)
    threads = torch.get_num_threads()
    bias_slopes = bias.new_zeros(threads, len(bias))
    shared = (_array(bias), _array(area.to(truth).reshape(1)))
    rows = _Rows(
        _array(truth),
        Scores(*shared, float(smoothing), 1 / max(1, len(truth))),
        _lists(left_out),
        _array(truth_slopes),
        _array(bias_slopes),
    )
    size = threads * max(FEWEST_ROWS, CACHE // max(1, len(bias) * bias.element_size()))
    G = signed.new_empty(min(size, len(signed)), len(bias))
    sums = np.zeros(2)
    with ThreadPoolExecutor(threads) as pool:  # which starts no thread before it has work
        for start in range(0, len(signed), size):
            own = signed[start : start + size]
            g = G[: len(own)]
            torch.mm(own, across, out=g)
            sums += _soften(_array(g), start, rows, pool)
            torch.mm(g, candidates, out=signed_slopes[start : start + size])
            across_slopes.addmm_(own.mT, g)
    loss, area_slope = torch.from_numpy(sums).to(truth)
    slopes = (signed_slopes, across_slopes.mT, bias_slopes.sum(0), truth_slopes, area_slope)
    return loss, Gradients(*slopes)


def _soften(
    g: NDArray[Any], start: int, rows: _Rows, pool: ThreadPoolExecutor
) -> NDArray[np.float64]:
    """`jorth.kge.fused.compiled.rows.soften` on a block of rows from ``start`` on."""

    def part(thread: int, first: int, last: int) -> tuple[float, float]:
        own = slice(start + first, start + last)
        lists = rows.lists._replace(first=rows.lists.first[own], last=rows.lists.last[own])
        slopes = (rows.bias_slopes[thread], rows.truth_slopes[own])
        return soften(g[first:last], rows.truth[own], rows.scores, lists, *slopes)

    threads = len(rows.bias_slopes)
    if threads == 1:
        return np.array(part(0, 0, len(g)))
    edges = pairwise(len(g) * thread // threads for thread in range(threads + 1))
    parts = [pool.submit(part, thread, *edge) for thread, edge in enumerate(edges)]
    total: NDArray[np.float64] = np.sum([future.result() for future in parts], axis=0)
    return total


def _lists(left_out: LeftOut | None) -> Lists:
    if left_out is None:
        return Lists(*[np.zeros(0, dtype=np.int64)] * 4)
    return Lists(*map(_array, left_out))


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array
