"""What a backend of the fused loss returns in addition to the loss."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Gradients(NamedTuple):
    """The gradients of the loss with respect to what `distance_softmax` is given."""

    signed: Tensor
    candidates: Tensor
    bias: Tensor
    truth: Tensor
    area: Tensor
