"""Checks of what an optimiser is given: parameters, the options of their groups, closures."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from jorth.arrays import (
    check_choice,
    check_flag,
    check_signature,
    describe,
    real_number,
    seed_number,
    whole_number,
)
from jorth.kernels.pairings import MATCHINGS
from jorth.optim.guard import check_feasible

CHOICES = {
    "curvature": ("scheduled", "per-matrix", "per-plane"),
    "metric": ("embedding", "invariant"),
    "matching": MATCHINGS,
    "side": ("left", "right"),
    "components": ("start", "all"),
}
BELOW = {"momentum": 1, "decay": 1, "eps": math.inf}
"""Numbers from 0 up to, but not including, these."""


def check_group(group: dict[str, Any]) -> None:
    """Check a parameter group, and turn its numbers into plain ones."""
    signature = check_signature(group["signature"])
    for name, choices in CHOICES.items():
        check_choice(group[name], name, choices)
    for name, below in BELOW.items():
        group[name] = _number(group[name], name, below)
    _number(group["lr"], "lr", math.inf)  # stays a tensor if it is one, for schedulers
    check_flag(group["maximize"], "maximize")
    group["seed"] = seed_number(group["seed"])
    rounds = group["rounds_per_gradient"]
    if rounds is not None:
        whole_number(rounds, "rounds_per_gradient", 1)
        if group["matching"] == "greedy" and rounds != 1:
            raise ValueError(
                f'rounds_per_gradient must be None or 1 for matching="greedy", got {rounds}'
            )
    for position, p in enumerate(group["params"]):
        check_feasible(p.detach(), signature, f"params[{position}]")


def _number(value: Any, name: str, below: float) -> float:
    """A number in [0, below), or a tensor that holds one, as torch has it."""
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_meta:
        value = value if value.is_complex() else value.item()
    return real_number(value, name, f"a number in [0, {below})", lambda number: 0 <= number < below)


def listed(params: Any) -> Any:
    """Parameters as torch takes them; it refuses all others by name."""
    if isinstance(params, Tensor):
        return params
    try:
        found = list(params)
    except (TypeError, RuntimeError):
        raise TypeError(
            f"params must be a list of parameters or of groups, got {describe(params)}"
        ) from None
    if not found:
        raise ValueError(f"params must hold at least one parameter, got {describe(params)}")
    return found


def check_closure(closure: object) -> None:
    """Raise a TypeError for what cannot be called."""
    if not callable(closure):
        raise TypeError(
            "closure must be a function that computes the loss and its gradients, "
            f"got {describe(closure)}"
        )
