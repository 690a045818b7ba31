"""Multinomial logistic regression: logits from signed distances to hyperplanes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jorth import _inputs
from jorth.nn.init import integer_seed
from jorth.nn.on_points import OnPoints, join
from jorth.signature import Signature
from jorth.ultrahyperbolic.points import Radius, without_autocast


class HyperbolicMLR(OnPoints):
    """(..., n) -> (..., classes): |z| times the signed distance of x from a hyperplane per class.

    The hyperplane {y : <w, y>_J = 0} has the spacelike unit normal w = (cosh(r) z / |z|, sinh(r) b
    / |b|), r = |b| / alpha, from ``normal`` z (classes, p) and ``offset`` b (classes, q), and x is
    alpha asinh(<w, x>_J / alpha) away from it (Ganea et al., Hyperbolic neural networks, 2018;
    Mishne et al., The numerical stability of hyperbolic representation learning, 2023).

    At first offsets are 0 and normals random with E |z|^2 = 1.

    Args:
        signature: The signs of J, p and q at least 1.
        classes: The number of logits.
        alpha: The radius of the points.
        seed: The seed of the initial normals, an integer or a NumPy generator.
        device: The device of the parameters.
        dtype: The dtype of the parameters, float32 or float64; torch's default when omitted.

    >>> sig = jorth.Signature.lorentz(3)
    >>> x = jorth.ultrahyperbolic.lift(torch.ones(8, 2), sig)
    >>> jorth.nn.HyperbolicMLR(sig, classes=10)(x).shape
    torch.Size([8, 10])
    """

    def __init__(
        self,
        signature: Signature,
        classes: int,
        *,
        alpha: float = 1.0,
        seed: int | np.random.Generator = 0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(signature, alpha, device)
        signature = self.signature
        if signature.p == 0:
            expected = "p of at least 1 for hyperplanes"
            raise ValueError(f"signature must have {expected}, got {signature}")
        self.classes = _inputs.whole_number(classes, "classes", 1)
        _inputs.check_dtype(dtype, optional=True)
        shapes = (self.classes, signature.p), (self.classes, signature.q)
        self.normal, self.offset = (
            nn.Parameter(torch.empty(shape, device=device, dtype=dtype)) for shape in shapes
        )
        self.seed = integer_seed(seed)
        self.reset_parameters()

    def reset_parameters(self, seed: int | np.random.Generator | None = None) -> None:
        """Draw new normals, and set the offsets to 0; nothing happens on the device "meta".

        Args:
            seed: That of the new normals; by default that of the layer.
        """
        rng = _inputs.generator(self.seed if seed is None else seed)
        if self.normal.is_meta:
            return
        drawn = rng.standard_normal(self.normal.shape) / math.sqrt(self.signature.p)
        with torch.no_grad():
            self.normal.copy_(torch.from_numpy(drawn))
        nn.init.zeros_(self.offset)

    def forward(self, x: Tensor, *, alpha: Radius | None = None) -> Tensor:
        """Return the logits (..., classes) of points x (..., n)."""
        with without_autocast(self.normal):
            x = self.check_points(x, "x", like=self.normal)
            radius = self.radius(alpha)
            tiny = torch.finfo(x.dtype).tiny  # instead of 0, where quotients have limits
            length = torch.linalg.vector_norm(self.normal, dim=-1, keepdim=True).clamp(min=tiny)
            b = self.offset / radius
            if self.signature.q == 1:
                cosh, sinh = b.cosh(), b.sinh()
            else:
                r = torch.linalg.vector_norm(b, dim=-1, keepdim=True).clamp(min=tiny)
                cosh, sinh = r.cosh(), r.sinh() / r * b
            # |z| J w, whose products are |z| <w, x>
            rows = join(cosh * self.normal, -length * sinh, self.signature)
            scale = radius * length.squeeze(-1)
            logits: Tensor = scale * torch.asinh(x @ rows.mT / scale)
            return logits

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, classes={self.classes}"
