"""Typed states: where a run stands, and the walk over their fields that a checkpoint takes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, get_args, get_type_hints

from torch import Tensor


class Scored(NamedTuple):
    """A feasible point with its value and gradient, and the violation it had before polishing."""

    X: Tensor
    value: float
    gradient: Tensor
    violation: float


NOT_SAVED = {"saved": False}
"""Metadata for a field that a checkpoint leaves out: it can be made again from the problem."""


@dataclass
class State:
    """Where a run stands. A solver with a memory of its own adds typed fields in a subclass.

    X changes in place. It is feasible at any moment, unless the solver says that it is not.
    ``value`` and ``gradient`` are those of f at X when ``exact``; a stochastic solver has estimates
    in between. A checkpoint holds all fields but those marked `NOT_SAVED`.
    """

    X: Tensor
    value: float
    gradient: Tensor
    exact: bool = True
    unbounded: bool = False
    stalled: bool = False
    reason: str = "no step lowers f in this precision"
    """Why the run stalled, when it did."""
    curvature: float | None = None
    """The estimate of the Lipschitz constant of the gradient, if the solver keeps one."""
    scored: Scored | None = field(default=None, metadata=NOT_SAVED)
    """The polished X and f there, for a method that leaves the constraint; None if it has none."""
    complete: bool = field(default=True, metadata=NOT_SAVED)
    """False in the middle of an iteration: such a state is not saved."""
    numbers: dict[str, float] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    cache: dict[str, Any] = field(default_factory=dict, metadata=NOT_SAVED)


def pack(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """The value as JSON can hold it; every tensor in it goes into ``tensors`` under its path.

    It may be a dataclass, of which the saved fields are taken, a list, a dictionary with string
    keys, a tensor, a number, a string or None, nested in any way.
    """
    if isinstance(value, Tensor):
        tensors[path] = value.detach().clone()
        return {"tensor": path}
    if is_dataclass(value):
        names = [item.name for item in fields(value) if item.metadata.get("saved", True)]
        return {"fields": {n: pack(getattr(value, n), f"{path}.{n}", tensors) for n in names}}
    if isinstance(value, dict):
        return {"entries": {n: pack(part, f"{path}.{n}", tensors) for n, part in value.items()}}
    if isinstance(value, list):
        return [pack(part, f"{path}.{at}", tensors) for at, part in enumerate(value)]
    return value


def unpack(packed: Any, kind: Any, tensors: dict[str, Tensor]) -> Any:
    """What `pack` was given; ``kind`` is its type, from which dataclasses are made again."""
    if isinstance(packed, list):
        (of,) = get_args(kind) or (Any,)
        return [unpack(part, of, tensors) for part in packed]
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        return tensors[packed["tensor"]]
    if "entries" in packed:
        return {name: unpack(part, Any, tensors) for name, part in packed["entries"].items()}
    made = next(option for option in (kind, *get_args(kind)) if is_dataclass(option))
    hints = get_type_hints(made)
    parts = packed["fields"].items()
    return made(**{name: unpack(part, hints[name], tensors) for name, part in parts})  # type: ignore[operator]
