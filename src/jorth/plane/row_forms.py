"""The surrogate of P = G Z^T and Q = (Z D Z^T) (x) A in null coordinates, formed from the two rows of G and Z.

With e+- = (1, +-1), s = z_i + z_j, d = z_i - z_j and eta+ = s^T D s, eta- = d^T D d, eta = s^T D d, and with
alpha+ = e+^T A e+, alpha- = e-^T A e-, alpha = e+^T A e-, all forms are products of these:
n+^T Q n+ = eta+ alpha+ / 4, n+^T Q n- = eta alpha / 4, <P, N+> = (g_i + g_j) . s / 2, and so on. None of them is a
difference of larger ones.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jorth.plane.families import Lightcone, Quadratic, Sizes, linear_forms
from jorth.plane.general import solve_forms


class RowForms(NamedTuple):
    """Float64 rows G, Z (..., 2, m), A (..., 2, 2) or (2, 2), D (m, m) or None, theta (...)."""

    G: Tensor
    Z: Tensor
    A: Tensor
    D: Tensor | None
    theta: Tensor

    def solve(
        self, opposite: Tensor, all_components: bool, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """V, decrease and unbounded; ``eps`` is that of the data."""
        Z, noise = self.Z, 16 * eps
        Y = Z @ (Z if self.D is None else Z @ self.D).mT
        P = self.G @ Z.mT
        linear = linear_forms(P)
        boost, flip = self._lightcones()
        size_q = Y.abs().amax(dim=(-2, -1)) * self.A.abs().amax(dim=(-2, -1))
        on_the_cone = (
            boost.out.abs()
            + boost.into.abs()
            + boost.cross.abs()
            + flip.out.abs()
            + flip.into.abs()
        )
        sizes = Sizes(
            P.abs().amax(dim=(-2, -1)),
            torch.where(opposite, on_the_cone, size_q),
            torch.zeros_like(size_q),
        )
        quadratic = self._quadratic(Y, boost, flip)
        return solve_forms(linear, quadratic, boost, flip, sizes, opposite, all_components, noise)

    def _quadratic(self, Y: Tensor, boost: Lightcone, flip: Lightcone) -> Quadratic:
        """The forms of Q = Y (x) A: see `jorth.plane.compiled.pair.kronecker_step`."""
        y11, y12, y22 = Y[..., 0, 0], Y[..., 0, 1], Y[..., 1, 1]
        a11, a12, a22 = self.A[..., 0, 0], self.A[..., 0, 1], self.A[..., 1, 1]
        mixed, twice = y12 * a12, 2 * self.theta
        return Quadratic(
            ii=y11 * a11 + y22 * a22 + 2 * mixed + twice,
            ir=(y11 - y22) * a12 - y12 * (a11 - a22),
            iz=y11 * a11 - y22 * a22,
            ik=(y11 + y22) * a12 + y12 * (a11 + a22),
            rr=y11 * a22 + y22 * a11 - 2 * mixed + twice,
            zz=y11 * a11 + y22 * a22 - 2 * mixed + twice,
            zk=(y11 - y22) * a12 + y12 * (a11 - a22),
            kk=y11 * a22 + y22 * a11 + 2 * mixed + twice,
            boost_out=boost.out,
            boost_in=boost.into,
            flip_out=flip.out,
            flip_in=flip.into,
        )

    def _lightcones(self) -> tuple[Lightcone, Lightcone]:
        """The forms of boosts and flips."""
        s, d = self.Z[..., 0, :] + self.Z[..., 1, :], self.Z[..., 0, :] - self.Z[..., 1, :]
        sum_g, difference_g = (
            self.G[..., 0, :] + self.G[..., 1, :],
            self.G[..., 0, :] - self.G[..., 1, :],
        )
        weighted_s, weighted_d = (s, d) if self.D is None else (s @ self.D, d @ self.D)
        eta_plus, eta_minus, eta = _dot(s, weighted_s), _dot(d, weighted_d), _dot(s, weighted_d)
        a11, a12, a22 = self.A[..., 0, 0], self.A[..., 0, 1], self.A[..., 1, 1]
        alpha_plus, alpha_minus, alpha = a11 + 2 * a12 + a22, a11 - 2 * a12 + a22, a11 - a22
        half, cross = self.theta / 2, eta * alpha / 4
        out, into = eta_plus * alpha_plus / 8 + half, eta_minus * alpha_minus / 8 + half
        p_out, p_in = _dot(sum_g, s) / 2, _dot(difference_g, d) / 2
        boost = Lightcone(
            p_out - 2 * out - cross, p_in - 2 * into - cross, out, into, cross, p_out, p_in
        )
        out, into = eta_plus * alpha_minus / 8 + half, eta_minus * alpha_plus / 8 + half
        p_out, p_in = -_dot(difference_g, s) / 2, -_dot(sum_g, d) / 2
        A = p_out + (eta_plus * alpha + eta * alpha_minus) / 4
        B = p_in + (eta * alpha_plus + eta_minus * alpha) / 4
        return boost, Lightcone(A, B, out, into, cross, p_out, p_in)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(dim=-1)
