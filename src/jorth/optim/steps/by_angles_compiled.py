"""The step in the invariant metric on the CPU: one compiled call per parameter, all in place."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.kernels.angles import BOOST_REACH, FIRST_GAIN, LARGEST_GAIN
from jorth.kernels.averages import LARGEST_GROWTH
from jorth.optim.steps.by_angles import sides_of, state_shapes
from jorth.optim.steps.guard import DRIFT, largest_norm, largest_residual, probes
from jorth.optim.steps.outcome import rounds_of
from jorth.optim.steps.weight_decay import pull
from jorth.signature import Signature

if TYPE_CHECKING:
    from jorth.plane.compiled.angles import Averages, Rule

STATE = ("momentum", "momentum_weight", "root", "root_weight", "gain")


def runs_compiled(group: dict[str, Any], p: Tensor) -> bool:
    """Whether `compiled_steps` is for this parameter of the group.

    It is not for subclasses of tensors, and "greedy" needs the angles of all matrices at once.
    """
    return (
        group["metric"] == "invariant"
        and group["matching"] != "greedy"
        and p.device.type == "cpu"
        and type(p) in (Tensor, torch.nn.Parameter)
    )


def compiled_steps(
    group: dict[str, Any],
    params: list[Tensor],
    gradients: list[Tensor],
    states: list[dict[str, Tensor]],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """`angle_step` for parameters (..., n, k) of one dtype and width; they and their states move.

    Returns:
        The masks ``finite`` and ``too_far`` of `Outcome`, of all their matrices in turn.
    """
    from jorth.plane.compiled.angle_step import HELD, NOT_FINITE, REFUSED, Planes, step_batch

    first = params[0]
    pairs = rounds_of(group, first).reshape(-1, 2)
    planes = Planes(pairs, *_shared(group["signature"], first.shape[-1]))
    rule = _rule(group, first.dtype)
    sides = sides_of(group, first)
    found = []
    for p, gradient, state in zip(params, gradients, states, strict=True):
        X = p.detach().contiguous()
        matrices = X.numpy().reshape(-1, *X.shape[-2:])
        G = gradient.detach().to(X.dtype).contiguous().numpy().reshape(matrices.shape)
        own = {name: state[name].contiguous() for name in state_shapes(group, p)}
        outcome = step_batch(
            matrices, G, _averages(own, len(matrices), len(sides)), _pull(group, X, sides),
            planes, rule, "left" in sides, "right" in sides,
        )  # fmt: skip
        for target, value in ((p, X), *((state[name], own[name]) for name in own)):
            if value.data_ptr() != target.data_ptr():  # it was not contiguous
                target.copy_(value)
        finite = (outcome & NOT_FINITE) == 0
        steps = state["step"].numpy()
        steps += finite.reshape(steps.shape)
        found.append((finite, (outcome & (HELD | REFUSED)) != 0))
    for param in params:  # a list of them is taken by torch 2.5 and later only
        torch.autograd.graph.increment_version(param)
    finite, too_far = zip(*found, strict=True)
    return np.concatenate(finite), np.concatenate(too_far)


def _averages(state: dict[str, Tensor], batch: int, sides: int) -> Averages:
    """The averages as arrays (b, sides, c), which share the memory of the state."""
    from jorth.plane.compiled.angles import Averages

    none = np.empty((batch, sides, 0), dtype=state["gain"].numpy().dtype)
    arrays = [state[name].numpy() if name in state else none for name in STATE]
    width = max(batch * sides, 1)
    return Averages(*(array.reshape(batch, sides, array.size // width) for array in arrays))


@lru_cache(maxsize=16)
def _shared(signature: Signature, columns: int) -> tuple[NDArray[np.float64], ...]:
    """The signs, the planes of boosts and the probes of the guard."""
    signs = signature.signs.astype(np.float64)
    boosts = (signs[:, None] != signs).astype(np.float64).reshape(-1)
    return signs, boosts, probes(columns).double().numpy()


def _pull(group: dict[str, Any], X: Tensor, sides: tuple[str, ...]) -> NDArray[np.float64]:
    """The angles (b, n^2) of the weight decay, or (0, 0)."""
    if group["weight_decay"] == 0:
        return np.empty((0, 0))
    matrices = X.reshape(-1, *X.shape[-2:])
    rows = matrices.mT if sides[0] == "right" else matrices
    share = min(float(group["lr"]) * group["weight_decay"], 1.0)
    back = pull(rows, group["signature"], group["decay_towards"], share)
    return back.flatten(1).contiguous().numpy()


def _rule(group: dict[str, Any], dtype: torch.dtype) -> Rule:
    from jorth.plane.compiled.angles import Rule

    signature, lr = group["signature"], float(group["lr"])
    return Rule(
        lr=lr,
        momentum=group["momentum"],
        decay=group["decay"],
        eps=group["eps"],
        gain_rate=group["gain_rate"],
        max_angle=group["max_angle"],
        reach=BOOST_REACH / math.sqrt(max(signature.p, signature.q, 1)),
        first_gain=FIRST_GAIN,
        largest_gain=LARGEST_GAIN,
        largest_growth=float(LARGEST_GROWTH),
        sense=-1.0 if group["maximize"] else 1.0,
        largest=torch.finfo(dtype).max,
        max_norm=float(largest_norm(dtype) if group["max_norm"] is None else group["max_norm"]),
        drift=DRIFT * torch.finfo(dtype).eps / 2,
        tolerance=largest_residual(dtype),
    )
