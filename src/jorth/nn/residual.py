"""A residual block on the pseudo-hyperboloid."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.on_points import OnPoints, lifted
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius


class LorentzResidual(OnPoints):
    """x -> lift(x + g f(x)): coordinates of space are added, and time is computed from them.

    With q = 1 the time of f(x) plays no part, so that f may return points as well as vectors.
    (`LorentzCentroid` of x and f(x), the other residual connection in use, commutes with
    isometries, but draws points together.)

    The ``gate`` g (1,) is 0 at first, so that any number of blocks is the identity and keeps all
    norms (ReZero, Bachlechner et al., 2021).

    Args:
        module: What gives f(x) (..., n). Further arguments of a call go to it.
        signature: The signs of J, q at least 1.
        gate: The initial g.
        alpha: The radius of the points.
        device: The device of the gate.
        dtype: The dtype of the gate, float32 or float64; torch's default when omitted.

    >>> sig = jorth.Signature.lorentz(3)
    >>> block = jorth.nn.LorentzResidual(jorth.nn.LorentzLinear(sig), sig)
    >>> x = jorth.ultrahyperbolic.lift(torch.ones(8, 2), sig)
    >>> torch.allclose(block(x), x)  # at the start, as the gate is 0
    True
    """

    def __init__(
        self,
        module: nn.Module,
        signature: Signature,
        *,
        gate: float = 0.0,
        alpha: float = 1.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, got {_inputs.describe(module)}")
        _inputs.check_dtype(dtype, optional=True)
        with torch.device("cpu"):
            self.initial_gate = _inputs.real_number(
                gate, "gate", "a number in the range of float32", lambda x: abs(x) < 3e38
            )
        self.module = module
        self.gate = nn.Parameter(torch.empty(1, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the gate to its initial value; the module, which is not touched, has its own."""
        nn.init.constant_(self.gate, self.initial_gate)

    def forward(
        self, x: Tensor, *arguments: Any, alpha: Radius | None = None, **options: Any
    ) -> Tensor:
        """Map points x (..., n) to points of the same shape."""
        points = self.check_points(x, "x")
        f = self.check_points(self.module(points, *arguments, **options), "the module's result")
        return lifted(points + self.gate * f, self.signature, self.radius(alpha))
