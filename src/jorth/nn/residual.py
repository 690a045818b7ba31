"""A residual block on the pseudo-hyperboloid."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.on_points import OnPoints, Radius, without_autocast
from jorth.signature import Signature
from jorth.ultrahyperbolic.maps import between_at, geodesic_coefficients


class LorentzResidual(OnPoints):
    """x -> exp_x(g v): a step from x along a geodesic that a module chooses, g learned.

    With output="vector" the module returns any vector f(x) (..., n), and v is its tangent part
    u = f(x) + <x, f(x)>_J x / alpha^2, shortened to u / (1 + (<u, u>_J / alpha^2)^2)^(1/4). |u|_J
    grows with the norm of x; |v|_J is below alpha, and no step is longer than |g| alpha. Short
    vectors are kept but for a relative change of fourth order.

    With output="point" it returns a point of U, and v = log_x f(x): the step then ends between x
    (g = 0) and f(x) (g = 1), where their centroids lie. It comes from x and f(x), not from the
    logarithm, and keeps to U where they are far out. A pair that no geodesic joins, which q = 1
    does not have on one sheet, gives NaN.

    The ``gate`` g is 0 at first, so that any number of blocks is the identity and keeps all norms
    (ReZero, Bachlechner et al., 2021).

    Args:
        module: What gives f(x). Further arguments of a call go to it.
        signature: The signs of J, q at least 1.
        output: What the module returns, "vector" or "point".
        gate: The initial g.
        alpha: The radius of the points.
        device: The device of the gate.
        dtype: The dtype of the gate, float32 or float64; torch's default when omitted.
    """

    def __init__(
        self,
        module: nn.Module,
        signature: Signature,
        *,
        output: Literal["vector", "point"] = "vector",
        gate: float = 0.0,
        alpha: float = 1.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        if not isinstance(module, nn.Module):
            raise TypeError(f"module must be a torch.nn.Module, got {_inputs.describe(module)}")
        _inputs.check_choice(output, "output", ("vector", "point"))
        _inputs.check_dtype(dtype, optional=True)
        with torch.device("cpu"):
            self.initial_gate = _inputs.real_number(
                gate, "gate", "a number in the range of float32", lambda x: abs(x) < 3e38
            )
        self.module = module
        self.output = output
        self.gate = nn.Parameter(torch.empty((), device=device, dtype=dtype))
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
        signs, radius = self.signs(points), self.radius(alpha)
        step = between_at if self.output == "point" else _limited_step
        with without_autocast(points):
            return step(points, f, self.gate, signs, radius)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, output={self.output!r}"


def _limited_step(x: Tensor, f: Tensor, gate: Tensor, signs: Tensor, alpha: Radius) -> Tensor:
    """exp_x(g v), v = u / (1 + w^2)^(1/4), w = <u, u> / alpha^2, with the tangent part u of f at x.

    On U <u, u> = <f, f> + <x, f>^2 / alpha^2. Far out u is |x| times longer than f, and the squares
    of its own entries would cancel all their digits.
    """
    unit = x / alpha
    along = (unit * signs * f).sum(dim=-1, keepdim=True)
    size = torch.maximum(f.abs().amax(dim=-1, keepdim=True), along.abs()).detach()
    size = torch.where(size > 0, size, 1.0)
    form = ((f / size).square() * signs).sum(dim=-1, keepdim=True) + (along / size).square()
    ratio = size / alpha
    w = ratio * (ratio * form)
    share = gate / torch.hypot(torch.ones_like(w), w).sqrt()
    c, s, h = geodesic_coefficients(form, share.abs() * ratio)
    return h * (h * (c * x + s * (share * (f + along * unit))))
