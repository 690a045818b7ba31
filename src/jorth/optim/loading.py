"""The state of a parameter from a checkpoint, in the precision of steps.

`torch.optim.Optimizer.load_state_dict` casts floating-point state to the dtype of the parameter,
and leaves "step" as it was saved. A float32 master would lose what it is there for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from jorth.optim.working import working_dtype


class _Unrounded:
    """A tensor that torch hands on as it is, where it would cast one to the parameter's dtype."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


@contextmanager
def unrounded_state(optimizer: Optimizer) -> Iterator[None]:
    """In here `load_state_dict` does not round the state of parameters in half precision."""

    def wrap(_: Optimizer, state_dict: dict[str, Any]) -> dict[str, Any]:
        state = dict(state_dict["state"])
        for group in state_dict["param_groups"]:
            state |= {key: _wrapped(state[key]) for key in group["params"] if key in state}
        return state_dict | {"state": state}

    hook = optimizer.register_load_state_dict_pre_hook(wrap)  # after those of users
    try:
        yield
    finally:
        hook.remove()


def _wrapped(entries: dict[str, Any]) -> dict[str, Any]:
    return {k: _Unrounded(v) if isinstance(v, Tensor) else v for k, v in entries.items()}


def restored_state(p: Tensor, state: dict[str, Any]) -> dict[str, Any]:
    """The state of p from a checkpoint, on its device and in its working dtype."""
    tensors = {k: v.tensor if isinstance(v, _Unrounded) else v for k, v in state.items()}
    dtype = working_dtype(p)
    return {k: v.to(p.device, dtype) if isinstance(v, Tensor) else v for k, v in tensors.items()}
