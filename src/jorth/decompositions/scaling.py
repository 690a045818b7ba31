"""Scaling by powers of two, which rounds nothing."""

from __future__ import annotations

import torch
from torch import Tensor


def power_of_two(size: Tensor) -> Tensor:
    """The largest power of two that is at most ``size`` >= 0, elementwise; 1 where size is 0."""
    mantissa, _ = torch.frexp(size)
    return torch.where(size > 0, size / (2 * mantissa), 1.0)
