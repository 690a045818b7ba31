"""Squared distances with their slopes, compiled: `jorth.kge.model.squared_arc`; it loads numba.

log1p, exp and atan are without calls or branches, so that a loop over them fills vector registers.
They are for compiled code only. The arithmetic is that of the argument, float32 or float64; the
results are right to a few units of the last place. NaN gives NaN.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.compiling import by_precision, compiler

single = np.float32
# IEEE arithmetic: the parts of log(2) must not be joined. A product and a sum may become one.
elementary = compiler(fastmath={"contract"}, inline=True)

summing = compiler(fastmath={"reassoc", "contract"}, inline=True)
LARGE = 2.0**40
"""From here on sqrt(g^2 - 1) = g, also in float64, and in float32 g^2 does not overflow below."""


def log1p(z: Any) -> Any:
    """The logarithm of 1 + z for 0 <= z < 2^126, or < 2^1022 in float64; not finite for inf."""
    raise NotImplementedError


def exp(x: Any) -> Any:
    """The exponential of x <= 0; zero instead of numbers below the normal ones."""
    raise NotImplementedError


def atan(t: Any) -> Any:
    """The arc tangent of 0 <= t <= 1."""
    raise NotImplementedError


# 1 + z = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); f = z where k = 0. The polynomials
# are those of Cephes (float32) and of fdlibm and Cephes (float64).

ONE_32, HALF_32 = single(1.0), single(0.5)
LN2_HIGH_32, LN2_LOW_32 = single(0.693359375), single(-2.12194440e-4)
LOG2_E_32, TINY_LOG_32 = single(1.44269504088896341), single(-87.0)
ROOT_HALF_32 = np.int32(0x3F3504F3)
LOG_32 = tuple(
    single(c)
    for c in (
        7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
        -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
    )
)  # fmt: skip
EXP_32 = tuple(
    single(c)
    for c in (
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )
)  # fmt: skip
ATAN_32 = tuple(
    single(c) for c in (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
)
BEND_32, QUARTER_PI_32 = single(0.41421356237), single(0.78539816339744831)

LN2_HIGH_64, LN2_LOW_64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
LOG2_E_64, TINY_LOG_64 = 1.44269504088896338700, -708.0
ROOT_HALF_64 = np.int64(0x3FE6A09E667F3BCD)
LOG_64 = (
    1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
    2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
    6.666666666666735130e-01,
)  # fmt: skip
EXP_64 = tuple(1.0 / float(factorial) for factorial in np.cumprod(np.arange(2, 14.0))[::-1])
"""1 / 13!, ..., 1 / 2!."""
ATAN_TOP_64 = (
    -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
    -1.228866684490136173410e2, -6.485021904942025371773e1,
)  # fmt: skip
ATAN_BOTTOM_64 = (
    1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
    4.853903996359136964868e2, 1.945506571482613964425e2,
)  # fmt: skip
BEND_64, QUARTER_PI_64, QUARTER_PI_REST_64 = 0.66, 0.78539816339744830962, 3.06161699786838e-17


@elementary
def _polynomial(coefficients: tuple[Any, ...], x: Any) -> Any:
    """The value at x of a polynomial, its highest coefficient first."""
    y = coefficients[0]
    for c in coefficients[1:]:
        y = y * x + c
    return y


@elementary
def _log1p_32(z: Any) -> Any:
    bits = np.float32(ONE_32 + z).view(np.int32)
    k = np.int32(np.int32(bits - ROOT_HALF_32) >> np.int32(23))
    scale = np.int32(np.int32(np.int32(127) - k) << np.int32(23)).view(np.float32)
    f, power = z * scale + (scale - ONE_32), single(k)
    square = f * f
    curve = f * square * _polynomial(LOG_32, f) - HALF_32 * square
    return f + (curve + power * LN2_LOW_32) + power * LN2_HIGH_32


@elementary
def _log1p_64(z: Any) -> Any:
    bits = np.float64(1.0 + z).view(np.int64)
    k = (bits - ROOT_HALF_64) >> 52
    scale = np.int64((1023 - k) << 52).view(np.float64)
    f, power = z * scale + (scale - 1.0), np.float64(np.int32(k))
    s = f / (2.0 + f)
    half = 0.5 * f * f
    curve = s * (half + s * s * _polynomial(LOG_64, s * s)) - half
    return f + (curve + power * LN2_LOW_64) + power * LN2_HIGH_64


@elementary
def _exp_32(x: Any) -> Any:
    c = TINY_LOG_32 if x < TINY_LOG_32 else x
    n = np.int32(c * LOG2_E_32 - HALF_32)
    r = c - single(n) * LN2_HIGH_32 - single(n) * LN2_LOW_32
    y = ONE_32 + (r + r * r * _polynomial(EXP_32, r))
    y = y * np.int32(np.int32(n + np.int32(127)) << np.int32(23)).view(np.float32)
    return single(0.0) if x < TINY_LOG_32 else y


@elementary
def _exp_64(x: Any) -> Any:
    c = TINY_LOG_64 if x < TINY_LOG_64 else x
    n = np.int32(c * LOG2_E_64 - 0.5)
    r = c - np.float64(n) * LN2_HIGH_64 - np.float64(n) * LN2_LOW_64
    y = 1.0 + (r + r * r * _polynomial(EXP_64, r))
    y = y * np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return 0.0 if x < TINY_LOG_64 else y


@elementary
def _atan_32(t: Any) -> Any:
    far = t > BEND_32
    x = (t - ONE_32) / (t + ONE_32) if far else t
    square = x * x
    y = x + x * square * _polynomial(ATAN_32, square)
    return QUARTER_PI_32 + y if far else y


@elementary
def _atan_64(t: Any) -> Any:
    far = t > BEND_64
    x = (t - 1.0) / (t + 1.0) if far else t
    square = x * x
    ratio = _polynomial(ATAN_TOP_64, square) / _polynomial(ATAN_BOTTOM_64, square)
    y = x + x * square * ratio
    return QUARTER_PI_64 + (y + QUARTER_PI_REST_64) if far else y


by_precision(log1p, _log1p_32, _log1p_64)
by_precision(exp, _exp_32, _exp_64)
by_precision(atan, _atan_32, _atan_64)


@compiler(nogil=True, inline=True)
def square_and_slope(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """Write acosh(|g|)^2 where |g| >= 1, acos(|g|)^2 elsewhere, and the slopes: all (count,).

    The slope is 0 at |g| = 1 and at g = 0.
    """
    if _hyperbolic(g, squares, slopes) > 0.0:
        _circular(g, squares, slopes)


@summing
def _hyperbolic(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> Any:
    """acosh(|g|)^2 and its slope as in `jorth.kge.model.squared_arc`; returns how many |g| < 1."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    large, inside = g.dtype.type(LARGE), zero
    for j in range(g.shape[0]):
        size = abs(g[j])
        e = size - one
        sine = math.sqrt(abs(e) * (size + one)) if size < large else size
        arc = log1p(e + sine)
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc
        slopes[j] = zero if sine == zero else slope
        inside += one if size < one else zero
    return inside


@summing
def _circular(g: np.ndarray, squares: np.ndarray, slopes: np.ndarray) -> None:
    """acos(|g|)^2 and its slope where |g| < 1; tan(acos(|g|) / 2) = sine / (1 + |g|)."""
    zero, one, two = g.dtype.type(0.0), g.dtype.type(1.0), g.dtype.type(2.0)
    for j in range(g.shape[0]):
        size = abs(g[j])
        inside = size < one
        rest = one - size if inside else zero
        sine = math.sqrt(rest * (size + one))
        arc = two * atan(sine / (one + size))
        slope = math.copysign(two, g[j]) * (arc / sine)
        squares[j] = arc * arc if inside else squares[j]
        slopes[j] = (-slope if size > zero else zero) if inside else slopes[j]


def write_squared_arcs(g: Tensor, square: Tensor, slope: Tensor | None) -> None:
    """Write arc^2, and its derivative if wanted, for contiguous g (count,)."""
    slope = torch.empty_like(square) if slope is None else slope
    square_and_slope(*(part.detach().numpy() for part in (g, square, slope)))
