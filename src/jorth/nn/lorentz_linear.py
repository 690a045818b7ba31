"""A general linear map between hyperboloids: any matrix, and the time that makes a point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.init import integer_seed
from jorth.nn.on_points import OnPoints, lifted
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius, check_q


class LorentzLinear(OnPoints):
    """(..., n) -> (..., m): s = f(W x + b) in space, and the time sqrt(alpha^2 + |s|^2) with it.

    W is any matrix, so that any torch optimiser trains it (the linear layer of Chen et al., Fully
    hyperbolic neural networks, 2022, without its bound on |s|). The map is no isometry:
    `JOrthogonalLinear` is. The activation f acts on coordinates of space, between W and the
    hyperboloid, where it costs less than in a `LorentzSpace` that follows.

    With q > 1 the result is `lift` of the m - 1 coordinates.

    Args:
        signature: The signs of the inputs, q at least 1.
        out_signature: The signs of the outputs, any with q of at least 1; by default the same.
        activation: f, a module (..., m - 1) -> (..., m - 1) such as ``torch.nn.ReLU()``; by default
            nothing is applied.
        bias: Whether to add b, 0 at first.
        alpha: The radius of the outputs.
        seed: The seed of the initial W, an integer or a generator of NumPy or torch. W is uniform
            up to 1 / sqrt(n), before an activation up to sqrt(6 / n) (He et al., 2015), and 0 for
            the coordinates of time.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    Attributes:
        weight: W (m - 1, n).
        bias: b (m - 1,) or None.

    >>> sig = jorth.Signature.lorentz(5)
    >>> layer = jorth.nn.LorentzLinear(sig, jorth.Signature.lorentz(3))
    >>> layer(jorth.ultrahyperbolic.lift(torch.ones(8, 4), sig)).shape
    torch.Size([8, 3])
    """

    bias: Tensor | None

    def __init__(  # one argument per option, as in torch's layers
        self,
        signature: Signature,
        out_signature: Signature | None = None,
        *,
        activation: nn.Module | None = None,
        bias: bool = True,
        alpha: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        given = signature if out_signature is None else out_signature
        self.out_signature = check_q(_inputs.check_signature(given, "out_signature"))
        if not (activation is None or isinstance(activation, nn.Module)):
            raise TypeError(
                f"activation must be None or a torch.nn.Module, got {_inputs.describe(activation)}"
            )
        _inputs.check_flag(bias, "bias")
        _inputs.check_dtype(dtype, optional=True)
        self.activation = activation
        place = {"device": device, "dtype": dtype}
        rows = self.out_signature.n - 1
        self.weight = nn.Parameter(torch.empty((rows, self.signature.n), **place))
        self.register_parameter("bias", nn.Parameter(torch.empty(rows, **place)) if bias else None)
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(
        self, seed: int | np.random.Generator | torch.Generator | None = None
    ) -> None:
        """Draw a new W, and set b to 0; nothing happens on the device "meta".

        Args:
            seed: That of the new W; by default that of the layer.
        """
        if self.weight.is_meta:
            return
        size = 1.0 if self.activation is None else math.sqrt(6)
        general_map_(self.weight, self.signature, self.seed if seed is None else seed, size)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, *, alpha: Radius | None = None) -> Tensor:
        """Map points x (..., n) of any radius to points (..., m) of radius alpha."""
        x = self.check_points(x, "x", like=self.weight)
        s = nn.functional.linear(x, self.weight, self.bias)
        s = s if self.activation is None else self.activation(s)
        return lifted(s, self.out_signature, self.radius(alpha))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.out_signature}, bias={self.bias is not None}"


@torch.no_grad()
def general_map_(
    weight: Tensor,
    signature: Signature,
    seed: int | np.random.Generator | torch.Generator,
    size: float = 1.0,
) -> None:
    """Fill matrices (..., m, n) with uniform numbers up to size / sqrt(n), and 0 for time."""
    bound = size / math.sqrt(signature.n)
    drawn = _inputs.generator(integer_seed(seed)).uniform(-bound, bound, tuple(weight.shape))
    drawn[..., signature.negative] = 0.0
    weight.copy_(torch.from_numpy(drawn))
