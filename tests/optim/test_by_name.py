"""One word between JOBCD, VRJOBCD and CSDM."""

import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim import make
from tests.optim.problems import Alignment

SIG = Signature(3, 2)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("j-jobcd", {"lr": 1.0}),
        ("vr-j-jobcd", {"lr": 1.0, "probability": 0.5}),
        ("csdm", {"lr": 0.05}),
    ],
)
def test_the_same_loop_runs_all_three(method, options):
    model = Alignment(SIG)
    objective = jorth.Procrustes(model.source.numpy(), model.target.numpy())
    best = jorth.minimize(objective, signature=SIG, gradient_tolerance=1e-10).value
    optimizer = make(method, model, **options)

    def closure():
        optimizer.zero_grad()
        loss = model()
        loss.backward()
        return loss

    for _ in range(400):
        loss = optimizer.step(closure)
    assert 0 <= loss.item() - best + 1e-12 < 1e-3
    assert jorth.residual(model.weight.detach(), SIG) < 100 * SIG.n * 2.0**-53


def test_a_signature_that_is_given_wins():
    layer = torch.nn.Linear(3, 3, bias=False)
    torch.nn.init.eye_(layer.weight)
    optimizer = make("j-jobcd", layer, Signature(2, 1), lr=0.1)
    assert optimizer.param_groups[0]["signature"] == Signature(2, 1)
