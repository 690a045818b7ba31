"""Whether Triton can be used."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec

import torch


@cache
def has_triton() -> bool:
    """Check for a Triton that gathers within a tile: 3.2 or later, as of torch 2.6."""
    return find_spec("triton") is not None and hasattr(import_module("triton.language"), "gather")


def runs_triton(device: torch.device) -> bool:
    """Return whether kernels run on this device: CUDA, or the CPU under Triton's interpreter."""
    interpreted = device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
    return (device.type == "cuda" or interpreted) and has_triton()
