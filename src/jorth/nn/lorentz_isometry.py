"""An isometry of the pseudo-hyperboloid, with a radius that may be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth._inputs import HALF
from jorth.nn.linear import JOrthogonalLinear
from jorth.nn.on_points import checked_radius, without_autocast
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import check_q


class LorentzIsometry(JOrthogonalLinear):
    """y = c W x with W^T J W = J: points of radius alpha go to points of radius c alpha, c > 0.

    With an ``out_signature`` of more signs W is an isometric embedding, W^T J_out W = J. There is
    no projection onto fewer signs: it would leave U.

    W has every rotation and every translation (boost) of the space, so there is no bias: a
    Euclidean one would leave U, and a boost after W is another W. The factor c multiplies all
    distances; layers that follow take the new `radius` as their argument alpha.

    With cond=1, the default, W is a rotation at first, which keeps all distances from the origin
    for q = 1, and |s| and |t| for any q.

    Args:
        signature: The signs of J, q at least 1.
        out_signature: The signs of J_out: those of J if omitted, else at least as many of each
            kind.
        learn_radius: Whether to learn c, by its logarithm ``log_factor`` (*batch, 1), 0 at first.
        alpha: The radius of the inputs.
        batch: The shape of a batch of independent matrices; inputs are then (..., *batch, n).
        cond: The condition number of the initial matrices.
        seed: The seed of the initial matrices, as in `jorth.nn.init.j_orthogonal_`.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.
    """

    log_factor: Tensor | None

    def __init__(  # one argument per option, as in torch's layers
        self,
        signature: Signature,
        out_signature: Signature | None = None,
        *,
        learn_radius: bool = False,
        alpha: float = 1.0,
        batch: tuple[int, ...] = (),
        cond: float = 1.0,
        seed: int | np.random.Generator | torch.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_q(signature)
        _inputs.check_flag(learn_radius, "learn_radius")
        options: dict[str, Any] = dict(
            batch=batch, cond=cond, seed=seed, device=device, dtype=dtype
        )
        super().__init__(signature, out_signature, **options)
        if self.is_projection:
            expected = f"at least as many signs of each kind as {signature}"
            raise ValueError(f"out_signature must have {expected}, got {out_signature}")
        self.alpha = checked_radius(alpha, self.weight.dtype)
        factor = self.weight.new_zeros((*self.batch, 1)) if learn_radius else None
        self.register_parameter("log_factor", None if factor is None else nn.Parameter(factor))

    def reset_parameters(self, *arguments: Any, **options: Any) -> None:
        """Draw new matrices, as `JOrthogonalLinear` does, and set c to 1."""
        super().reset_parameters(*arguments, **options)
        factor = getattr(self, "log_factor", None)  # the base class calls this before there is one
        if factor is not None:
            nn.init.zeros_(factor)

    @property
    def radius(self) -> float | Tensor:
        """The radius c alpha (*batch) of the outputs; a number if it is not learned."""
        if self.log_factor is None:
            return self.alpha
        factor: Tensor = self.log_factor.exp().squeeze(-1)
        return self.alpha * factor

    def forward(self, x: Tensor) -> Tensor:
        """Map points x (..., *batch, in_features) to points y (..., *batch, out_features)."""
        halved = isinstance(x, Tensor) and x.dtype in HALF
        with without_autocast(self.weight):
            y = super().forward(x.float() if halved else x)
            return y if self.log_factor is None else y * self.log_factor.exp()

    def extra_repr(self) -> str:
        learned = self.log_factor is not None
        return f"{super().extra_repr()}, alpha={self.alpha:g}, learn_radius={learned}"
