"""Geodesics of U: exponential and logarithm, projection onto tangent spaces, parallel transport.

Tangent vectors v at x, <x, v>_J = 0, are spacelike (<v, v> > 0, geodesics are hyperbolas), timelike
(< 0, ellipses, closed) or null (lines). Two points are joined by a geodesic where <x, y>_J <
alpha^2. One formula has all three, in w = <v, v> / alpha^2: C(w) = cosh sqrt(w) and S(w) = sinh
sqrt(w) / sqrt(w) are entire functions, summed as series near w = 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, like_input
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import (
    Radius,
    check_q,
    evaluate,
    insert_time,
    points_of,
    radius_of,
)

ROOT2 = math.sqrt(2.0)
SINHC = tuple(1 / math.factorial(2 * k + 1) for k in range(9))
"""Series of S(w / 4), summed for |w| < 1: its last term is below 1e-19."""

NEAR_ARC = 0.125
"""Bounds the |e| for which the series of arc over sine is summed: its terms fall as (e / 2)^k."""
ARC = tuple(math.prod(-0.5 * j / (j + 0.5) for j in range(1, k + 1)) for k in range(15))
"""That series, 2F1(1, 1; 3/2; -e/2) = acosh(1 + e) / sqrt(e (2 + e))."""

VECTOR = "the tangent vector"
JOINED = "y must be joined to x by a geodesic, <x, y> < alpha^2"


def exp(
    x: ArrayT | Convertible, v: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0
) -> ArrayT:
    """Return C(w) x + S(w) v, w = <v, v>_J / alpha^2, where the geodesic from x along v ends.

    C(w) = cosh sqrt(w) and S(w) = sinh sqrt(w) / sqrt(w), which are cos and sin for w < 0, are
    entire functions, so the map is smooth across the null cone. Rounding errors of x and v grow
    with exp(sqrt(w)): steps from far out towards the origin lose digits.

    Args:
        x: Points (..., n) of U.
        v: Tangent vectors (..., n) at x; `project_tangent` makes them so.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> sig = jorth.Signature.lorentz(2)
    >>> jorth.ultrahyperbolic.exp(np.array([1.0, 0.0]), np.array([0.0, np.log(2)]), sig)
    array([1.25, 0.75])
    """
    return evaluate(exp_at, signature, alpha, "the end of the geodesic", x=x, v=v)


def exp_at(x: Tensor, v: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `exp` without its checks."""
    size = _largest(v.detach())  # so that <v, v> does not overflow
    form = ((v / size).square() * signs).sum(dim=-1, keepdim=True)
    c, s, h = geodesic_coefficients(form, size / alpha)
    return h * (h * (c * x + s * v))


def exp0(v: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0) -> ArrayT:
    """Return exp(origin, v) for a tangent vector v at the origin in its n - 1 coordinates.

    They are all but the one of the first negative sign, where the origin is alpha. With q = 1
    s = alpha sinh(r) v / |v| and t = alpha cosh(r), r = |v| / alpha, so that R^p is mapped onto a
    whole sheet, and |v| is the distance from the origin. With q > 1 all points are reached that a
    geodesic joins to the origin. Derivatives exist everywhere, also at v = 0.

    Args:
        v: Coordinates (..., n - 1).
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> jorth.ultrahyperbolic.exp0(np.array([np.log(2), 0.0]), jorth.Signature.lorentz(3))
    array([1.25, 0.75, 0.  ])
    """
    vector = points_of(v, check_q(signature), "v", sizes=(signature.n - 1,))
    end = exp0_at(vector, signature, radius_of(alpha, vector.dtype))
    _inputs.check_overflow(end, "v and alpha", "the end of the geodesic")
    return like_input(end, v, alpha)


def exp0_at(v: Tensor, signature: Signature, alpha: Radius) -> Tensor:
    """Compute `exp0` without its checks."""
    base = insert_time(torch.zeros_like(v), signature, alpha)
    return exp_at(base, insert_time(v, signature, 0.0), signature.vector(v), alpha)


