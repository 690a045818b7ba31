"""The three ways to train a J-orthogonal parameter, by the names that `minimize` has for them."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import nn

from jorth.arrays import check_choice, describe, real_number, shown
from jorth.nn import cs_parametrization
from jorth.optim.jobcd import JOBCD
from jorth.optim.variance_reduced import VRJOBCD
from jorth.signature import Signature

OptimiserName = Literal["j-jobcd", "vr-j-jobcd", "csdm"]


def make(
    method: OptimiserName,
    module: nn.Module,
    signature: Signature | None = None,
    *,
    name: str = "weight",
    **options: Any,
) -> torch.optim.Optimizer:
    """An optimiser for the J-orthogonal parameter ``module.name``.

    The module's other parameters need their own. All three take ``lr`` and step with a closure.

    Args:
        method: "j-jobcd" is `JOBCD`, "vr-j-jobcd" is `VRJOBCD`; "csdm" is `cs_parametrization` of
            the parameter, which changes the module, and Adam on the free weights.
        module: The owner of the parameter.
        signature: The signs of J; those of the module, such as a `JOrthogonalLinear`, if omitted.
        name: The name of the parameter.
        options: Options of `JOBCD`, `VRJOBCD` or torch.optim.Adam.
    """
    check_choice(method, "method", ("j-jobcd", "vr-j-jobcd", "csdm"))
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {describe(module)}")
    found = getattr(module, "signature", None) if signature is None else signature
    if not isinstance(found, Signature):
        raise TypeError(
            f"signature must be given for a {type(module).__name__}, which has none, "
            f"got {shown(signature)}"
        )
    if method == "csdm":
        if "lr" in options:
            options["lr"] = real_number(
                options["lr"], "lr", "a number of at least 0", lambda lr: 0 <= lr < math.inf
            )
        cs_parametrization(module, name, found)
        weights = module.parametrizations[name].parameters()  # type: ignore[index, union-attr]
        return torch.optim.Adam(weights, **options)
    if not (isinstance(name, str) and isinstance(getattr(module, name, None), nn.Parameter)):
        raise ValueError(
            f"name must be that of a parameter of {type(module).__name__}, got {shown(name)}"
        )
    return (JOBCD if method == "j-jobcd" else VRJOBCD)([getattr(module, name)], found, **options)
