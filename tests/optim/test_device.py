"""The optimiser on a CUDA device: the steps of the CPU, in one launch, and nothing waits for it."""

import math
import warnings

import pytest
import torch

from jorth.optim import JOBCD
from tests.optim.device_steps import check_one_launch, check_options, gradients, setting

pytestmark = pytest.mark.gpu
DTYPES = [torch.float64, torch.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "b"), [(2, 1), (4, 1), (4, 1000), (8, 1), (8, 1000), (33, 1), (33, 1000), (64, 20)]
)
def test_one_launch_equals_the_cpu(n, b, dtype):
    check_one_launch("cuda", n, b, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_options_of_one_launch(dtype):
    check_options("cuda", dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "b", "options"),
    [
        (128, 2, {}),
        (200, 1, {}),
        (256, 2, {}),
        (300, 1, {"rounds_per_gradient": 3}),
        (80, 2, {"max_norm": 9.5, "lr": 1.0}),
        (100, 2, {"columns": 30}),
    ],
)
def test_steps_of_several_launches_equal_the_cpu(n, b, options, dtype):
    sig, start, rng = setting(n, b, dtype, cond=1.1)
    options = dict(options)
    start = start[..., : options.pop("columns", n)].contiguous()
    here, there = (torch.nn.Parameter(start.to(d, copy=True)) for d in ("cpu", "cuda"))
    optimizers = [JOBCD([X], sig, **options) for X in (here, there)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for G in gradients(rng, start, (1.0, 0.1, 2.0)):
            for X, optimizer in zip((here, there), optimizers, strict=True):
                X.grad = G.to(X.device)
                optimizer.step()
        counts = [
            optimizer.state[X]["too_far"].item()
            for X, optimizer in zip((here, there), optimizers, strict=True)
        ]
    assert counts[0] == counts[1]
    unit = torch.finfo(dtype).eps / 2
    torch.testing.assert_close(there.detach().cpu(), here.detach(), rtol=0, atol=1e4 * unit)
    assert (here.detach() - start).abs().max() > 1e-3


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
@pytest.mark.parametrize(("n", "options"), [(8, {}), (33, {}), (100, {})])
def test_steps_do_not_wait(n, options):
    sig, start, _ = setting(n, 3, torch.float32)
    several = [torch.nn.Parameter(part.cuda()) for part in start]
    optimizer = JOBCD(several, sig, **options)
    for turn in range(4):
        for X in several:
            X.grad = torch.randn_like(X)
        if turn == 2:  # all is compiled by now
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
        try:
            optimizer.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("n", [4, 80])
def test_counts_stay_on_the_device(n):
    sig, start, _ = setting(n, 5, torch.float32)
    X = torch.nn.Parameter(start.cuda())
    optimizer = JOBCD([X], sig)
    X.grad = torch.randn_like(X)
    X.grad[1, 0, 0] = math.nan
    optimizer.step()
    assert torch.equal(X[1].detach().cpu(), start[1])
    X.grad[2:] = math.inf
    optimizer.step()
    state = optimizer.state[X]
    assert (state["not_finite"].item(), state["too_far"].item()) == (5, 0)
