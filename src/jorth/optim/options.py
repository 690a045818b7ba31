"""Checks of what an optimiser is given: parameters, the options of their groups, closures."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import FLOATS, describe
from jorth.group.elements import check_feasible, finite_thin
from jorth.plane.pairs import MATCHINGS
from jorth.signature import Signature

CHOICES = {
    "curvature": ("scheduled", "per-matrix", "per-plane"),
    "metric": ("embedding", "invariant"),
    "matching": MATCHINGS,
    "side": ("left", "right", "both"),
    "components": ("start", "all"),
    "decay_towards": ("compact", "identity"),
}
RATES = {"lr": math.inf, "momentum": 1.0}
"""Options that schedulers change, and what they must be below."""
UPPER_BOUNDS = {
    "momentum": 1, "decay": 1, "eps": math.inf, "gain_rate": 1, "weight_decay": math.inf,
}  # fmt: skip
"""Options that are numbers from 0 up to, but not including, these."""
REMEDY = "; start with jorth.nn.init.j_orthogonal_, or jorth.polish what was rounded"
SPLIT = "; jorth.optim.split_parameters(model) separates what jorth.nn.declare declares from others"


FIXED = (
    "signature", "curvature", "decay", "eps", "gain_rate", "max_angle", "weight_decay",
    "decay_towards", "max_norm", "metric", "matching", "rounds_per_gradient", "side", "components",
    "maximize", "seed",
)  # fmt: skip
"""The options that schedulers leave alone."""
options_of = itemgetter(*FIXED)
"""What `check_options` has to see again where it has changed."""


def check_group(group: dict[str, Any]) -> None:
    """Check a parameter group, and turn its numbers into Python's own."""
    if group["signature"] is None:
        raise TypeError(f"signature must be a jorth.Signature, got None{SPLIT}")
    check_options(group)
    for position, p in enumerate(group["params"]):
        name = f"params[{position}]"
        try:
            _check_matrices(p.detach(), group["signature"], name)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{SPLIT}") from None
        check_width(group, p, name)


def check_rates(group: dict[str, Any]) -> None:
    """Check what schedulers change; a rate on a device is not read."""
    lr, momentum = group["lr"], group["momentum"]
    if not isinstance(lr, Tensor):
        _number(lr, "lr", RATES["lr"])
    group["momentum"] = _number(momentum, "momentum", RATES["momentum"])


def check_width(group: dict[str, Any], p: Tensor, name: str) -> None:
    """Raise a ValueError for matrices of a shape that the group does not have."""
    n = group["signature"].n
    if p.ndim < 2 or p.shape[-2] != n or not 1 <= p.shape[-1] <= n:
        expected = f"shape (..., {n}, k) with k from 1 to {n} for {group['signature']}"
        raise ValueError(f"{name} must have {expected}, got {describe(p)}")
    if p.shape[-1] < n:
        _check_thin(group, name)


def check_options(group: dict[str, Any]) -> None:
    """Check all options of a group, and turn its numbers into Python's own."""
    group["signature"] = _inputs.check_signature(group["signature"])
    if group["side"] is None:
        group["side"] = "both" if group["metric"] == "invariant" else "left"
    for name, choices in CHOICES.items():
        _inputs.check_choice(group[name], name, choices)
    for name, bound in UPPER_BOUNDS.items():
        group[name] = _number(group[name], name, bound)
    _number(group["lr"], "lr", math.inf)  # a tensor remains one, for schedulers
    group["max_angle"] = _inputs.positive_number(group["max_angle"], "max_angle")
    if group["max_norm"] is not None:
        group["max_norm"] = _inputs.positive_number(group["max_norm"], "max_norm")
    _check_metric(group)
    _inputs.check_flag(group["maximize"], "maximize")
    group["seed"] = _inputs.seed_number(group["seed"])
    rounds = group["rounds_per_gradient"]
    if rounds is not None:
        _inputs.whole_number(rounds, "rounds_per_gradient", 1)
        if group["matching"] == "greedy" and rounds != 1:
            expected = 'None or 1 for matching="greedy"'
            raise ValueError(f"rounds_per_gradient must be {expected}, got {rounds}")


def _check_matrices(p: Tensor, signature: Signature, name: str) -> None:
    """Check that a parameter is plain, has the dtype of steps, and is J-orthogonal."""
    if hasattr(p, "device_mesh") or (p.is_floating_point() and p.dtype not in FLOATS):
        expected = "a plain tensor in float32 or float64 (use autocast, and leave it unsharded)"
        raise TypeError(f"{name} must be {expected}, got {describe(p)}")
    if not p.is_meta:  # otherwise there is nothing to check yet
        check_feasible(finite_thin(p, signature, name), signature, name, remedy=REMEDY)


def _check_thin(group: dict[str, Any], name: str) -> None:
    """Raise a ValueError for options that thin matrices do not have."""
    if group["side"] == "right":
        expected = f'"left" or "both" for the thin {name}, whose rows alone have a signature'
        raise ValueError(f"side must be {expected}, got 'right'")
    if group["weight_decay"] > 0:
        raise ValueError(f"weight_decay must be 0 for the thin {name}, got {group['weight_decay']}")


def _check_metric(group: dict[str, Any]) -> None:
    """Raise a ValueError for options that the metric of the group does not have."""
    if group["metric"] == "invariant":
        if group["components"] == "all":
            expected = '"start" with metric="invariant", whose turns keep the component'
            raise ValueError(f"components must be {expected}, got 'all'")
        return
    if group["side"] == "both":
        expected = '"left" or "right" with metric="embedding"'
        raise ValueError(f"side must be {expected}, got 'both'")
    if group["weight_decay"] > 0:
        expected = '0 with metric="embedding"'
        raise ValueError(f"weight_decay must be {expected}, got {group['weight_decay']}")


def _number(value: Any, name: str, bound: float) -> float:
    """A number in [0, bound), given as such or as a tensor."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_meta:
        value = value if value.is_complex() else value.item()
    expected = f"a number in [0, {bound})"
    return _inputs.real_number(value, name, expected, lambda x: 0 <= x < bound)


def parameter_list(params: Any) -> Any:
    """The parameters or groups as a list, whose entries torch checks; a tensor is left to torch."""
    if isinstance(params, Tensor):
        return params
    if isinstance(params, torch.nn.Module):
        raise TypeError(f"params must be parameters, got the module {describe(params)}{SPLIT}")
    try:
        found = list(params)
    except (TypeError, RuntimeError):
        expected = "a list of parameters or of groups"
        raise TypeError(f"params must be {expected}, got {describe(params)}") from None
    if not found:
        found_none = f"params must hold at least one parameter, got {describe(params)}"
        raise ValueError(f"{found_none}{SPLIT}")
    return found


def check_closure(closure: object) -> None:
    """Raise a TypeError unless the closure is a function."""
    if not callable(closure):
        expected = "a function that computes the loss and its gradients"
        raise TypeError(f"closure must be {expected}, got {describe(closure)}")
