"""From coordinates (x, y) in a family to matrices V, and the choice between two candidates."""

from __future__ import annotations

import torch
from torch import Tensor


def proper_matrix(x: Tensor, y: Tensor, opposite: Tensor) -> Tensor:
    """Rotations [[x, -y], [y, x]] for equal signs, boosts [[x, y], [y, x]] for opposite ones."""
    return _matrix(x, torch.where(opposite, y, -y), y, x)


def improper_matrix(x: Tensor, y: Tensor, opposite: Tensor) -> Tensor:
    """Reflections [[x, y], [y, -x]] for equal signs, flips [[-x, -y], [y, x]] for opposite ones."""
    return _matrix(
        torch.where(opposite, -x, x), torch.where(opposite, -y, y), y, torch.where(opposite, x, -x)
    )


def above_rounding(decrease: Tensor, noise: Tensor) -> Tensor:
    """The decrease, or zero where it is no larger than its own rounding error."""
    return torch.where(decrease <= noise, 0.0, decrease)


def better(
    V: Tensor, decrease: Tensor, other: Tensor, other_decrease: Tensor, noise: Tensor
) -> tuple[Tensor, Tensor]:
    """The second candidate where it is better by more than ``noise``, else the first."""
    take = other_decrease > decrease + noise
    return torch.where(take[..., None, None], other, V), torch.where(take, other_decrease, decrease)


def _matrix(v11: Tensor, v12: Tensor, v21: Tensor, v22: Tensor) -> Tensor:
    return torch.stack([v11, v12, v21, v22], dim=-1).reshape(*v11.shape, 2, 2)
