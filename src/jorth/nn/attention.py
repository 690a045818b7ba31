"""Attention by Lorentzian inner products, with centroids as values."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.init import integer_seed
from jorth.nn.linear import JOrthogonalLinear
from jorth.nn.on_points import OnPoints, Radius, broadcast, without_autocast
from jorth.signature import Signature
from jorth.ultrahyperbolic.means import centroid_at, normalise_at


class LorentzAttention(OnPoints):
    """(..., L, n) -> (..., L, n): each point becomes a mean of the points it attends to.

    Head h has isometries Q_h (``query.weight``), V_h (``value.weight``) and a positive scale b_h.
    Points y_j of the context get the shares softmax_j(b_h <Q_h x, y_j>_J / alpha^2), the larger the
    nearer they are to Q_h x: -<x, y>_J / alpha^2 is cosh of the distance over alpha, or cos. The
    result is the centroid over h of the centroids of the V_h y_j with these shares.

    Isometries for keys and outputs would add nothing: <Q x, K y> = <K^-1 Q x, y>, and centroids
    commute with isometries. At first both are rotations of the positive coordinates (of all for
    p = 0), which leave the directions of time alone. Averages draw points together; inside
    `LorentzResidual` the layer keeps distances at first.

    Sums are timelike, and centroids exist, for q = 1 with all points on one sheet and for p = 0.
    Elsewhere points must not be spread too widely; a result without a centroid is NaN.

    Args:
        signature: The signs of J, q at least 1.
        heads: The number of heads.
        alpha: The radius of the points.
        seed: The seed of the initial isometries, as in `jorth.nn.init.j_orthogonal_`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.
    """

    def __init__(
        self,
        signature: Signature,
        heads: int = 1,
        *,
        alpha: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        self.heads = _inputs.whole_number(heads, "heads", 1)
        options: dict[str, Any] = dict(batch=(self.heads,), device=device, dtype=dtype)
        self.query = JOrthogonalLinear(signature, **options)
        self.value = JOrthogonalLinear(signature, **options)
        self.log_scale = nn.Parameter(self.query.weight.new_empty(self.heads))
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(
        self, seed: int | np.random.Generator | torch.Generator | None = None
    ) -> None:
        """Draw new isometries, and set the scales to 1 / sqrt(n); nothing happens on "meta".

        Args:
            seed: That of the new isometries; by default that of the layer.
        """
        seed = self.seed if seed is None else seed
        rng = seed if isinstance(seed, torch.Generator) else _inputs.generator(seed)
        if self.log_scale.is_meta:
            return
        for layer in (self.query, self.value):
            layer.reset_parameters(rng)
            self._fix_time(layer.weight)
        nn.init.constant_(self.log_scale, -0.5 * math.log(self.signature.n))

    @torch.no_grad()
    def _fix_time(self, weight: Tensor) -> None:
        """Make rotations those of the positive coordinates alone, if there are any."""
        if self.signature.p > 0:
            minus = torch.tensor(self.signature.negative, device=weight.device)
            block = torch.eye(len(minus), dtype=weight.dtype, device=weight.device)
            weight[..., minus[:, None], minus] = block

    def forward(
        self,
        x: Tensor,
        context: Tensor | None = None,
        *,
        attn_mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        alpha: Radius | None = None,
    ) -> Tensor:
        """Attend from x (..., L, n) to the context (..., S, n), by default x itself.

        The masks are those of `torch.nn.MultiheadAttention`: ``attn_mask`` (L, S) or
        (..., heads, L, S) and ``key_padding_mask`` (..., S), True where a point must not be
        attended to, or floats that are added to the scores. A row without any point left is NaN.
        """
        with without_autocast(self.log_scale):
            check = partial(self.check_points, dimensions=2, like=self.log_scale)
            points = check(x, "x")
            others = points if context is None else check(context, "context")
            if not broadcast(others.shape[:-2], points.shape[:-2]):
                found = f"{_inputs.describe(others)} and {_inputs.describe(points)}"
                raise ValueError(f"context must broadcast against x, got {found}")
            radius = self.radius(alpha)
            signs = self.signs(points)
            scale = (self.log_scale.exp() / radius**2)[:, None, None]
            queries = (points.unsqueeze(-3) @ self.query.weight.mT) * (scale * signs)
            values = others.unsqueeze(-3) @ self.value.weight.mT
            scores = queries @ others.unsqueeze(-3).mT
            if attn_mask is not None:
                scores = scores + self._mask(attn_mask, "attn_mask", scores)
            if key_padding_mask is not None:
                padding = self._mask(key_padding_mask, "key_padding_mask", scores[..., 0, 0, :])
                scores = scores + padding[..., None, None, :]
            sums = scores.softmax(dim=-1) @ values
            # the weights have the sum 1, so that for q = 1 -<s, s> is at least alpha^2
            least = 1.0 if self.signature.q == 1 else 0.0
            means = normalise_at(sums, signs, radius, least=least).transpose(-3, -2)
            if self.heads == 1:
                return means.squeeze(-2)
            return centroid_at(means, means.new_ones(self.heads), signs, radius)

    def _mask(self, mask: Any, name: str, scores: Tensor) -> Tensor:
        """Return a mask to add to the scores, -inf where one of bools is True."""
        boolean = isinstance(mask, Tensor) and mask.dtype == torch.bool
        mask = self.check_floats(mask.to(scores.dtype) if boolean else mask, name)
        if mask.ndim == 0 or mask.ndim > scores.ndim or not broadcast(mask.shape, scores.shape):
            wanted = f"{tuple(scores.shape)} for the scores of x and context"
            raise ValueError(f"{name} must fit {wanted}, got {_inputs.describe(mask)}")
        return torch.zeros_like(mask).masked_fill(mask != 0, -math.inf) if boolean else mask

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, heads={self.heads}"
