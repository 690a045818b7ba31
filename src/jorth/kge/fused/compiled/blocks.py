"""The fused loss of a batch on the CPU, block by block, by compiled code alone.

The scores of a block stay in the cache. The rows of the batch are shared among as many threads as
torch uses, each with sums of its own, which are added in order: the result has the same bits
whenever the number of threads is the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.compiling import compiler
from jorth.kge.fused.compiled.products import TILE, add_inner_products, add_product
from jorth.kge.fused.compiled.rows import Lists, Scores, soften
from jorth.kge.fused.gradients import Gradients
from jorth.kge.fused.left_out import LeftOut

CACHE = 2**17
"""How many bytes the scores of a block take, if it can have `FEWEST_ROWS`."""
FEWEST_ROWS = 8
THREAD_ROWS = 64
"""So many rows of a batch are worth another thread."""


class Rows(NamedTuple):
    """What a thread reads, and the slopes of the loss in it; n and B are filled up with zeros.

    Attributes:
        signed: (B, n).
        across: (n, k), the transpose of the candidates.
        truth: (B,).
        signed_slopes: (B, n), added to.
        truth_slopes: (B,), written.
        across_slopes: (n, k), added to.
        bias_slopes: (k,), added to.
    """

    signed: NDArray[Any]
    across: NDArray[Any]
    truth: NDArray[Any]
    signed_slopes: NDArray[Any]
    truth_slopes: NDArray[Any]
    across_slopes: NDArray[Any]
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
    count, n = signed.shape
    threads = max(1, min(torch.get_num_threads(), count // THREAD_ROWS))
    ours, across = _filled(signed), _filled(candidates.mT, rows_only=True)
    signed_slopes, truth_slopes = torch.zeros_like(ours), torch.empty_like(truth)
    across_slopes = across.new_zeros(threads, *across.shape)
    bias_slopes = bias.new_zeros(threads, len(bias))
    weight = 1 / max(1, count)
    scores = Scores(_array(bias), _array(area.to(truth).reshape(1)), float(smoothing), weight)
    lists = _lists(left_out)
    size = max(FEWEST_ROWS, CACHE // max(1, len(bias) * bias.element_size()) // TILE * TILE)
    shared = (ours, across, truth, signed_slopes, truth_slopes)

    def part(thread: int, edges: tuple[int, int]) -> tuple[float, float]:
        own = (*shared, across_slopes[thread], bias_slopes[thread])
        rows = Rows(*(_array(part) for part in own))
        return soften_rows(rows, scores, lists, *edges, size)

    tiles = -(-count // TILE)
    edges = list(pairwise(TILE * (tiles * thread // threads) for thread in range(threads + 1)))
    if threads == 1:
        sums = [part(0, edges[0])]
    else:
        with ThreadPoolExecutor(threads) as pool:
            sums = list(pool.map(part, range(threads), edges))
    loss, area_slope = torch.tensor(sums, dtype=torch.float64).sum(0).to(truth)
    candidate_slopes = across_slopes.sum(0)[:n].mT
    slopes = (candidate_slopes, bias_slopes.sum(0), truth_slopes, area_slope)
    return loss, Gradients(signed_slopes[:count, :n], *slopes)


@compiler(nogil=True)
def soften_rows(
    rows: Rows, scores: Scores, lists: Lists, first: int, last: int, size: int
) -> tuple[float, float]:
    """The part of the loss, and of its slope in the area, of rows from ``first`` to ``last``.

    All slopes are added to those in ``rows``; a block has ``size`` rows.
    """
    G = np.empty((size, rows.across.shape[1]), dtype=rows.across.dtype)
    loss, area_slope = 0.0, 0.0
    for start in range(first, last, size):
        stop = min(start + size, last)
        block = rows.signed[start:stop]
        g = G[: stop - start]
        g[:] = 0.0
        add_product(block, rows.across, g)
        true = min(stop, rows.truth.shape[0])  # what follows is filled up with zeros
        listed = Lists(lists.first[start:true], lists.last[start:true], lists.answers, lists.column)
        sums = soften(
            g[: true - start], rows.truth[start:true], scores, listed,
            rows.bias_slopes, rows.truth_slopes[start:true],
        )  # fmt: skip
        loss += sums[0]
        area_slope += sums[1]
        add_inner_products(g, rows.across, rows.signed_slopes[start:stop])
        add_product(block.T, g, rows.across_slopes)
    return loss, area_slope


def _filled(matrix: Tensor, rows_only: bool = False) -> Tensor:
    """The matrix with rows and columns of zeros, up to multiples of `TILE`."""
    height, width = (-(-length // TILE) * TILE for length in matrix.shape)
    filled = matrix.new_zeros(height, matrix.shape[1] if rows_only else width)
    filled[: matrix.shape[0], : matrix.shape[1]] = matrix
    return filled


def _lists(left_out: LeftOut | None) -> Lists:
    if left_out is None:
        return Lists(*[np.zeros(0, dtype=np.int64)] * 4)
    return Lists(*map(_array, left_out))


def _array(tensor: Tensor) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().contiguous().numpy()
    return array
