"""How far every plane turns in a step: angles from slopes, with a gain that learns their scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from jorth.plane.averages import LARGEST_GROWTH, SlopeAverages
from jorth.signature import Signature

FIRST_GAIN = 0.1
"""A run begins with a tenth of its angle, while directions are those of one or two gradients."""
LARGEST_GAIN = 100.0
BOOST_REACH = 0.25
"""The rapidity of a row's boost, all its planes together, over the angle of a rotation.

Rotations keep norms; boosts that follow noise carry X outwards, the faster the more planes there
are: Brownian motion in H^n drifts by (n - 1) / 2 per unit of time.
"""


@dataclass(frozen=True)
class AngleRule:
    """The options of a step of `jorth.optim.JOBCD` that make angles of slopes."""

    lr: float
    momentum: float
    decay: float
    eps: float
    gain_rate: float
    max_angle: float


def kinds(signature: Signature, like: Tensor) -> Tensor:
    """(n, n), 1 for the planes of boosts and 0 for those of rotations."""
    signs = signature.vector(like)
    return (signs[:, None] != signs).to(like.dtype)


def next_angles(
    S: Tensor, averages: SlopeAverages, gain: Tensor, rule: AngleRule, signature: Signature
) -> Tensor:
    """The angles (b, sides, n, n), float64, after new slopes S of that shape.

    Theta_ij = lr gain reach D_ij with D = M / r, clipped to ``max_angle``; D_ij is near +-1 where
    the slopes of a plane agree, and near 0 where they are noise. Without ``averages.root`` it is
    lr M_ij. The gain (b, sides, 2) of rotations and of boosts grows while new slopes point where
    the last step went, and shrinks while they point back (Jacobs, delta-bar-delta, 1988; Baydin et
    al., hypergradient descent, 2018). Averages and gains change in place; slopes that are not
    finite change nothing, and their angles are zero.
    """
    boosts = kinds(signature, S.new_zeros((), dtype=torch.float64))
    finite = torch.isfinite(S).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    before = averages.direction(eps=rule.eps)
    slopes = averages.update(
        S, momentum=rule.momentum, decay=rule.decay, largest_growth=LARGEST_GROWTH
    )
    D = torch.where(finite, averages.direction(eps=rule.eps), 0.0)
    if averages.root is not None:
        if rule.gain_rate > 0:
            _adapt(gain, before, slopes, boosts, rule.gain_rate)
        reach = BOOST_REACH / math.sqrt(max(signature.p, signature.q, 1))
        turns, pushes = gain[..., :1, None].double(), gain[..., 1:, None].double()
        D = D * ((1 - boosts) * turns + (reach * boosts) * pushes)
    return (rule.lr * D).clamp(-rule.max_angle, rule.max_angle)


def _adapt(gain: Tensor, before: Tensor, slopes: Tensor, boosts: Tensor, rate: float) -> None:
    """gain <- gain exp(rate c), in place, c the cosine between the last step and the new slopes."""
    for kind, mask in enumerate((1 - boosts, boosts)):
        a, b = before * mask, slopes * mask
        size = torch.linalg.matrix_norm(a) * torch.linalg.matrix_norm(b)
        cosine = torch.where(size > 0, (a * b).sum(dim=(-2, -1)) / size, 0.0)
        grown = gain[..., kind].double() * (rate * cosine).exp()
        gain[..., kind] = grown.clamp(1 / LARGEST_GAIN, LARGEST_GAIN)
