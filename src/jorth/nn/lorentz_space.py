"""Any torch module on the coordinates of space: activations, dropout, normalisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.on_points import OnPoints, join, lifted, split
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius


class LorentzSpace(OnPoints):
    """(..., n) -> (..., n): a module on the p coordinates of space, and time scaled to fit.

    (s, t) becomes (f(s), sqrt(alpha^2 + |f(s)|^2) t / |t|); with q = 1 time is positive. So
    ``LorentzSpace(torch.nn.ReLU(), sig)`` is an activation, and ``torch.nn.Dropout(0.1)``,
    ``torch.nn.LayerNorm(sig.p)`` or ``torch.nn.BatchNorm1d(sig.p)`` in its place are what they are
    elsewhere. Layer normalisation gives all points one distance from the origin at first.

    Args:
        module: What maps s (..., p) to a tensor of the same shape.
        signature: The signs of J, q at least 1.
        alpha: The radius of the points.

    >>> relu = jorth.nn.LorentzSpace(torch.nn.ReLU(), jorth.Signature.lorentz(3))
    >>> relu(torch.tensor([3.0, 2.0, -2.0])).square()
    tensor([5., 4., 0.])
    """

    def __init__(self, module: nn.Module, signature: Signature, *, alpha: float = 1.0) -> None:
        super().__init__(signature, alpha, None)
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, got {_inputs.describe(module)}")
        self.module = module

    def forward(self, x: Tensor, *, alpha: Radius | None = None) -> Tensor:
        """Map points x (..., n) to points of the same shape."""
        s, t = split(self.check_points(x, "x"), self.signature)
        result: Any = self.module(s)
        f = self.check_floats(result, "the module's result")
        if f.shape != s.shape:
            expected = f"the shape {tuple(s.shape)} of its input"
            raise ValueError(f"the module's result must have {expected}, got {_inputs.describe(f)}")
        vectors = f if self.signature.q == 1 else join(f, t.to(f.dtype), self.signature)
        return lifted(vectors, self.signature, self.radius(alpha))
