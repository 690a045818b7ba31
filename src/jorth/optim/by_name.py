"""`make`: an optimiser by the name that `minimize` has for its method."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from jorth._inputs import check_choice, describe, nonnegative_number, suggestion
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

    The module's other parameters need an optimiser of their own. Every method takes ``lr``, and its
    ``step`` takes a closure.

    Args:
        method: "j-jobcd" is `JOBCD`, "vr-j-jobcd" is `VRJOBCD`; "csdm" is `cs_parametrization` of
            the parameter, which changes the module, and Adam on the free weights.
        module: The owner of the parameter.
        signature: The signs of J; by default ``module.signature``, as of a `JOrthogonalLinear`.
        name: The name of the parameter.
        options: Options of `JOBCD`, `VRJOBCD` or torch.optim.Adam.
    """
    check_choice(method, "method", ("j-jobcd", "vr-j-jobcd", "csdm"))
    if not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {describe(module)}")
    owner = type(module).__name__
    own = getattr(module, "signature", None)
    signs = own if signature is None else signature
    if not isinstance(signs, Signature):
        expected = f"given for a {owner}, which has none"
        raise TypeError(f"signature must be {expected}, got {describe(signature)}")
    if method == "csdm":
        if "lr" in options:
            options["lr"] = nonnegative_number(options["lr"], "lr")
        cs_parametrization(module, name, signs)
        weights = module.parametrizations[name].parameters()  # type: ignore[index, union-attr]
        return torch.optim.Adam(weights, **options)
    if not (isinstance(name, str) and isinstance(getattr(module, name, None), nn.Parameter)):
        found = f"{describe(name)}{suggestion(name, dict(module.named_parameters()))}"
        raise ValueError(f"name must be that of a parameter of {owner}, got {found}")
    optimiser = JOBCD if method == "j-jobcd" else VRJOBCD
    return optimiser([getattr(module, name)], signs, **options)
