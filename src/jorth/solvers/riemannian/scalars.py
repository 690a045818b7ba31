"""Scalars that stay on a device until they are needed, and are then fetched together.

On a CPU a scalar is a float at once. On a device each fetched number makes the host wait for all
work that it has queued.
"""

from __future__ import annotations

import torch
from torch import Tensor

Scalar = float | Tensor
HOSTS = ("cpu",)
"""Where fetches cost nothing, and factorisations no more than a few products."""


def on_device(X: Tensor) -> bool:
    """Whether X is on a device, where products are fast, and factorisations and fetches slow."""
    return X.device.type not in HOSTS


def fetch(*scalars: Tensor) -> list[float]:
    """The numbers in some scalars, after one wait."""
    found: list[float] = torch.stack([scalar.double() for scalar in scalars]).tolist()
    return found


def inner(a: Tensor, b: Tensor) -> float:
    """<a, b>_F."""
    return float(torch.dot(a.flatten(), b.flatten()))


def lazy_inner(a: Tensor, b: Tensor) -> Scalar:
    """<a, b>_F, left on the device."""
    return torch.dot(a.flatten(), b.flatten()) if on_device(a) else inner(a, b)


def add_scaled(a: Tensor, factor: float, scalar: Scalar, b: Tensor) -> None:
    """a += factor scalar b."""
    if isinstance(scalar, Tensor):
        a.addcmul_(b, scalar, value=factor)
    else:
        a.add_(b, alpha=factor * scalar)
