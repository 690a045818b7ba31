"""What can be proved of a quadratic f on X^T J X = J: attained, bounded below, or unbounded."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

import torch
from torch import Tensor

from jorth._inputs import frobenius
from jorth.objectives import QuadraticForm
from jorth.objectives.quadratic import is_definite
from jorth.signature import Signature

CLEARLY = 1e-10
"""A share of ||A||_F. A null vector x proves that f is unbounded if x^T A x is below minus that."""


class Proof(Enum):
    """What is known of f on the feasible set."""

    ATTAINED = auto()
    """f grows with ||X|| in every direction, so that it has a minimum."""
    BOUNDED = auto()
    """f is bounded below; whether it has a minimum is open."""
    UNBOUNDED = auto()
    """f falls without bound along some boost."""


def prove(form: QuadraticForm, signature: Signature) -> Proof | None:
    """What the pencil A - mu J tells about f = 1/2 tr(X^T A X D) + <C, X>; None if it is open.

    X^T J X is fixed, so that A can be replaced by A - mu J. If this is positive definite for some
    mu, f grows with ||X||^2. If it is not even semidefinite for any mu, there is a null vector x,
    x^T J x = 0, with x^T A x < 0, and f falls like -e^(2 mu) along a boost that stretches x. For an
    indefinite D nothing is known.
    """
    if signature.p == 0 or signature.q == 0:
        return Proof.ATTAINED
    sign = _sign_of(form.D)
    if sign == 0:
        return None
    from jorth.linalg.definite import is_definite_pencil

    A = sign * form.A.detach().double().cpu()
    size = frobenius(A)
    if size == 0:
        return Proof.BOUNDED if form.C is None else None
    A = A / size
    unit = torch.eye(len(A), dtype=A.dtype)
    rounding = 16 * torch.finfo(form.A.dtype).eps

    def definite(shift: float) -> bool:
        return is_definite_pencil((A + shift * unit).numpy(), signature.signs)

    if definite(-rounding):
        return Proof.ATTAINED
    if not definite(max(CLEARLY, rounding)):
        return Proof.UNBOUNDED
    return Proof.BOUNDED if form.C is None and definite(rounding) else None


def _sign_of(D: Tensor | None) -> int:
    """1 or -1 if D is positive or negative definite, else 0; None is the identity."""
    if D is None:
        return 1
    return next((sign for sign in (1, -1) if is_definite(sign * D)), 0)


class Plane(NamedTuple):
    """F(u) = A u + B / u + C u^2 + D / u^2 along the boosts of every pair of rows, (pairs,) each.

    ``noise`` is what rounding may change in a coefficient.
    """

    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor
    noise: Tensor

    def falls_without_bound(self, *, all_components: bool) -> bool:
        """Whether some F falls to minus infinity, for u > 0 or for any u."""
        ends = ((self.A, self.C), (self.B, self.D))
        linear = [abs(slope) if all_components else -slope for slope, _ in ends]
        return any(
            bool(((square < -self.noise) | ((square <= self.noise) & (fall > self.noise))).any())
            for fall, (_, square) in zip(linear, ends, strict=True)
        )

    def levels_off(self) -> bool:
        """Whether some F is flat towards one end, and so approaches a value there."""
        flat = [
            (abs(slope) <= self.noise) & (abs(square) <= self.noise)
            for slope, square in ((self.A, self.C), (self.B, self.D))
        ]
        return bool((flat[0] ^ flat[1]).any())


def planes(form: QuadraticForm, X: Tensor, signs: Tensor, *, flip: bool = False) -> Plane:
    """The coefficients for boosts of all pairs of rows of opposite signs, (p q,) each.

    With ``flip`` the first row of a pair changes its sign after the boost.
    """
    i, j = torch.meshgrid(*((signs == sign).nonzero()[:, 0] for sign in (1, -1)), indexing="ij")
    i, j = i.flatten(), j.flatten()
    side = -1.0 if flip else 1.0
    A = form.A
    XD = X if form.D is None else X @ form.D
    G = A @ XD if form.C is None else A @ XD + form.C
    squares, slopes = [], []
    for turn in (1.0, -1.0):
        half = (X[i] + turn * X[j]) / 2  # what u or 1 / u stretches
        half_d = (XD[i] + turn * XD[j]) / 2
        along = A[i, i] + 2 * side * turn * A[i, j] + A[j, j]
        squares.append(along * (half * half_d).sum(1) / 2)
        rest = side * (G[i] - A[i, i, None] * XD[i] - A[i, j, None] * XD[j])
        rest = rest + turn * (G[j] - A[j, i, None] * XD[i] - A[j, j, None] * XD[j])
        slopes.append((rest * half).sum(1))
    size = form.size() * X.square().sum(1).max() * len(X)
    noise = 4 * torch.finfo(X.dtype).eps * size * torch.ones_like(slopes[0])
    return Plane(slopes[0], slopes[1], squares[0], squares[1], noise)
