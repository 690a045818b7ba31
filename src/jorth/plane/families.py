"""The four families of 2x2 matrices V with V^T diag(s_i, s_j) V = diag(s_i, s_j).

    equal signs                            opposite signs
    rotation    V = x I + y R              boost    V = x I + y K            (proper)
    reflection  V = x Z + y K              flip     V = -x Z + y R           (improper)

with R = [[0, -1], [1, 0]], Z = diag(1, -1) and K = [[0, 1], [1, 0]]. (x, y) lies on the unit circle
for equal signs and on the hyperbola x^2 - y^2 = 1 (both branches) for opposite ones. In the
light-cone coordinate u = x + y a boost is u N+ + N- / u with N+- = (I +- K) / 2, and a flip is
diag(-1, 1) times that.

The surrogate <V - I, P> + 1/2 ||V - I||^2_Q, vec(V) = (V11, V21, V12, V22), needs the linear forms
<P, .> and the quadratic forms of Q in these directions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor


class LinearForms(NamedTuple):
    """<P, I>, <P, R>, <P, Z>, <P, K>: tensors here, floats in `jorth.plane.compiled`."""

    i: Any
    r: Any
    z: Any
    k: Any


class QuadraticForms(NamedTuple):
    """vec(M)^T (Q + theta I) vec(N) for those M and N in I, R, Z, K that steps need."""

    ii: Any
    ir: Any
    iz: Any
    ik: Any
    rr: Any
    zz: Any
    zk: Any
    kk: Any


class NullForms(NamedTuple):
    """n^T (Q + theta I) n / 2 for the null directions n+ (out) and n- (in) of boosts and flips."""

    boost_out: Any
    boost_in: Any
    flip_out: Any
    flip_in: Any


class Sizes(NamedTuple):
    """The largest entries of P and Q, and the uncertainty of the null forms: scales of rounding."""

    p: Any
    q: Any
    null_error: Any


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
    """All forms that the minimisers of the four families need."""

    linear: LinearForms
    quadratic: QuadraticForms
    boost: LightconeForm
    flip: LightconeForm
    sizes: Sizes


def linear_forms(P: Tensor) -> LinearForms:
    """The linear forms of P (..., 2, 2)."""
    p11, p12, p21, p22 = P[..., 0, 0], P[..., 0, 1], P[..., 1, 0], P[..., 1, 1]
    return LinearForms(p11 + p22, p21 - p12, p11 - p22, p21 + p12)


def quadratic_forms(Q: Tensor, theta: Tensor, rounding: Tensor) -> tuple[QuadraticForms, NullForms]:
    """The forms of Q + theta I for symmetric Q (..., 4, 4).

    A null form is summed from the entries of Q; forming it from the coefficients of x and y would
    lose the smaller of the two. A sum that is negative by no more than ``rounding`` counts as zero.
    A null form that is positive but below twice ``rounding`` is replaced by its upper bound, so
    that the step is as long as possible with a certain decrease.
    """
    q11, q22, q33, q44 = (Q[..., i, i] for i in range(4))
    above = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    q12, q13, q14, q23, q24, q34 = (Q[..., i, j] for i, j in above)
    corners, middles = q11 + q44, q22 + q33
    diagonal = q11 + q22 + q33 + q44
    outer, inner, across = q14 + q23, q12 + q34, q13 + q24

    def null(form: Tensor) -> Tensor:
        found = form.where((form >= 0) | (form < -rounding), 0.0) / 8 + theta / 2
        return torch.where((found > 0) & (found < 2 * rounding), found + 2 * rounding, found)

    forms = QuadraticForms(
        ii=corners + 2 * q14 + 2 * theta,
        ir=q12 - q13 + q24 - q34,
        iz=q11 - q44,
        ik=q12 + q13 + q24 + q34,
        rr=middles - 2 * q23 + 2 * theta,
        zz=corners - 2 * q14 + 2 * theta,
        zk=q12 + q13 - q24 - q34,
        kk=middles + 2 * q23 + 2 * theta,
    )
    return forms, NullForms(
        boost_out=null(diagonal + 2 * (outer + inner + across)),
        boost_in=null(diagonal + 2 * (outer - inner - across)),
        flip_out=null(diagonal + 2 * (across - inner - outer)),
        flip_in=null(diagonal + 2 * (inner - across - outer)),
    )


def lightcone_forms(
    p: LinearForms, q: QuadraticForms, null: NullForms, rounding: Tensor
) -> tuple[LightconeForm, LightconeForm]:
    """The light-cone forms of boosts and of flips."""

    def form(al: Tensor, be: Tensor, out: Tensor, into: Tensor, *rest: Tensor) -> LightconeForm:
        A = _clean((al + be) / 2, out, rounding)
        B = _clean((al - be) / 2, into, rounding)
        return LightconeForm(A, B, out, into, *rest)

    p_out, p_in = (p.i + p.k) / 2, (p.i - p.k) / 2
    cross = (q.ii - q.kk) / 4
    boost = form(p.i - q.ii, p.k - q.ik, null.boost_out, null.boost_in, cross, p_out, p_in)
    p_out, p_in = (p.r - p.z) / 2, -(p.r + p.z) / 2
    cross = (q.zz - q.rr) / 4
    return boost, form(q.iz - p.z, p.r - q.ir, null.flip_out, null.flip_in, cross, p_out, p_in)


def _clean(linear: Tensor, quadratic: Tensor, rounding: Tensor) -> Tensor:
    """A linear coefficient at rounding level is zero where the quadratic one beside it is zero."""
    return torch.where((quadratic == 0) & (linear.abs() <= rounding), 0.0, linear)


def proper_matrix(x: Tensor, y: Tensor, opposite: Tensor) -> Tensor:
    """Rotations [[x, -y], [y, x]] for equal signs, boosts [[x, y], [y, x]] for opposite ones."""
    return _matrix(x, torch.where(opposite, y, -y), y, x)


def improper_matrix(x: Tensor, y: Tensor, opposite: Tensor) -> Tensor:
    """Reflections [[x, y], [y, -x]] for equal signs, flips [[-x, -y], [y, x]] for opposite ones."""
    v11 = torch.where(opposite, -x, x)
    v12 = torch.where(opposite, -y, y)
    return _matrix(v11, v12, y, -v11)


def _matrix(v11: Tensor, v12: Tensor, v21: Tensor, v22: Tensor) -> Tensor:
    return torch.stack([v11, v12, v21, v22], dim=-1).reshape(*v11.shape, 2, 2)


def above_rounding(decrease: Tensor, noise: Tensor) -> Tensor:
    """The decrease, or zero where it is no larger than its own rounding error."""
    return torch.where(decrease <= noise, 0.0, decrease)


def better(
    V: Tensor, decrease: Tensor, other: Tensor, other_decrease: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The second candidate where it is better by more than ``noise``, else the first."""
    take = other_decrease > decrease + noise
    return torch.where(take[..., None, None], other, V), torch.where(take, other_decrease, decrease)
