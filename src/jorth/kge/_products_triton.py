"""`jorth.kge.products.multiply` on a CUDA device, by Triton: no matrix is copied."""

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 32
ENOUGH_PROGRAMS = 2048
"""Points are split, for sums of outer products, unless there are so many matrices."""


def multiply(matrices: Tensor, index: Tensor, points: Tensor) -> Tensor:
    """Return M_i x_i (B, n) for the matrices M (m, n, n), an index (B,) and points x (B, n)."""
    return apply_matrices(matrices, index, points, transposed=False)


def multiply_back(
    matrices: Tensor, index: Tensor, points: Tensor, slopes: Tensor, wanted: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return the slopes in the matrices and in the points, those that are wanted."""
    of_matrices = outer_products(index, slopes, points, len(matrices)) if wanted[0] else None
    of_points = apply_matrices(matrices, index, slopes, transposed=True) if wanted[1] else None
    return of_matrices, of_points


def apply_matrices(matrices: Tensor, index: Tensor, points: Tensor, *, transposed: bool) -> Tensor:
    """The products (B, n) with the chosen matrices or with their transposes."""
    B, n = points.shape
    product, rows = torch.empty_like(points), triton.next_power_of_2(n)
    move_points[(B,)](
        matrices, index, points, product, n,
        TRANSPOSED=transposed, N=rows, num_warps=max(1, rows // 16),
    )  # fmt: skip
    return product


def outer_products(index: Tensor, left: Tensor, right: Tensor, count: int) -> Tensor:
    """The sums (count, n, n) of left_i right_i^T over the points i of each matrix."""
    B, n = left.shape
    parts = max(1, min(ENOUGH_PROGRAMS // count, -(-B // (4 * BLOCK))))
    sums = left.new_empty((parts, count, n, n))
    sum_outer_products[(count, parts)](
        index, left, right, sums, B, -(-B // parts), n,
        N=max(triton.next_power_of_2(n), 16), BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
    return sums.sum(0)


@triton.jit
def move_points(matrices, index, points, moved, n, TRANSPOSED: tl.constexpr, N: tl.constexpr):
    """moved = R x, or R^T x, for each point x and its matrix R; one program per point."""
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, N)
    inside = (d < n)[:, None] & (d < n)[None, :]
    at = tl.load(index + row) * n * n + d[:, None] * n + d[None, :]
    R = tl.load(matrices + at, mask=inside, other=0.0)
    x = tl.load(points + row * n + d, mask=d < n, other=0.0)
    if TRANSPOSED:
        y = tl.sum(R * x[:, None], 0)
    else:
        y = tl.sum(R * x[None, :], 1)
    tl.store(moved + row * n + d, y, mask=d < n)


@triton.jit(do_not_specialize=["B", "size"])
def sum_outer_products(
    index, left, right, sums, B, size, n, N: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """sums[part, m] = sum of left_i right_i^T over the points i of matrix m in a part of all.

    A program goes through the indices of its part, of ``size`` points, and reads the points of its
    own matrix alone. The order of the sum is fixed.
    """
    own, part = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, N)
    total = tl.zeros([N, N], left.dtype.element_ty)
    for start in range(part * size, part * size + size, BLOCK):
        i = start + tl.arange(0, BLOCK)
        mine = (tl.load(index + i, mask=i < B, other=-1) == own) & (i < part * size + size)
        if tl.max(mine.to(tl.int32), 0) > 0:
            at = i.to(tl.int64)[:, None] * n + d[None, :]
            inside = mine[:, None] & (d < n)[None, :]
            a = tl.load(left + at, mask=inside, other=0.0)
            b = tl.load(right + at, mask=inside, other=0.0)
            total += tl.dot(tl.trans(a), b, input_precision="ieee", out_dtype=total.dtype)
    into = (part * tl.num_programs(0) + own).to(tl.int64) * n * n
    inside = (d < n)[:, None] & (d < n)[None, :]
    tl.store(sums + into + d[:, None] * n + d[None, :], total, mask=inside)
