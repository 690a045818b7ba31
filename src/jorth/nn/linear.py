"""A linear layer that preserves x^T J y."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import arrays
from jorth.nn.init import j_orthogonal_
from jorth.signature import Signature


class JOrthogonalLinear(nn.Module):
    """y = W x + b with W^T J W = J, so that <y, y'>_J = <x, x'>_J without a bias.

    Train ``weight`` with `jorth.optim.JOBCD` or `jorth.optim.VRJOBCD`, or under a parametrisation
    (`cs_parametrization`, `exponential_parametrization`) with any optimiser; a plain optimiser
    would leave the group.

    Args:
        signature: The signs of J; inputs and outputs have n features.
        bias: Whether to add a bias (*batch, n), which starts at zero.
        batch: The shape of a batch of independent matrices; inputs are then (..., *batch, n).
        cond: The condition number of the initial matrices.
        seed: The seed of the initial matrices, as in `jorth.nn.init.j_orthogonal_`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        signature: Signature,
        *,
        bias: bool = False,
        batch: tuple[int, ...] = (),
        cond: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.signature = arrays.check_signature(signature)
        arrays.check_flag(bias, "bias")
        self.batch = arrays.batch_sizes(batch)
        self.cond = cond
        arrays.check_dtype(dtype, optional=True)
        arrays.check_device(device)
        n = signature.n
        self.weight = nn.Parameter(torch.empty((*self.batch, n, n), device=device, dtype=dtype))
        if bias:
            self.bias = nn.Parameter(torch.empty((*self.batch, n), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters(seed)

    def reset_parameters(self, seed: int | np.random.Generator | torch.Generator = 0) -> None:
        """Draw new matrices and set the bias to zero; nothing happens on the device "meta"."""
        if self.weight.is_meta:
            return
        j_orthogonal_(self.weight, self.signature, cond=self.cond, seed=seed)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., *batch, n) to y of the same shape."""
        weight = self.weight
        if not isinstance(x, Tensor) or x.device != weight.device or x.layout != torch.strided:
            raise TypeError(
                f"x must be a dense tensor on {weight.device}, got {arrays.describe(x)}"
            )
        if x.dtype != weight.dtype and not torch.is_autocast_enabled(x.device.type):
            raise TypeError(
                f"x must have the layer's dtype {weight.dtype}, got {arrays.describe(x)}"
            )
        wanted = (*self.batch, self.signature.n)
        if tuple(x.shape[x.ndim - len(wanted) :]) != wanted:
            shape = ", ".join(["...", *map(str, wanted)])
            raise ValueError(f"x must have shape ({shape}), got {arrays.describe(x)}")
        if not self.batch:
            return nn.functional.linear(x, weight, self.bias)
        y = (weight @ x[..., None])[..., 0]
        return y if self.bias is None else y + self.bias

    def extra_repr(self) -> str:
        return f"{self.signature}, batch={self.batch}, bias={self.bias is not None}"
