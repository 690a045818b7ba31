"""Torch functions with first derivatives only: an attempt to take second ones is an error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch


def first_derivatives_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A ``backward`` of a torch.autograd.Function whose result cannot be differentiated again.

    torch's once_differentiable lets a constant gradient pass, and second derivatives are then
    silently those of a constant slope. Here ``create_graph=True`` is an error.
    """

    @wraps(backward)
    def guarded(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled():  # within a backward: whether a graph is made of it
            message = "has first derivatives only, got a backward pass with create_graph=True"
            raise RuntimeError(f"{type(ctx).__name__.removesuffix('Backward')} {message}")
        return backward(ctx, *gradients)

    return guarded
