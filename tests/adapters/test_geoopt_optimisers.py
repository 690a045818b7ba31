"""geoopt's optimisers on O(p, q)."""

import geoopt
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.adapters.geoopt import JOrthogonal
from tests.adapters.problems import INDEFINITE, least_trace, positive_definite
from tests.adapters.test_geoopt import ambient, point

UNIT = 2.0**-53


def trace(X, A):
    return (X.mT @ A @ X).diagonal(dim1=-2, dim2=-1).sum(-1)


def run(optimizer, X, A, steps):
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.985)
    for _ in range(steps):
        optimizer.zero_grad()
        trace(X, A).sum().backward()
        optimizer.step()
        schedule.step()


OPTIMISERS = {
    "sgd": (geoopt.optim.RiemannianSGD, dict(lr=0.05)),
    "momentum": (geoopt.optim.RiemannianSGD, dict(lr=0.02, momentum=0.8)),
    "nesterov, stabilised": (
        geoopt.optim.RiemannianSGD,
        dict(lr=0.02, momentum=0.8, nesterov=True, stabilize=10),
    ),
    "adam": (geoopt.optim.RiemannianAdam, dict(lr=0.1)),
    "amsgrad, stabilised": (geoopt.optim.RiemannianAdam, dict(lr=0.1, amsgrad=True, stabilize=10)),
}


@pytest.mark.parametrize(
    ("name", "signature"),
    [(name, INDEFINITE[2]) for name in OPTIMISERS]
    + [(name, signature) for name in ("sgd", "adam") for signature in INDEFINITE[::3]],
    ids=str,
)
def test_optimisers_reach_the_optimum(name, signature):
    """A batch of two problems, from the identity and from a random point."""
    n = signature.n
    As = np.stack([positive_definite(n, seed) for seed in (1, 2)])
    start = torch.stack([torch.eye(n, dtype=torch.float64), point(signature, 34, cond=4.0).data])
    X = geoopt.ManifoldParameter(start.clone(), manifold=JOrthogonal(signature))
    kind, options = OPTIMISERS[name]
    run(kind([X], **options), X, torch.from_numpy(As), 250)
    best = [least_trace(A, signature) for A in As]
    # Adam's steps are as long as the schedule leaves them: measured 1e-8
    np.testing.assert_allclose(trace(X.detach(), torch.from_numpy(As)).numpy(), best, rtol=1e-6)
    # without `stabilize` the rounding of 250 products adds up, n u each; with it, that of ten and
    # of a projection
    assert (
        jorth.residual(X.detach(), signature).max()
        <= (100 if "stabilize" in options else 250) * n * UNIT
    )


def test_a_step_does_not_project():
    """A point that is off by 1e-6 stays off: `projx` is called by `stabilize` alone."""
    signature = Signature(2, 2)
    off = point(signature, 35).data + 1e-6 * ambient(4, 36)
    found = {}
    for stabilize in (None, 1):
        X = geoopt.ManifoldParameter(off.clone(), manifold=JOrthogonal(signature))
        run(
            geoopt.optim.RiemannianSGD([X], lr=1e-3, stabilize=stabilize),
            X,
            torch.eye(4, dtype=torch.float64),
            1,
        )
        found[stabilize] = jorth.residual(X.detach(), signature)
    assert found[None] > 1e-8
    assert found[1] < 1e-15
