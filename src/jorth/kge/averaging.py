"""The average of a model over the last epochs of its training, its relations on the group."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch.nn.utils import parametrize

from jorth.kge.model import UltraE
from jorth.optim import AveragedModel


class Average:
    """The mean of all parameters of a model over the times at which it entered.

    The relations go to the polar factors of the mean, as by `jorth.optim.AveragedModel`.

    Args:
        plain: A model like the one that is trained, without parametrisations. It is kept.
    """

    def __init__(self, plain: UltraE) -> None:
        self._plain = plain
        self._averaged = AveragedModel(plain)

    @property
    def model(self) -> UltraE:
        """The average."""
        return cast(UltraE, self._averaged.module)

    @torch.no_grad()
    def update(self, model: UltraE) -> None:
        """Let the present parameters enter.

        Raises:
            ValueError: The relations are off the group, or too far from the average for a mean.
        """
        if parametrize.is_parametrized(model):
            for name, value in model.weights().items():
                getattr(self._plain, name).copy_(value)
            model = self._plain
        self._averaged.update_parameters(model)

    def state(self) -> dict[str, Tensor]:
        """The average and the number of updates, for a checkpoint."""
        return self._averaged.state_dict()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self._averaged.load_state_dict(state)
