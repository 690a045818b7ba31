"""Whether Triton can be used."""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

HAS_TRITON = find_spec("triton") is not None


def runs_triton(device: torch.device) -> bool:
    """Whether kernels run on this device: CUDA, or the CPU under Triton's interpreter."""
    interpreted = device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1"
    return HAS_TRITON and (device.type == "cuda" or interpreted)
