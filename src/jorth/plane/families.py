"""The four families of 2x2 matrices V with V^T diag(s_i, s_j) V = diag(s_i, s_j).

    equal signs                            opposite signs
    rotation    V = x I + y R              boost    V = x I + y K            (proper)
    reflection  V = x Z + y K              flip     V = -x Z + y R           (improper)

Here R = [[0, -1], [1, 0]], Z = diag(1, -1), K = [[0, 1], [1, 0]], and (x, y) lies on the unit
circle or on the hyperbola x^2 - y^2 = 1. In the light-cone coordinate u = x + y a boost is u N+ +
N- / u with N+- = (I +- K) / 2, and a flip is diag(-1, 1) times that.

`best_step` minimises <V - I, P> + 1/2 ||V - I||^2_Q, vec(V) = (V11, V21, V12, V22), over the
families. This is the reference of the pair step, in torch; `jorth.plane._numba` and
`jorth.plane._triton` repeat its formulas. All tensors are float64.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from jorth.plane.roots import DEFINITE, circle, lightcone, polish_angle

NEAR_NULL = 1e-4
"""A null length ||x_i +- x_j||^2 is formed from rows if below this part of |x_i|^2 + |x_j|^2."""


# of tensors here, of floats in `jorth.plane._numba`
LinearForms = namedtuple("LinearForms", "i r z k")
"""<P, I>, <P, R>, <P, Z>, <P, K>."""
QuadraticForms = namedtuple("QuadraticForms", "ii ir iz ik rr zz zk kk")
"""vec(M)^T (Q + theta I) vec(N) for those M and N in I, R, Z, K that steps need."""
NullForms = namedtuple("NullForms", "boost_out boost_in flip_out flip_in")
"""n^T (Q + theta I) n / 2 for the null directions n+ (out) and n- (in) of boosts and flips."""


class LightconeForm(NamedTuple):
    """The surrogate A u + B / u + out u^2 + into / u^2 + const on V = u N+ + N- / u.

    For flips V is diag(-1, 1) times that. For boosts A = p_out - 2 out - cross and
    B = p_in - 2 into - cross, with p_out = <P, N+>, p_in = <P, N-> and cross = n+^T Q n-.
    """

    A: Tensor
    B: Tensor
    out: Tensor
    into: Tensor
    cross: Tensor
    p_out: Tensor
    p_in: Tensor


class Surrogate(NamedTuple):
    """All forms that the minimisers of the four families need.

    The sizes, the largest entries of P and Q, and the uncertainty of null forms scale rounding.
    """

    linear: LinearForms
    quadratic: QuadraticForms
    boost: LightconeForm
    flip: LightconeForm
    size_p: Tensor
    size_q: Tensor
    null_error: Tensor


def linear_forms(P: Tensor) -> LinearForms:
    """Return the linear forms of P (..., 2, 2)."""
    p11, p12, p21, p22 = P.flatten(-2).unbind(-1)
    return LinearForms(p11 + p22, p21 - p12, p11 - p22, p21 + p12)


def quadratic_forms(Q: Tensor, theta: Tensor) -> QuadraticForms:
    """Return the forms of Q + theta I for symmetric Q (..., 4, 4)."""
    (q11, q12, q13, q14), (_, q22, q23, q24), (*_, q33, q34), (*_, q44) = (
        row.unbind(-1) for row in Q.unbind(-2)
    )
    corners, middles = q11 + q44, q22 + q33
    return QuadraticForms(
        ii=corners + 2 * q14 + 2 * theta,
        ir=q12 - q13 + q24 - q34,
        iz=q11 - q44,
        ik=q12 + q13 + q24 + q34,
        rr=middles - 2 * q23 + 2 * theta,
        zz=corners - 2 * q14 + 2 * theta,
        zk=q12 + q13 - q24 - q34,
        kk=middles + 2 * q23 + 2 * theta,
    )


def null_forms(Q: Tensor, theta: Tensor, rounding: Tensor) -> NullForms:
    """Return the null forms of Q + theta I for symmetric Q (..., 4, 4), summed from its entries.

    A sum that is negative by no more than ``rounding`` counts as zero. One below twice ``rounding``
    is replaced by its upper bound, so that the step is as long as possible with a certain decrease.
    """
    diagonal = Q[..., 0, 0] + Q[..., 1, 1] + Q[..., 2, 2] + Q[..., 3, 3]
    outer, inner = Q[..., 0, 3] + Q[..., 1, 2], Q[..., 0, 1] + Q[..., 2, 3]
    across = Q[..., 0, 2] + Q[..., 1, 3]

    def null(form: Tensor) -> Tensor:
        found = form.where((form >= 0) | (form < -rounding), 0.0) / 8 + theta / 2
        return torch.where((found > 0) & (found < 2 * rounding), found + 2 * rounding, found)

    return NullForms(
        boost_out=null(diagonal + 2 * (outer + inner + across)),
        boost_in=null(diagonal + 2 * (outer - inner - across)),
        flip_out=null(diagonal + 2 * (across - inner - outer)),
        flip_in=null(diagonal + 2 * (inner - across - outer)),
    )


def matrix_surrogate(P: Tensor, Q: Tensor, theta: Tensor, noise: float) -> Surrogate:
    """Return the surrogate for P (..., 2, 2), symmetric Q (..., 4, 4) and theta (...)."""
    size_p, size_q = P.abs().amax(dim=(-2, -1)), Q.abs().amax(dim=(-2, -1))
    theta = torch.where(theta < 0, -theta * size_q, theta)
    p, q = linear_forms(P), quadratic_forms(Q, theta)
    null, rounding = null_forms(Q, theta, noise * size_q), noise * (size_p + size_q)

    def form(al: Tensor, be: Tensor, out: Tensor, into: Tensor, *rest: Tensor) -> LightconeForm:
        A, B = (al + be) / 2, (al - be) / 2  # zero at rounding level, if its null form is zero
        A = torch.where((out == 0) & (A.abs() <= rounding), 0.0, A)
        B = torch.where((into == 0) & (B.abs() <= rounding), 0.0, B)
        return LightconeForm(A, B, out, into, *rest)

    p_out, p_in, cross = (p.i + p.k) / 2, (p.i - p.k) / 2, (q.ii - q.kk) / 4
    boost = form(p.i - q.ii, p.k - q.ik, null.boost_out, null.boost_in, cross, p_out, p_in)
    p_out, p_in, cross = (p.r - p.z) / 2, -(p.r + p.z) / 2, (q.zz - q.rr) / 4
    flip = form(q.iz - p.z, p.r - q.ir, null.flip_out, null.flip_in, cross, p_out, p_in)
    return Surrogate(p, q, boost, flip, size_p, size_q, noise * size_q)


def kronecker(Y: Tensor, A: Tensor) -> Tensor:
    """Return Y (x) A (..., 4, 4) for Y and A (..., 2, 2)."""
    product = Y[..., :, None, :, None] * A[..., None, :, None, :]
    return product.reshape(*product.shape[:-4], 4, 4)


def row_surrogate(
    G: Tensor, Z: Tensor, A: Tensor, D: Tensor | None, theta: Tensor, opposite: Tensor
) -> Surrogate:
    """Return the surrogate of P = G Z^T and Q = (Z D Z^T) (x) A for two rows G and Z (..., 2, m).

    A is (..., 2, 2) or (2, 2), D is (m, m) or None, theta and opposite are (...). With s = z_i +
    z_j and d = z_i - z_j all light-cone forms are products, such as (s^T D s) (e+^T A e+) / 4 and
    (g_i + g_j) . s / 2. None of them is a difference of larger numbers.
    """
    Y, P = Z @ (Z if D is None else Z @ D).mT, G @ Z.mT
    size_q = Y.abs().amax(dim=(-2, -1)) * A.abs().amax(dim=(-2, -1))
    theta = torch.where(theta < 0, -theta * size_q, theta)
    s, d = Z[..., 0, :] + Z[..., 1, :], Z[..., 0, :] - Z[..., 1, :]
    sum_g, difference_g = G[..., 0, :] + G[..., 1, :], G[..., 0, :] - G[..., 1, :]
    weighted_s, weighted_d = (s, d) if D is None else (s @ D, d @ D)
    eta_plus, eta_minus, eta = _dot(s, weighted_s), _dot(d, weighted_d), _dot(s, weighted_d)
    a11, a12, a22 = A[..., 0, 0], A[..., 0, 1], A[..., 1, 1]
    alpha_plus, alpha_minus, alpha = a11 + 2 * a12 + a22, a11 - 2 * a12 + a22, a11 - a22
    half, cross = theta / 2, eta * alpha / 4

    out, into = eta_plus * alpha_plus / 8 + half, eta_minus * alpha_minus / 8 + half
    p_out, p_in = _dot(sum_g, s) / 2, _dot(difference_g, d) / 2
    A_boost, B_boost = p_out - 2 * out - cross, p_in - 2 * into - cross
    boost = LightconeForm(A_boost, B_boost, out, into, cross, p_out, p_in)

    out, into = eta_plus * alpha_minus / 8 + half, eta_minus * alpha_plus / 8 + half
    p_out, p_in = -_dot(difference_g, s) / 2, -_dot(sum_g, d) / 2
    A_flip = p_out + (eta_plus * alpha + eta * alpha_minus) / 4
    B_flip = p_in + (eta * alpha_plus + eta_minus * alpha) / 4
    flip = LightconeForm(A_flip, B_flip, out, into, cross, p_out, p_in)

    on_cone = boost.out.abs() + boost.into.abs() + cross.abs() + out.abs() + into.abs()
    size_p, size_q = P.abs().amax(dim=(-2, -1)), torch.where(opposite, on_cone, size_q)
    p, q = linear_forms(P), quadratic_forms(kronecker(Y, A), theta)
    return Surrogate(p, q, boost, flip, size_p, size_q, torch.zeros_like(size_q))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dim=-1)


# -- minimisers


def best_step(
    surrogate: Surrogate, opposite: Tensor, all_components: bool, noise: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return V, decrease and unbounded: the best step for a surrogate.

    A decrease must exceed its rounding error to count, and an improper step must beat the proper
    one by as much.
    """

    def choose(on_cone: Sequence[Tensor], on_circle: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(on_cone, on_circle, strict=True)
        return [torch.where(opposite, cone, circle) for cone, circle in pairs]

    *on_cone, unbounded = boost(surrogate, not all_components, noise)
    x, y, decrease, rounding = choose(on_cone, rotation(surrogate, noise))
    decrease = torch.where(decrease <= rounding, 0.0, decrease)
    V = _matrix(x, torch.where(opposite, y, -y), y, x)
    if all_components:
        *on_cone, flip_unbounded = flip(surrogate, noise)
        x, y, gain, rounding = choose(on_cone, reflection(surrogate, noise))
        sign = torch.where(opposite, -1.0, 1.0).to(x)
        improper, better = _matrix(sign * x, sign * y, y, -sign * x), gain > decrease + rounding
        V = torch.where(better[..., None, None], improper, V)
        decrease = torch.where(better, gain, decrease)
        unbounded = unbounded | flip_unbounded
    return V, decrease, unbounded & opposite


def _matrix(v11: Tensor, v12: Tensor, v21: Tensor, v22: Tensor) -> Tensor:
    return torch.stack([v11, v12, v21, v22], dim=-1).reshape(*v11.shape, 2, 2)


def rotation(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """Return (x, y, decrease, its rounding) of V = x I + y R on the circle."""
    i, r, ii = surrogate.linear.i, surrogate.linear.r, surrogate.quadratic.ii
    ir, rr = surrogate.quadratic.ir, surrogate.quadratic.rr
    x, y = circle(i - ii, r - ir, ii / 2, ir, rr / 2)
    # a Newton step on the slope in terms of h = 1 - x, in which nothing as large as Q cancels
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    slope = x * r + y * (h * ii + x * rr - i) - ir * h * (1 + 2 * x)
    curvature = -x * i - y * r + (y * y + h * x) * ii - ir * y * (3 * x - h) + (x * x - y * y) * rr
    size = i.abs() + r.abs() + ii.abs() + ir.abs() + rr.abs()
    x, y = polish_angle(x, y, -slope / curvature, curvature, DEFINITE * size)
    h = torch.where(x > 0, y * y / (1 + x), 1 - x)
    decrease = h * i - y * r - (h * h * ii - 2 * h * y * ir + y * y * rr) / 2
    step = 1 - x + y.abs()
    return x, y, decrease, noise * step * (surrogate.size_p + step * surrogate.size_q)


def reflection(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """Return (x, y, decrease, its rounding) of V = x Z + y K on the circle."""
    linear, quadratic = surrogate.linear, surrogate.quadratic
    al, be = linear.z - quadratic.iz, linear.k - quadratic.ik
    zz, zk, kk = quadratic.zz, quadratic.zk, quadratic.kk
    x, y = circle(al, be, zz / 2, zk, kk / 2)
    value = al * x + be * y + (zz * x * x + 2 * zk * x * y + kk * y * y) / 2
    step = 1 + x.abs() + y.abs()
    decrease = linear.i - quadratic.ii / 2 - value
    return x, y, decrease, noise * step * (surrogate.size_p + step * surrogate.size_q)


def boost(surrogate: Surrogate, positive: bool, noise: float) -> tuple[Tensor, ...]:
    """Return (x, y, decrease, its rounding, unbounded) of V = u N+ + N- / u."""
    k, (A, B, out, into, cross, p_out, _) = surrogate.linear.k, surrogate.boost
    u, unbounded = lightcone(A, B, out, into, positive)
    # a Newton step in w = u - 1 on u^3 F'(u) = u <P, K> + w g(u), without cancellation near u = 1
    w = u - 1
    tilt = p_out - cross
    g = tilt * u * (u + 1) + 2 * out * u * u * u + 2 * into
    slope = k + g + w * (tilt * (2 * u + 1) + 6 * out * u * u)
    step = (u * k + w * g) / slope
    sound = (w.abs() < 0.5) & (slope > 0) & (step.abs() < 1e-3)
    w = torch.where(sound, w - step, w)
    u = torch.where(sound, 1 + w, u)
    z = -w / u
    terms = (w * k / u, w * w / u * p_out, out * w * w, into * z * z, cross * w * z)
    decrease = -(terms[0] + terms[1] + terms[2] + terms[3] + terms[4])
    size = sum(term.abs() for term in terms) + surrogate.size_p * (w.abs() + z.abs())
    rounding = noise * size + surrogate.null_error * (w * w + z * z)
    return 1 + w * w / (2 * u), w * (u + 1) / (2 * u), decrease, rounding, unbounded


def flip(surrogate: Surrogate, noise: float) -> tuple[Tensor, ...]:
    """Return (x, y, decrease, its rounding, unbounded) of V = diag(-1, 1) (u N+ + N- / u)."""
    boost, (A, B, out, into, cross, _, _) = surrogate.boost, surrogate.flip
    u, unbounded = lightcone(A, B, out, into, positive=False)
    inverse = 1 / u
    grow, shrink = out * u * u, into * inverse * inverse
    value = A * u + grow + B * inverse + shrink + cross
    minus_value_at_zero = boost.p_out + boost.p_in - boost.out - boost.into - boost.cross
    size = surrogate.size_q + surrogate.size_p * (1 + u.abs() + inverse.abs()) + grow + shrink
    rounding = noise * size + surrogate.null_error * (u * u + inverse * inverse)
    decrease = minus_value_at_zero - value
    return (u + inverse) / 2, (u - inverse) / 2, decrease, rounding, unbounded
