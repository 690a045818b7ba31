"""One optimiser for a whole model: JOBCD for what is declared, another one for all the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from jorth._inputs import describe
from jorth.optim.jobcd import JOBCD, lists_of_signs, same_signatures
from jorth.optim.split import split_parameters


class ModelOptimizer(Optimizer):
    """`JOBCD` for the declared parameters of a model, and any torch optimiser for all others.

    To schedulers, gradient scalers, Lightning and Accelerate this is one optimiser: its
    ``param_groups`` are those of both, J-orthogonal ones first, with one ``state`` and one
    ``state_dict``. A scheduler that multiplies the learning rate multiplies it in all groups.

    Args:
        model: A module with parameters that `jorth.nn.declare` has declared, as layers of
            `jorth.nn` have.
        others: Makes the optimiser of the other parameters from a list of groups.
        options: Options of `JOBCD`.

    Attributes:
        parts: Both optimisers, which share their groups and their state with this one; `JOBCD`
            alone if the model has no other parameters.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> model = torch.nn.Sequential(layer, torch.nn.Linear(3, 1))
    >>> adam = functools.partial(torch.optim.AdamW, lr=1e-3)
    >>> optimizer = jorth.optim.ModelOptimizer(model, adam, lr=0.01)
    """

    def __init__(
        self,
        model: nn.Module,
        others: Callable[[list[dict[str, Any]]], Optimizer] = torch.optim.Adam,
        **options: Any,
    ) -> None:
        split = split_parameters(model)
        if not split.j_orthogonal:
            expected = "have a parameter that jorth.nn.declare declares J-orthogonal"
            raise ValueError(f"model must {expected}, got {type(model).__name__} without one")
        self.parts: list[Optimizer] = [JOBCD(split.j_orthogonal, **options)]
        if split.others[0]["params"]:
            other: Any = others(split.others) if callable(others) else others
            if not isinstance(other, Optimizer):
                expected = "a function of parameter groups that returns a torch optimiser"
                raise TypeError(f"others must be {expected}, got {describe(others)}")
            self.parts.append(other)
        super().__init__([group for part in self.parts for group in part.param_groups], {})
        self._share_with_parts()

    def _share_with_parts(self) -> None:
        """Let the parts work on the groups, JOBCD on those of signatures, and the state of all."""
        for part in self.parts:
            own = isinstance(part, JOBCD)
            part.param_groups = [g for g in self.param_groups if ("signature" in g) is own]
            part.state = self.state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: one with a signature to JOBCD, others to the other optimiser."""
        if not any(param_group is group for part in self.parts for group in part.param_groups):
            own = "signature" in param_group
            part = self.parts[0 if own else -1]
            if isinstance(part, JOBCD) is not own:
                expected = "have a signature, as the model had no other parameters"
                raise ValueError(f"param_group must {expected}, got {list(param_group)}")
            part.add_param_group(param_group)
            param_group = part.param_groups[-1]
        super().add_param_group(param_group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step of both; return the loss if there is a closure, called first."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> dict[str, Any]:
        """As torch's, with signatures as lists of signs, which `torch.load` accepts."""
        return lists_of_signs(super().state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As torch's; the signatures must be those of the groups."""
        super().load_state_dict(same_signatures(state_dict, self.param_groups))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._share_with_parts()
