"""Points times chosen matrices, and squared arcs, on a CUDA device."""

import pytest
import torch

from jorth.kge.products import _engine, multiply
from tests.kge.device_checks import check_arcs, check_moving

pytestmark = pytest.mark.gpu


def test_equals_gathered_matrices():
    check_moving("cuda")


def test_arcs():
    check_arcs("cuda")


def test_gradients():
    random = torch.Generator().manual_seed(0)
    R, x = (
        torch.randn(shape, generator=random, dtype=torch.float64).cuda().requires_grad_()
        for shape in ((4, 5, 5), (60, 5))
    )
    index = torch.randint(4, (60,), generator=random).cuda()
    assert _engine(x).__name__ == "jorth.kge._products_triton"
    ours = torch.autograd.grad(multiply(R, index, x).square().sum(), (R, x))
    theirs = torch.autograd.grad((R[index] @ x[..., None]).square().sum(), (R, x))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
