"""A warning when a plain optimiser has moved a J-orthogonal parameter off the group.

A hook of torch that runs after every step of every optimiser counts the steps, and looks at the
declared parameters after 1, 2, 4, 8, ... of them. Parameters, modules and optimisers are known by
weak references alone.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from jorth.group.elements import residual
from jorth.sharding import is_sharded
from jorth.signature import Signature

COUNTER = "_jorth_steps"
"""The attribute of an optimiser with the number of its steps so far."""
NO_MORE = -(2**62)
"""Its value after the warning: no number below zero is a power of two."""


class Declared(NamedTuple):
    """A J-orthogonal parameter X of a module: X^T J X = diag(columns), which is J if X is square.

    Args:
        name: As in ``JOrthogonalLinear.weight`` or, within a model, ``encoder.0.weight``.
        parameter: X (..., n, k).
        signature: The signs of J.
        columns: The signs of X^T J X.
    """

    name: str
    parameter: nn.Parameter
    signature: Signature
    columns: Signature


class Source(Protocol):
    """Something that knows parameters."""

    def parameters(self) -> Iterator[Declared]:
        """The J-orthogonal parameters there are at present."""
        ...


_watched: set[weakref.ref[Source]] = set()
_hooks: list[Any] = []


def watch(source: Source) -> None:
    """Look at the parameters of a source from now on, as long as it lives."""
    if not _hooks:
        _hooks.append(register_optimizer_step_post_hook(_after_step))
    _watched.add(weakref.ref(source, _watched.discard))


def _after_step(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    """Count the steps, and look after 1, 2, 4, ... of them; any other costs half a microsecond."""
    if torch.compiler.is_dynamo_compiling():  # a counter would compile the step anew every time
        return
    attributes = optimizer.__dict__
    attributes[COUNTER] = steps = attributes.get(COUNTER, 0) + 1
    if steps & (steps - 1) == 0:
        _look(optimizer, steps)


def _look(optimizer: Optimizer, steps: int) -> None:
    """Warn of the first parameter of the optimiser that is off the group."""
    on_device = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if on_device and torch.cuda.is_current_stream_capturing():
        return  # a CUDA graph must not read numbers
    trained = {id(p) for group in optimizer.param_groups if _moves(group) for p in group["params"]}
    for reference in tuple(_watched):
        source = reference()
        for found in () if source is None else source.parameters():
            p = found.parameter
            if id(p) not in trained or not p.requires_grad or p.grad is None:
                continue
            violation = off_group(p, found.signature, found.columns)
            if violation is not None:
                optimizer.__dict__[COUNTER] = NO_MORE
                _warn(optimizer, steps, found, violation)
                return


def _moves(group: dict[str, Any]) -> bool:
    """Whether the optimiser moves the parameters of a group at all."""
    return float(group.get("lr", 1.0)) != 0


def _warn(optimizer: Optimizer, steps: int, found: Declared, violation: float) -> None:
    kind = type(optimizer).__name__
    after = "a step" if steps == 1 else f"{steps} steps"
    warnings.warn(
        f"{found.name} {tuple(found.parameter.shape)} has left the group after {after} of {kind}: "
        f"it must be J-orthogonal for {found.signature}, and its scaled residual is "
        f"{violation:.2g}. Train it by jorth.optim.JOBCD(split.j_orthogonal) and only the others "
        f"by {kind}(split.others), split = jorth.optim.split_parameters(model), or give it a "
        "parametrisation (jorth.nn.cs_parametrization, jorth.nn.exponential_parametrization). "
        "There is no further warning for this optimiser",
        RuntimeWarning,
        stacklevel=5,  # where step was called: above are this, _look, _after_step and torch's own
    )


@torch.no_grad()
def off_group(X: Tensor, signature: Signature, columns: Signature) -> float | None:
    """The residual of X (..., n, k) if it exceeds half the digits, u^(1/2), or None.

    Most matrices are cleared by one product and one number from the device: the longest row of X
    bounds ||X||_2 from below. A tensor that has no data here or is spread over processes is not
    looked at.
    """
    if X.is_meta or X.layout is not torch.strided or not X.numel() or is_sharded(X):
        return None
    limit = (torch.finfo(X.dtype).eps / 2) ** 0.5
    gram = torch.diag(columns.vector(X))
    violation = (X.mT @ (signature.vector(X)[:, None] * X) - gram).abs().amax(dim=(-2, -1))
    longest = X.square().sum(dim=-1).amax(dim=-1).clamp(min=1.0)
    if bool((violation <= limit * longest).all()):
        return None
    exact = X.cpu().double()
    found = torch.as_tensor(residual(exact, signature, gram=torch.diag(columns.vector(exact))))
    worst = float(found.max())  # NaN if there is one
    return None if worst <= limit else worst
