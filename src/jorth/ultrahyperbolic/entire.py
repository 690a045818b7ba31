"""cosh and sinhc of a root, and arc over sine, as smooth functions across zero.

A geodesic is a hyperbola, a line or a circle by the sign of w = <v, v> / alpha^2, but one formula
has all three: C(w) = cosh sqrt(w) = cos sqrt(-w) and S(w) = sinh sqrt(w) / sqrt(w) are entire. Near
w = 0 they are summed as series, so that derivatives of every order are those of a polynomial.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEAR = 1.0
"""Below this |w| the series of S(w / 4) is summed; its last term is below 1e-19."""
SINHC = tuple(1 / math.factorial(2 * k + 1) for k in range(9))

NEAR_ARC = 0.125
"""Below this |e| the series of arc over sine is summed; its terms fall as (e / 2)^k."""


def _arc_coefficients(count: int) -> tuple[float, ...]:
    """Those of 2F1(1, 1; 3/2; -e/2) = acosh(1 + e) / sqrt(e (2 + e))."""
    found = [1.0]
    for k in range(1, count):
        found.append(-0.5 * found[-1] * k / (k + 0.5))
    return tuple(found)


ARC = _arc_coefficients(15)


def polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    """sum c_k x^k by Horner's scheme."""
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def geodesic_coefficients(form: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """c, s and h with C(w) = h^2 c and S(w) = h^2 s for w = ratio^2 form.

    h = exp(r / 2), r = sqrt(w), where r is real and large, else 1: h (h (c x + s v)) is finite
    wherever C(w) x + S(w) v is. There c and s lie between 0 and 1, and w itself may overflow.
    """
    w = ratio * (ratio * form)
    near = w.abs() < NEAR
    hyperbola, circle = w >= NEAR, w <= -NEAR
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
