"""The four families of 2x2 matrices V with V^T diag(s_i, s_j) V = diag(s_i, s_j), and the surrogate on each.

    equal signs                            opposite signs
    rotation    V = x I + y R              boost    V = x I + y K            (proper)
    reflection  V = x Z + y K              flip     V = -x Z + y R           (improper)

with I, R = [[0, -1], [1, 0]], Z = diag(1, -1), K = [[0, 1], [1, 0]]; (x, y) is on the unit circle for equal signs, on
the hyperbola x^2 - y^2 = 1 (both branches) for opposite ones. In the light-cone coordinate u = x + y a boost is
u N+ + N- / u with N+- = (I +- K) / 2, and a flip is diag(-1, 1) times that.

The surrogate <V - I, P> + 1/2 ||V - I||^2_Q, vec(V) = (V11, V21, V12, V22), needs the linear forms <P, .> and the
quadratic forms of Q in these directions: `Linear` and `Quadratic`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Linear(NamedTuple):
    """<P, I>, <P, R>, <P, Z>, <P, K>."""

    i: Tensor
    r: Tensor
    z: Tensor
    k: Tensor


class Quadratic(NamedTuple):
    """Quadratic forms of Q + theta I in the directions I, R, Z, K and the null directions."""

    ii: Tensor
    ir: Tensor
    iz: Tensor
    ik: Tensor
    rr: Tensor
    zz: Tensor
    zk: Tensor
    kk: Tensor
    boost_out: Tensor
    """n+^T Q n+ / 2 for the boost, the C of the light-cone form; the D, and both for the flip, follow."""
    boost_in: Tensor
    flip_out: Tensor
    flip_in: Tensor


class Sizes(NamedTuple):
    """What rounding is measured by: the largest entries of P and Q, and the uncertainty of the null forms."""

    p: Tensor
    q: Tensor
    fuzz: Tensor


class Lightcone(NamedTuple):
    """The surrogate on V = u N+ + N- / u, or on diag(-1, 1) times that: A u + B / u + out u^2 + into / u^2 + const.

    For boosts A = p_out - 2 out - cross and B = p_in - 2 into - cross, with p_out = <P, N+>, p_in = <P, N->.
    """

    A: Tensor
    B: Tensor
    out: Tensor
    into: Tensor
    cross: Tensor
    """n+^T Q n-."""
    p_out: Tensor
    p_in: Tensor


def linear_forms(P: Tensor) -> Linear:
    """The linear forms of P (..., 2, 2)."""
    p11, p12, p21, p22 = P[..., 0, 0], P[..., 0, 1], P[..., 1, 0], P[..., 1, 1]
    return Linear(p11 + p22, p21 - p12, p11 - p22, p21 + p12)


def quadratic_forms(Q: Tensor, theta: Tensor, rounding: Tensor) -> Quadratic:
    """The quadratic forms of Q + theta I for symmetric Q (..., 4, 4).

    The null forms are summed as they stand, not through x and y: that would lose the smaller of the two. The sum is
    8 C: where it is negative by no more than ``rounding``, C is zero; where C, with theta, is positive but below twice
    ``rounding``, it is taken at its upper end: the step is then as long as it can be with a decrease that is certain.
    """
    q11, q22, q33, q44 = (Q[..., i, i] for i in range(4))
    q12, q13, q14, q23, q24, q34 = (
        Q[..., i, j] for i, j in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    )
    corners, middles, diagonal = q11 + q44, q22 + q33, q11 + q22 + q33 + q44
    outer, inner = q14 + q23, q12 + q34
    across = q13 + q24

    def null(form: Tensor) -> Tensor:
        found = form.where((form >= 0) | (form < -rounding), 0.0) / 8 + theta / 2
        return torch.where((found > 0) & (found < 2 * rounding), found + 2 * rounding, found)

    return Quadratic(
        ii=corners + 2 * q14 + 2 * theta,
        ir=q12 - q13 + q24 - q34,
        iz=q11 - q44,
        ik=q12 + q13 + q24 + q34,
        rr=middles - 2 * q23 + 2 * theta,
        zz=corners - 2 * q14 + 2 * theta,
        zk=q12 + q13 - q24 - q34,
        kk=middles + 2 * q23 + 2 * theta,
        boost_out=null(diagonal + 2 * (outer + inner + across)),
        boost_in=null(diagonal + 2 * (outer - inner - across)),
        flip_out=null(diagonal + 2 * (across - inner - outer)),
        flip_in=null(diagonal + 2 * (inner - across - outer)),
    )


def boost_forms(linear: Linear, quadratic: Quadratic, sizes: Sizes, noise: float) -> Lightcone:
    """The light-cone form of boosts."""
    al, be = linear.i - quadratic.ii, linear.k - quadratic.ik
    cross = (quadratic.ii - quadratic.kk) / 4
    out, into, rounding = quadratic.boost_out, quadratic.boost_in, noise * (sizes.p + sizes.q)
    A, B = _clean((al + be) / 2, out, rounding), _clean((al - be) / 2, into, rounding)
    return Lightcone(A, B, out, into, cross, (linear.i + linear.k) / 2, (linear.i - linear.k) / 2)


def flip_forms(linear: Linear, quadratic: Quadratic, sizes: Sizes, noise: float) -> Lightcone:
    """The light-cone form of flips."""
    al, be = quadratic.iz - linear.z, linear.r - quadratic.ir
    cross = (quadratic.zz - quadratic.rr) / 4
    out, into, rounding = quadratic.flip_out, quadratic.flip_in, noise * (sizes.p + sizes.q)
    A, B = _clean((al + be) / 2, out, rounding), _clean((al - be) / 2, into, rounding)
    return Lightcone(A, B, out, into, cross, (linear.r - linear.z) / 2, -(linear.r + linear.z) / 2)


def _clean(linear: Tensor, quadratic: Tensor, rounding: Tensor) -> Tensor:
    """A linear coefficient at rounding level counts as zero where the quadratic one beside it is zero."""
    return torch.where((quadratic == 0) & (linear.abs() <= rounding), 0.0, linear)
