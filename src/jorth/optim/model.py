"""Whole models: JOBCD for parameters that are declared, any other optimiser for all the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim import Optimizer

from jorth._inputs import describe
from jorth.nn.declarations import declared
from jorth.optim.jobcd import JOBCD, SignedOptimizer


class Split(NamedTuple):
    """The parameters of a model as parameter groups, each parameter once.

    Attributes:
        j_orthogonal: ``{"params": [...], "signature": sig}`` for each signature; empty if no
            parameter is declared, which `JOBCD` refuses.
        others: One group ``{"params": [...]}`` with all others. Its list may be empty, which any
            optimiser of torch accepts.
    """

    j_orthogonal: list[dict[str, Any]]
    others: list[dict[str, Any]]


def split_parameters(model: nn.Module) -> Split:
    """Split the parameters of a model into the J-orthogonal ones and all others.

    J-orthogonal are the weights of `jorth.nn.JOrthogonalLinear` and what `jorth.nn.declare` has
    declared. The free weights of a parametrisation are others. Frozen parameters are included, as
    they may be unfrozen later.

    Args:
        model: Any module, also one that is compiled or wrapped in DistributedDataParallel.

    >>> layer = jorth.nn.JOrthogonalLinear(jorth.Signature(2, 1))
    >>> split = jorth.optim.split_parameters(torch.nn.Sequential(layer, torch.nn.Linear(3, 1)))
    >>> optimizers = [jorth.optim.JOBCD(split.j_orthogonal), torch.optim.Adam(split.others)]
    """
    kinds = {id(entry.parameter): entry for entry in declared(model)}
    groups: dict[Any, dict[str, Any]] = {}
    others = []
    for p in model.parameters():
        entry = kinds.get(id(p))
        if entry is None:
            others.append(p)
            continue
        group = groups.setdefault(
            (entry.signature, entry.columns), {"params": [], "signature": entry.signature}
        )
        group["params"].append(p)
    return Split(list(groups.values()), [{"params": others}])


class ModelOptimizer(SignedOptimizer):
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

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._share_with_parts()
