"""What `training.py` compares: ways to train J-orthogonal parameters, each with its grid of rates.

A method turns the start of the parameters into a function that gives them as they are now, for the
loss, and into the optimiser that moves them. The other parameters of a model have Adam in
every method, at the same rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import jorth
from jorth import Signature

DEFAULT_RATE = 0.01
"""That of `jorth.optim.JOBCD`."""
HEAD_RATE = 0.01
NEAR_DEFAULT = (0.001, 0.003, 0.01, 0.03, 0.1)
WIDE = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
QUICK = (0.01, 0.1)

Trained = tuple[Callable[[], Sequence[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class Method:
    """How parameters are trained, at which rates, and the colour and style of its line."""

    make: Callable[[Sequence[Tensor], Signature, float], Trained]
    rates: tuple[float, ...] = WIDE
    feasible: bool = True
    line: tuple[str, Any] = ("#888888", "-")


def by_jobcd(start: Sequence[Tensor], signature: Signature, lr: float, **options: Any) -> Trained:
    X = [nn.Parameter(x.clone()) for x in start]
    return lambda: X, jorth.optim.JOBCD(X, signature, lr=lr, **options)


def by_geoopt(start: Sequence[Tensor], signature: Signature, lr: float, **options: Any) -> Trained:
    import geoopt

    from jorth.adapters.geoopt import JOrthogonal

    manifold = JOrthogonal(signature)
    X = [geoopt.ManifoldParameter(x.clone(), manifold=manifold) for x in start]
    return lambda: X, geoopt.optim.RiemannianAdam(X, lr=lr, **options)


def by_parametrization(
    register: Callable[[nn.Module, str, Signature], Any],
    start: Sequence[Tensor],
    signature: Signature,
    lr: float,
    **options: Any,
) -> Trained:
    modules = nn.ModuleList()
    for x in start:
        module = nn.Module()
        module.weight = nn.Parameter(x.clone())
        register(module, "weight", signature)
        modules.append(module)
    return (
        lambda: [module.weight for module in modules],
        torch.optim.Adam(modules.parameters(), lr=lr, **options),
    )


def by_adam(start: Sequence[Tensor], signature: Signature, lr: float) -> Trained:
    X = [nn.Parameter(x.clone()) for x in start]
    return lambda: X, torch.optim.Adam(X, lr=lr)


PAPER = partial(by_jobcd, metric="embedding")
CS = partial(by_parametrization, jorth.nn.cs_parametrization)
EXPONENTIAL = partial(by_parametrization, jorth.nn.exponential_parametrization)

METHODS = {
    "JOBCD": Method(by_jobcd, NEAR_DEFAULT, line=("#0072B2", "-")),
    "JOBCD, embedding metric": Method(PAPER, (*WIDE, 3.0, 10.0), line=("#882255", ":")),
    "geoopt RiemannianAdam on our manifold": Method(by_geoopt, line=("#D55E00", "-")),
    "CS form + Adam": Method(CS, line=("#009E73", "-")),
    "exp form + Adam": Method(EXPONENTIAL, line=("#CC79A7", "-")),
    "Adam, unconstrained": Method(by_adam, feasible=False, line=("#888888", ":")),
}
