"""The average of a model over the steps of its training, with relations averaged on the group."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch.nn.utils import parametrize

from jorth.kge.model import UltraE
from jorth.optim import AveragedModel


class Average:
    """An exponential average A <- d A + (1 - d) X of all parameters X of a model, on the group.

    The decay d is the given one, but at step n at most (1 + n) / (10 + n), which soon forgets the
    start. The relations go to the polar factors of the mean, as by `jorth.optim.AveragedModel`.

    Args:
        plain: A model like the one that is trained, without parametrisations. It is kept.
        decay: The largest d, in [0, 1).
    """

    def __init__(self, plain: UltraE, decay: float) -> None:
        self._plain = plain
        self._decay = decay
        self._averaged = AveragedModel(plain, multi_avg_fn=self._mean)
        self.failure = ""
        """Why there is no average any more: the relations ran away, or jumped."""

    def _mean(self, averages: list[Tensor], values: list[Tensor], number: Tensor) -> None:
        """d A + (1 - d) X in place; the number of updates is read where the CPU has it."""
        step = int(self._averaged.n_averaged)
        share = max(1 - self._decay, 9 / (10 + step))
        for average, value in zip(averages, values, strict=True):
            average.lerp_(value, share)

    @property
    def model(self) -> UltraE:
        """The average."""
        return cast(UltraE, self._averaged.module)

    @torch.no_grad()
    def update(self, model: UltraE) -> None:
        """Let the present parameters enter, unless this has failed before."""
        if self.failure:
            return
        if parametrize.is_parametrized(model):
            for name, value in model.weights().items():
                getattr(self._plain, name).copy_(value)
            model = self._plain
        try:
            self._averaged.update_parameters(model)
        except ValueError as error:
            self.failure = str(error).split(":")[0]

    def state(self) -> dict[str, Tensor]:
        """The average and the number of updates, for a checkpoint."""
        return self._averaged.state_dict()

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self._averaged.load_state_dict(state)
