"""Attention by Lorentzian inner products, with centroids as values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth._inputs import HALF
from jorth.nn.init import integer_seed
from jorth.nn.lorentz_linear import LorentzLinear, general_map_
from jorth.nn.on_points import OnPoints
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius, height, without_autocast


class LorentzAttention(OnPoints):
    """(..., L, n) -> (..., L, n): each point becomes a map of means of the points it attends to.

    Each of h heads has a hyperbolic space of d = (n - 1) / h dimensions. General linear maps (as in
    `LorentzLinear`) make queries q_i of x, and keys k_j and values v_j of the context, points of
    it. The means are the centroids of the v_j with the shares softmax_j(<q_i, k_j> / (sqrt(d)
    alpha^2)), the larger the nearer. A last `LorentzLinear`, ``out``, takes those of all heads
    together.

    Args:
        signature: The signs of J, q at least 1.
        heads: The number h of heads, which divides n - 1.
        alpha: The radius of the points.
        seed: The seed of the initial maps, as in `LorentzLinear`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    >>> sig = jorth.Signature.lorentz(5)
    >>> x = jorth.ultrahyperbolic.lift(torch.randn(2, 10, 4), sig)
    >>> jorth.nn.LorentzAttention(sig, heads=2)(x).shape
    torch.Size([2, 10, 5])
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
        self.size, rest = divmod(self.signature.n - 1, self.heads)
        if rest or not self.size:
            expected = f"a divisor of n - 1 = {self.signature.n - 1}"
            raise ValueError(f"heads must be {expected}, got {self.heads}")
        _inputs.check_dtype(dtype, optional=True)
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        shape = 3, self.signature.n - 1
        self.weight = nn.Parameter(torch.empty((*shape, self.signature.n), **place))
        self.bias = nn.Parameter(torch.empty(shape, **place))
        # points of all heads, one after the other, are a point of radius sqrt(h) alpha
        together = Signature.of([-1, *[1] * self.size] * self.heads)
        self.out = LorentzLinear(together, self.signature, alpha=alpha, **place)
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(
        self, seed: int | np.random.Generator | torch.Generator | None = None
    ) -> None:
        """Draw new maps, and set their biases to 0; nothing happens on the device "meta".

        Args:
            seed: That of the new maps; by default that of the layer.
        """
        rng = _inputs.generator(integer_seed(self.seed if seed is None else seed))
        if not self.weight.is_meta:
            general_map_(self.weight, self.signature, rng)
            nn.init.zeros_(self.bias)
        self.out.reset_parameters(rng)

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
        attended to, or floats that are added to the scores. Some point must be left to each row.
        """
        points = self.check_points(x, "x", dimensions=2, like=self.weight)
        others = points
        if context is not None:
            others = self.check_points(context, "context", dimensions=2, like=self.weight)
            if others.shape[:-2] != points.shape[:-2]:
                expected = f"the leading dimensions {tuple(points.shape[:-2])} of x"
                raise ValueError(f"context must have {expected}, got {_inputs.describe(others)}")
        radius = self.radius(alpha)
        (query,) = self._heads(points, slice(0, 1), radius)
        key, value = self._heads(others, slice(1, 3), radius)
        shape = (*query.shape[:-1], key.shape[-2])
        mask = None if attn_mask is None else self._mask(attn_mask, "attn_mask", shape, query)
        if key_padding_mask is not None:
            shape = (*shape[:-3], shape[-1])
            padding = self._mask(key_padding_mask, "key_padding_mask", shape, query)
            padding = padding[..., None, None, :]
            mask = padding if mask is None else mask + padding
        with without_autocast(query):
            signs = torch.ones_like(query[..., :1, :])
            signs[..., 0] = -1.0
            sums = nn.functional.scaled_dot_product_attention(
                query * (signs / (math.sqrt(self.size) * radius**2)), key, value, mask, scale=1.0
            )
            # the shares have the sum 1, so that -<s, s> is at least alpha^2
            square = -(sums.square() * signs).sum(dim=-1, keepdim=True)
            means = sums * (radius * square.clamp(min=radius**2).rsqrt())
        y: Tensor = self.out(means.transpose(-3, -2).flatten(-2), alpha=radius)
        return y

    def _heads(self, x: Tensor, maps: slice, radius: Radius) -> tuple[Tensor, ...]:
        """Return the points (..., heads, L, d + 1) of some of the maps, time first."""
        weight, bias = self.weight[maps], self.bias[maps]
        s = nn.functional.linear(x, weight.flatten(0, 1), bias.flatten())
        s = s.float() if s.dtype in HALF else s
        s = s.reshape(*s.shape[:-1], len(weight), self.heads, self.size)
        points = torch.cat([height(s, radius), s], dim=-1)
        return points.transpose(-4, -2).unbind(-3)

    def _mask(self, mask: Any, name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Return a mask to add to scores of a shape, -inf where one of bools is True."""
        boolean = isinstance(mask, Tensor) and mask.dtype == torch.bool
        mask = self.check_floats(mask.to(like.dtype) if boolean else mask, name).to(like.dtype)
        if mask.ndim == 0 or mask.ndim > len(shape) or not _inputs.broadcast(mask.shape, shape):
            expected = f"{shape} for the scores of x and context"
            raise ValueError(f"{name} must fit {expected}, got {_inputs.describe(mask)}")
        return torch.zeros_like(mask).masked_fill(mask != 0, -math.inf) if boolean else mask

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, heads={self.heads}"
