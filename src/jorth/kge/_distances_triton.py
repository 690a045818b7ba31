"""The arcs between points of a pseudo-hyperboloid for Triton: acosh and acos with their slopes."""

import torch
import triton
import triton.language as tl
from torch import Tensor

HALF_PI = tl.constexpr(1.5707963267948966)
LOG_TWO = tl.constexpr(0.6931471805599453)
LARGE = {torch.float32: 2.0**60, torch.float64: 2.0**500}
"""A size whose square is finite and next to which 1 is nothing."""
BLOCK = 512


@triton.jit
def log_near_one(u, x):
    """log(1 + x) for x >= 0, where u is 1 + x as rounded: what rounding took counts near 1."""
    return tl.log(u) + (x - (u - 1.0)) * tl.maximum(2.0 - u, 0.0)


@triton.jit
def arc_sine(w, z):
    """asin(w) for w^2 = z <= 1/4, by the rational function of fdlibm (e_asin.c)."""
    p = 7.91534994289814532176e-04 + z * 3.47933107596021167570e-05
    p = 2.01212532134862925881e-01 + z * (-4.00555345006794114027e-02 + z * p)
    p = 1.66666666666666657415e-01 + z * (-3.25565818622400915405e-01 + z * p)
    q = -6.88283971605453293030e-01 + z * 7.70381505559019352791e-02
    q = 1.0 + z * (-2.40339491173441421878e00 + z * (2.02094576023350569471e00 + z * q))
    return w + w * (z * p / q)


@triton.jit
def circular_arc(size, e):
    """acos(size) for e = size - 1 < 0."""
    far, half = size < 0.5, tl.maximum(-0.5 * e, 0.0)
    part = arc_sine(tl.where(far, size, tl.sqrt(half)), tl.where(far, size * size, half))
    return tl.where(far, HALF_PI - part, 2.0 * part)


@triton.jit
def arc_of(g, LARGE: tl.constexpr):
    """(arc, 1 / sine, e) of `jorth.kge.model.squared_arc`; where e = 0 the first two are 0.

    Beyond LARGE, whose square may overflow, the sine is |g|.
    """
    size = tl.abs(g)
    e = size - 1.0
    square = tl.abs(e) * (size + 1.0)
    inverse = tl.where(square > 0.0, tl.rsqrt(square), 0.0)
    large = size > LARGE
    x = tl.where(large, size, e + square * inverse)
    arc = log_near_one(1.0 + x, x) + tl.where(large, tl.full([], LOG_TWO, g.dtype), 0.0)
    if tl.max((large | (e < 0.0)).to(tl.int32)) > 0:  # rare for q = 1
        inverse = tl.where(large, 1.0 / size, inverse)
        arc = tl.where(e < 0.0, circular_arc(size, e), arc)
    return arc, inverse, e


@triton.jit
def square_and_slope(
    g, square, slope, count, HAS_SLOPE: tl.constexpr, LARGE: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """The squared arcs of g (count,), and their derivatives if wanted."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    product = tl.load(g + at, mask=at < count, other=1.0)
    arc, inverse, e = arc_of(product, LARGE)
    tl.store(square + at, arc * arc, mask=at < count)
    if HAS_SLOPE:
        steep = tl.where((e < 0.0) == (product < 0.0), 2.0, -2.0) * (arc * inverse)
        tl.store(slope + at, tl.where(product == 0.0, 0.0, steep), mask=at < count)


def write_squared_arcs(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative if wanted, for contiguous g (count,)."""
    square_and_slope[(-(-g.numel() // BLOCK),)](
        g, square, square if slope is None else slope, g.numel(),
        HAS_SLOPE=slope is not None, LARGE=LARGE[g.dtype], BLOCK=BLOCK, num_warps=4,
    )  # fmt: skip