def log(
    x: ArrayT | Convertible, y: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0
) -> ArrayT:
    """Return the tangent vector v at x with exp(x, v) = y, the shortest one on a closed geodesic.

    v = (y - g x) / S(w) with g = -<x, y>_J / alpha^2 = C(w). For near points and near antipodes
    it is computed from y - x or y + x, which keeps all digits. A ValueError is raised if a pair is
    not joined by a geodesic, <x, y>_J >= alpha^2.

    Args:
        x: Points (..., n) of U.
        y: Points (..., n) of U.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> sig, x, y = jorth.Signature.lorentz(2), np.array([1.0, 0.0]), np.array([1.25, 0.75])
    >>> np.allclose(jorth.ultrahyperbolic.log(x, y, sig), [0.0, np.log(2)])
    True
    """
    return evaluate(log_at, signature, alpha, VECTOR, defined=JOINED, x=x, y=y)


def log_at(x: Tensor, y: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `log` without its checks: NaN where no geodesic joins x and y.

    With e = g - 1 and f = g + 1 it is arc / sqrt|e f| (D - k x), arc = acosh(g) or acos(g), where
    D - k x is y - g x: D = y - x and k = e, or D = y + x and k = f.
    """
    sign, D, delta = gap(x, y, signs, alpha)
    same = sign > 0
    e, f = torch.where(same, delta, -2 - delta), torch.where(same, 2 + delta, -delta)
    joined, near, circle = f > 0, e.abs() < NEAR_ARC, e < 0
    k = torch.where(near, torch.where(same, e, f), 0.0)
    close = polynomial(torch.where(near, e, 0.0), ARC) * (D - k * x)
    # elsewhere by roots, as e f may overflow
    root_e, root_f = (torch.where(joined & ~near, part, 1.0).abs().sqrt() for part in (e, f))
    arc = 2 * torch.where(circle, torch.atan2(root_e, root_f), torch.asinh(root_e / ROOT2))
    k = torch.where(same, torch.where(circle, -root_e, root_e) / root_f, root_f / root_e)
    far = arc * (D / root_e / root_f - k * x)
    return torch.where(joined, torch.where(near, close, far), torch.nan)


def log0(x: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0) -> ArrayT:
    """Return the coordinates (..., n - 1) of log(origin, x), from which `exp0` leads back to x.

    Args:
        x: Points (..., n) of U, joined to the origin by a geodesic: all of its sheet for q = 1.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> jorth.ultrahyperbolic.log0(np.array([1.25, 0.75, 0.0]), jorth.Signature.lorentz(3))
    array([0.69314718, 0.        ])
    """

    def formula(x: Tensor, signs: Tensor, radius: Radius) -> Tensor:
        base = insert_time(torch.zeros_like(x[..., 1:]), signature, radius)
        at = [*signature].index(-1)
        v = log_at(base, x, signs, radius)
        return torch.cat([v[..., :at], v[..., at + 1 :]], dim=-1)

    defined = "x must be joined to the origin by a geodesic"
    return evaluate(formula, signature, alpha, VECTOR, defined=defined, x=x)


def gap(x: Tensor, y: Tensor, signs: Tensor, alpha: Radius) -> tuple[Tensor, Tensor, Tensor]:
    """Return sigma, D = y - sigma x and delta = -sigma <x, y>_J / alpha^2 - 1.

    sigma = +-1 makes D short. For points of U delta is <D, D>_J / (2 alpha^2), which keeps its
    digits where D is shorter than x and y. Elsewhere, as for a far y and a near x, it would have
    errors u |y|^2 where those of <x, y> are u |x| |y|.
    """
    with torch.no_grad():
        sizes = [_largest(x), _largest(y)]
        product = (x / sizes[0] * (y / sizes[1])).sum(dim=-1, keepdim=True)
        sign = torch.where(product >= 0, 1.0, -1.0).to(x.dtype)
        apart = _largest(y - sign * x)
        smaller, larger = torch.minimum(*sizes), torch.maximum(*sizes)
        is_short = (y - sign * x).abs().amax(dim=-1, keepdim=True) <= smaller
        on_hyperboloid = (signs < 0).sum() == 1
    D = y - sign * x
    short = ((D / apart).square() * signs).sum(dim=-1, keepdim=True) / 2
    long = -sign * (x / sizes[0] * (y / sizes[1]) * signs).sum(dim=-1, keepdim=True)
    form = torch.where(is_short, short, long - alpha / larger * (alpha / smaller))
    # with one negative sign |<x, y>| >= alpha^2: less is rounding
    form = torch.where(on_hyperboloid & (form < 0), 0.0, form)
    smaller = torch.where(is_short, apart, smaller) / alpha
    larger = torch.where(is_short, apart, larger) / alpha
    return sign, D, smaller * (larger * form)


def _largest(x: Tensor) -> Tensor:
    """Return max |x_i| (..., 1), or 1 for x = 0."""
    size = x.abs().amax(dim=-1, keepdim=True)
    return torch.where(size > 0, size, 1.0)


def project_tangent(
    x: ArrayT | Convertible, v: ArrayT | Convertible, signature: Signature, *, alpha: Radius = 1.0
) -> ArrayT:
    """Return the part v + <x, v>_J x / alpha^2 of v that is tangent to U at x.

    Args:
        x: Points (..., n) of U.
        v: Any vectors (..., n).
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> sig = jorth.Signature.lorentz(2)
    >>> x = np.array([1.0, 0.0])
    >>> jorth.ultrahyperbolic.project_tangent(x, np.array([2.0, 3.0]), sig)
    array([0., 3.])
    """
    return evaluate(project_tangent_at, signature, alpha, VECTOR, x=x, v=v)


def project_tangent_at(x: Tensor, v: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `project_tangent` without its checks."""
    unit = x / alpha
    return v + (unit * signs * v).sum(dim=-1, keepdim=True) * unit


def transport(
    x: ArrayT | Convertible,
    y: ArrayT | Convertible,
    v: ArrayT | Convertible,
    signature: Signature,
    *,
    alpha: Radius = 1.0,
) -> ArrayT:
    """Return the tangent vector v at x, moved in parallel along the geodesic from x to y.

    It is v + <y, v>_J / (alpha^2 - <x, y>_J) (x + y), which keeps inner products. A ValueError is
    raised if a pair is not joined by a geodesic, <x, y>_J >= alpha^2.

    Args:
        x: Points (..., n) of U.
        y: Points (..., n) of U.
        v: Tangent vectors (..., n) at x.
        signature: The signs of J, q at least 1.
        alpha: The radius of U.

    >>> x, y = np.array([1.0, 0.0]), np.array([1.25, 0.75])
    >>> jorth.ultrahyperbolic.transport(x, y, np.array([0.0, 1.0]), jorth.Signature.lorentz(2))
    array([0.75, 1.25])
    """
    return evaluate(transport_at, signature, alpha, VECTOR, defined=JOINED, x=x, y=y, v=v)


def transport_at(x: Tensor, y: Tensor, v: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """Compute `transport` without its checks: NaN where no geodesic joins x and y."""
    sign, D, delta = gap(x, y, signs, alpha)
    f = torch.where(sign > 0, 2 + delta, -delta)  # alpha^2 - <x, y> over alpha^2
    joined = (f > 0) & f.isfinite()
    root_f = torch.where(joined, f, 1.0).sqrt()
    shift = (D / alpha / root_f * signs * v).sum(dim=-1, keepdim=True)  # <D, v> = <y, v>
    return torch.where(joined, v + shift * ((x + y) / alpha / root_f), torch.nan)


def polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """Return sum c_k x^k by Horner's scheme."""
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def geodesic_coefficients(form: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return c, s and h with C(w) = h^2 c and S(w) = h^2 s for w = ratio^2 form.

    h = exp(r / 2), r = sqrt(w), where r is real and large, else 1: h (h (c x + s v)) is finite
    wherever C(w) x + S(w) v is. There c and s lie between 0 and 1, and w itself may overflow.
    """
    w = ratio * (ratio * form)
    near = w.abs() < 1
    hyperbola, circle = w >= 1, w <= -1
    r = ratio * torch.where(near, 1.0, form).abs().sqrt()
    quarter = torch.where(near, w, 0.0) / 4
    half = polynomial(quarter, SINHC)
    square = quarter * half.square()  # sinh^2 of half of r
    boost = torch.where(hyperbola, r, 1.0)
    turn = torch.where(circle, r, 1.0)
    shrunk = torch.exp(-2 * boost)
    c = torch.where(hyperbola, (1 + shrunk) / 2, torch.where(circle, turn.cos(), 0.0))
    s = torch.where(hyperbola, (1 - shrunk) / (2 * boost), turn.sin() / turn)
    c = torch.where(near, 1 + 2 * square, c)
    s = torch.where(near, half * (1 + square).sqrt(), s)
    return c, s, torch.where(hyperbola, torch.exp(boost / 2), 1.0)
