"""The average of a model over the steps of its training, with relations averaged on the group."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor
from torch.nn.utils import parametrize

from jorth.kge.model import UltraE
from jorth.optim import AveragedModel

MOST_STEPS = 10
"""The largest number of steps between two updates."""
STEPS = "steps"


class Average:
    """An exponential average A <- d A + (1 - d) X of all parameters X of a model, on the group.

    A mean on the group costs as much as a step, so that from a decay of 0.95 on it is taken every
    second to tenth step k, at least ten times within the time 1 / (1 - decay), with d = decay^k.
    The update after n others has at most d = (1 + n) / (10 + n), which soon forgets the start. The
    relations go to the polar factors of the mean, as by `jorth.optim.AveragedModel`.

    Args:
        plain: A model like the one that is trained, without parametrisations. It is kept.
        decay: The decay per step, in [0, 1).
    """

    def __init__(self, plain: UltraE, decay: float) -> None:
        self._plain = plain
        self._every = min(MOST_STEPS, max(1, round(0.1 / (1 - decay))))
        self._decay = decay**self._every
        self._steps = 0
        self._averaged = AveragedModel(plain, multi_avg_fn=self._mean)
        self.failure = ""
        """Why there is no average any more: the relations ran away, or jumped."""

    def _mean(self, averages: list[Tensor], values: list[Tensor], number: Tensor) -> None:
        """d A + (1 - d) X in place; the number of updates is read where the CPU has it."""
        share = max(1 - self._decay, 9 / (10 + int(self._averaged.n_averaged)))
        for average, value in zip(averages, values, strict=True):
            average.lerp_(value, share)

    @property
    def model(self) -> UltraE:
        """The average."""
        return cast(UltraE, self._averaged.module)

    @torch.no_grad()
    def update(self, model: UltraE) -> None:
        """Count a step, and let the parameters enter if it is time, unless that failed before."""
        due = self._steps % self._every == 0
        self._steps += 1
        if self.failure or not due:
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
        """The average and the numbers of steps and of updates, for a checkpoint."""
        return self._averaged.state_dict() | {STEPS: torch.tensor(self._steps)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self._steps = int(state[STEPS])
        self._averaged.load_state_dict({key: state[key] for key in state if key != STEPS})
