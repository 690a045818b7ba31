"""The surrogate of P = G Z^T and Q = (Z D Z^T) (x) A, formed from the two rows of G and Z.

With e+- = (1, +-1), s = z_i + z_j, d = z_i - z_j and eta+ = s^T D s, eta- = d^T D d, eta = s^T D d,
and with alpha+ = e+^T A e+, alpha- = e-^T A e-, alpha = e+^T A e-, all light-cone forms are
products of these: n+^T Q n+ = eta+ alpha+ / 4, n+^T Q n- = eta alpha / 4,
<P, N+> = (g_i + g_j) . s / 2, and so on. None of them is a difference of larger numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.plane.families import LightconeForm, QuadraticForms, Sizes, Surrogate, linear_forms


def row_surrogate(
    G: Tensor, Z: Tensor, A: Tensor, D: Tensor | None, theta: Tensor, opposite: Tensor
) -> Surrogate:
    """The surrogate for float64 rows G, Z (..., 2, m).

    A is (..., 2, 2) or (2, 2), D is (m, m) or None, theta and opposite are (...).
    """
    Y = Z @ (Z if D is None else Z @ D).mT
    P = G @ Z.mT
    boost, flip = _lightcone_forms(G, Z, A, D, theta)
    cone = (boost.out, boost.into, boost.cross, flip.out, flip.into)
    size_on_cone = sum((form.abs() for form in cone[1:]), cone[0].abs())
    size_q = Y.abs().amax(dim=(-2, -1)) * A.abs().amax(dim=(-2, -1))
    sizes = Sizes(
        p=P.abs().amax(dim=(-2, -1)),
        q=torch.where(opposite, size_on_cone, size_q),
        null_error=torch.zeros_like(size_q),
    )
    return Surrogate(linear_forms(P), _kronecker_forms(Y, A, theta), boost, flip, sizes)


def _kronecker_forms(Y: Tensor, A: Tensor, theta: Tensor) -> QuadraticForms:
    """The forms of Q = Y (x) A: see `jorth.plane.compiled.pair.kronecker_step`."""
    y11, y12, y22 = Y[..., 0, 0], Y[..., 0, 1], Y[..., 1, 1]
    a11, a12, a22 = A[..., 0, 0], A[..., 0, 1], A[..., 1, 1]
    mixed = y12 * a12
    twice = 2 * theta
    return QuadraticForms(
        ii=y11 * a11 + y22 * a22 + 2 * mixed + twice,
        ir=(y11 - y22) * a12 - y12 * (a11 - a22),
        iz=y11 * a11 - y22 * a22,
        ik=(y11 + y22) * a12 + y12 * (a11 + a22),
        rr=y11 * a22 + y22 * a11 - 2 * mixed + twice,
        zz=y11 * a11 + y22 * a22 - 2 * mixed + twice,
        zk=(y11 - y22) * a12 + y12 * (a11 - a22),
        kk=y11 * a22 + y22 * a11 + 2 * mixed + twice,
    )


def _lightcone_forms(
    G: Tensor, Z: Tensor, A: Tensor, D: Tensor | None, theta: Tensor
) -> tuple[LightconeForm, LightconeForm]:
    """The forms of boosts and flips."""
    s, d = Z[..., 0, :] + Z[..., 1, :], Z[..., 0, :] - Z[..., 1, :]
    sum_g, difference_g = G[..., 0, :] + G[..., 1, :], G[..., 0, :] - G[..., 1, :]
    weighted_s, weighted_d = (s, d) if D is None else (s @ D, d @ D)
    eta_plus, eta_minus, eta = _dot(s, weighted_s), _dot(d, weighted_d), _dot(s, weighted_d)
    a11, a12, a22 = A[..., 0, 0], A[..., 0, 1], A[..., 1, 1]
    alpha_plus, alpha_minus, alpha = a11 + 2 * a12 + a22, a11 - 2 * a12 + a22, a11 - a22
    half = theta / 2
    cross = eta * alpha / 4

    out, into = eta_plus * alpha_plus / 8 + half, eta_minus * alpha_minus / 8 + half
    p_out, p_in = _dot(sum_g, s) / 2, _dot(difference_g, d) / 2
    A_boost, B_boost = p_out - 2 * out - cross, p_in - 2 * into - cross
    boost = LightconeForm(A_boost, B_boost, out, into, cross, p_out, p_in)

    out, into = eta_plus * alpha_minus / 8 + half, eta_minus * alpha_plus / 8 + half
    p_out, p_in = -_dot(difference_g, s) / 2, -_dot(sum_g, d) / 2
    A_flip = p_out + (eta_plus * alpha + eta * alpha_minus) / 4
    B_flip = p_in + (eta * alpha_plus + eta_minus * alpha) / 4
    return boost, LightconeForm(A_flip, B_flip, out, into, cross, p_out, p_in)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dim=-1)
