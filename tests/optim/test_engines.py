"""The steps by numba and by Triton are the step in torch, to rounding: matrices, states, counts."""

import copy
import warnings

import numpy as np
import pytest
import torch

from jorth import Signature
from jorth._triton import has_triton
from jorth.group import random_point
from jorth.optim import JOBCD
from tests.interpreted import run_interpreted
from tests.optim.problems import use_engine

UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}


def start(signature, shape, dtype=torch.float64, cond=30.0, seed=1):
    """Parameters of these shapes; those with fewer columns are thin."""
    X = random_point(signature, cond=cond, batch=shape[:-2], seed=seed)
    return torch.nn.Parameter(torch.as_tensor(X[..., : shape[-1]]).to(dtype).contiguous())


def gradients(params, steps, scales=(1.0,), seed=2):
    """A direction with noise for every step and parameter."""
    rng = np.random.default_rng(seed)
    mean = [rng.standard_normal(p.shape) for p in params]
    return [
        [
            torch.as_tensor((m + 0.5 * rng.standard_normal(m.shape)) * scales[t % len(scales)]).to(
                p
            )
            for m, p in zip(mean, params, strict=True)
        ]
        for t in range(steps)
    ]


def after(params, given, compiled, monkeypatch, **options):
    """The parameters, their states and the group after the steps, compiled or in torch."""
    params = copy.deepcopy(params)
    optimizer = JOBCD(params, **options)
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        use_engine("compiled" if compiled else "plain", patch)
        for step in given:
            for p, gradient in zip(params, step, strict=True):
                p.grad = gradient.clone()
            optimizer.step()
    return params, [optimizer.state[p] for p in params], optimizer.param_groups[0]


def assert_same(params, given, monkeypatch, rounding=None, **options):
    """Both ways agree; returns the state of the first parameter.

    A slope that is small beside the others is divided by its own size, down to eps = 1e-5 of
    theirs, and so is its rounding; differences were up to 1.6e3 u. In float32 slopes are summed in
    float64, and only their rounding to float32 differs.
    """
    rounding = rounding or (2e4 if params[0].dtype == torch.float64 else 1e3)
    found = after(params, given, True, monkeypatch, **options)
    expected = after(params, given, False, monkeypatch, **options)
    tolerance = rounding * UNIT[params[0].dtype]
    for p, q in zip(found[0], expected[0], strict=True):
        assert_close(p.detach(), q.detach(), tolerance)
    for own, other in zip(found[1], expected[1], strict=True):
        assert own.keys() == other.keys()
        for name in own:
            assert_close(own[name], other[name], tolerance)
    return found[1][0]


def assert_close(found, expected, tolerance):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert torch.equal(torch.isfinite(found), torch.isfinite(expected))
    size = expected.double().abs().max() if expected.numel() else 0.0
    assert torch.all((found.double() - expected.double()).abs() <= tolerance * size)


OPTIONS = {
    "default": {},
    "no momentum": {"momentum": 0.0},
    "far": {"lr": 3.0, "max_norm": 12.0, "momentum": 0.5},
    "no gain": {"gain_rate": 0.0},
    "ascent": {"maximize": True},
    "lr = 0": {"lr": 0.0},
    "random": {"rounds_per_gradient": 3},
    "decay": {"decay": 0.0, "eps": 0.1},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_the_same_step(options, monkeypatch):
    signature = Signature.of([1, -1, 1, 1, -1, 1])
    params = [start(signature, (2, 6, 6))]
    options = {"lr": 0.1} | options
    given = gradients(params, 5)
    state = assert_same(params, given, monkeypatch, signature=signature, **options)
    assert (state["too_far"] > 0) == ("max_norm" in options)


@pytest.mark.parametrize("scales", [(1e-30,), (1e30,), (1e-30, 1e30, 1.0)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_gradients_of_any_size(scales, dtype, monkeypatch):
    signature = Signature(3, 2)
    params = [start(signature, (2, 5, 5), dtype)]
    given = gradients(params, 6, scales)
    assert_same(params, given, monkeypatch, signature=signature, lr=0.1)


@pytest.mark.parametrize(
    "shapes",
    [[(33, 33)], [(7, 7), (2, 7, 7), (3, 1, 7, 4)], [(0, 7, 7)], [(2, 24, 20)], [(2, 1)], [(1, 1)]],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_shapes(shapes, dtype, monkeypatch):
    n = shapes[0][-2]
    signature = Signature((n + 1) // 2, n // 2)
    params = [start(signature, shape, dtype, seed=t) for t, shape in enumerate(shapes)]
    assert_same(params, gradients(params, 3), monkeypatch, signature=signature, lr=0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
@pytest.mark.parametrize("at", [0, 2])
def test_gradients_that_are_not_finite(value, at, monkeypatch):
    """1e308 is finite, but its slopes are not where X is large."""
    signature = Signature(3, 2)
    params = [start(signature, (3, 5, 5), cond=1e6)]
    given = gradients(params, 4)
    given[at][0][1] = value
    state = assert_same(params, given, monkeypatch, rounding=1e5, signature=signature)
    assert state["not_finite"] == 1


def test_parameters_that_are_not_contiguous(monkeypatch):
    signature = Signature(3, 2)
    rows = [start(signature, (2, 5, 5))]
    columns = [torch.nn.Parameter(rows[0].detach().mT.contiguous().mT)]
    assert not columns[0].is_contiguous()
    given = gradients(rows, 3)
    transposed = [[gradient.mT.contiguous().mT for gradient in step] for step in given]
    found = after(columns, transposed, True, monkeypatch, signature=signature)[0]
    expected = after(rows, given, True, monkeypatch, signature=signature)[0]
    torch.testing.assert_close(found[0].detach(), expected[0].detach(), rtol=0.0, atol=0.0)


def test_a_backward_pass_through_what_has_moved_is_refused():
    signature = Signature(3, 2)
    p = start(signature, (5, 5))
    loss = (p @ p).sum()
    loss.backward(retain_graph=True)
    JOBCD([p], signature).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


INTERPRETED = """
import torch
from tests.optim.device_steps import check_one_launch, check_options

for dtype in (torch.float64, torch.float32):
    check_options("cpu", dtype)
    check_one_launch("cpu", 17, 2, dtype)
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_triton_interpreted():
    run_interpreted(INTERPRETED)
