"""A transformer layer on the pseudo-hyperboloid."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.attention import LorentzAttention
from jorth.nn.init import integer_seed
from jorth.nn.lorentz_linear import LorentzLinear
from jorth.nn.lorentz_space import LorentzSpace
from jorth.nn.on_points import OnPoints, lifted
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius


class LorentzTransformerLayer(OnPoints):
    """(..., L, n) -> (..., L, n): attention, then two `LorentzLinear`, each added to its input.

    It is `torch.nn.TransformerEncoderLayer` with ``norm_first=True``, on points: x becomes
    lift(x + dropout(attention(norm(x)))) and this y lift(y + dropout(contract(expand(norm(y))))),
    where norm is a layer normalisation of space, and expand ends in an activation and dropout.

    Args:
        signature: The signs of J, p and q at least 1.
        heads: The number of heads, which divides n - 1.
        hidden: The dimension of the hyperbolic space between ``expand`` and ``contract``; by
            default 4 (n - 1).
        dropout: The share of coordinates that are set to 0 in training.
        activation: The activation of ``expand``; by default a `torch.nn.GELU`.
        alpha: The radius of the points.
        seed: The seed of the initial maps, as in `LorentzLinear`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    >>> sig = jorth.Signature.lorentz(5)
    >>> x = jorth.ultrahyperbolic.lift(torch.randn(2, 10, 4), sig)
    >>> later = torch.ones(10, 10, dtype=torch.bool).triu(1)
    >>> jorth.nn.LorentzTransformerLayer(sig, heads=2)(x, attn_mask=later).shape
    torch.Size([2, 10, 5])
    """

    def __init__(  # one argument per option, as in torch's layers
        self,
        signature: Signature,
        heads: int = 1,
        *,
        hidden: int | None = None,
        dropout: float = 0.1,
        activation: nn.Module | None = None,
        alpha: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        signature = self.signature
        if signature.p == 0:
            expected = "p of at least 1 for normalisation"
            raise ValueError(f"signature must have {expected}, got {signature}")
        _inputs.check_count(hidden, "hidden")
        place: dict[str, Any] = dict(device=device, dtype=dtype)
        options: dict[str, Any] = dict(alpha=alpha, **place)
        expected = "a number from 0 to 1"
        share = _inputs.real_number(dropout, "dropout", expected, lambda x: 0 <= x <= 1)
        self.dropout = nn.Dropout(share)
        function = nn.Sequential(nn.GELU() if activation is None else activation, self.dropout)
        inner = Signature.lorentz(1 + (hidden or 4 * (signature.n - 1)))
        self.attention = LorentzAttention(signature, heads, **options)
        self.expand = LorentzLinear(signature, inner, activation=function, **options)
        self.contract = LorentzLinear(inner, signature, **options)
        self.norm1, self.norm2 = (
            LorentzSpace(nn.LayerNorm(signature.p, **place), signature, alpha=alpha)
            for _ in range(2)
        )
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(
        self, seed: int | np.random.Generator | torch.Generator | None = None
    ) -> None:
        """Draw new maps, and reset biases and normalisations.

        Args:
            seed: That of the new maps; by default that of the layer.
        """
        rng = _inputs.generator(integer_seed(self.seed if seed is None else seed))
        for layer in (self.attention, self.expand, self.contract):
            layer.reset_parameters(rng)
        for norm in (self.norm1, self.norm2):
            norm.module.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor,
        *,
        attn_mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        alpha: Radius | None = None,
    ) -> Tensor:
        """Map points x (..., L, n) to points of the same shape; masks are as in the attention."""
        x = self.check_points(x, "x", dimensions=2, like=self.expand.weight)
        radius = self.radius(alpha)
        masks = dict(attn_mask=attn_mask, key_padding_mask=key_padding_mask)
        y = self.attention(self.norm1(x, alpha=radius), **masks, alpha=radius)
        x = lifted(x + self.dropout(y), self.signature, radius)
        y = self.contract(self.expand(self.norm2(x, alpha=radius), alpha=radius), alpha=radius)
        return lifted(x + self.dropout(y), self.signature, radius)
