"""The parameters of a model as groups for JOBCD and for any other optimiser."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import nn

from jorth.nn.declarations import declared


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
