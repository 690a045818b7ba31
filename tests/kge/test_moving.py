"""Products with matrices chosen by an index, against gathered matrices and autograd."""

import pytest
import torch

from jorth.kge.products import multiply


def gathered(matrices, index, points):
    return (matrices[index] @ points[..., None]).squeeze(-1)


def example(dtype, shape=(9,), n=5, seed=0):
    random = torch.Generator().manual_seed(seed)
    matrices = torch.randn(4, n, n, generator=random, dtype=dtype)
    index = torch.randint(3, shape, generator=random)  # the last matrix is never chosen
    points = torch.randn(*shape, n, generator=random, dtype=dtype)
    return matrices.requires_grad_(), index, points.requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(9,), (3, 2), (), (0,), (500,)])
@pytest.mark.parametrize("n", [1, 5, 33])
def test_products_and_slopes(dtype, shape, n):
    matrices, index, points = example(dtype, shape, n)
    factor = torch.randn(points.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    found, expected = (f(matrices, index, points) for f in (multiply, gathered))
    size = torch.finfo(dtype).eps * (n + index.numel())
    torch.testing.assert_close(found, expected, rtol=size, atol=50 * size)
    ours, theirs = (
        torch.autograd.grad((y * factor).sum(), (matrices, points)) for y in (found, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=size, atol=50 * size)


def test_matrices_and_points_that_are_not_contiguous():
    matrices, index, points = example(torch.float64)
    turned = matrices.mT
    spread = points.mT.contiguous().mT
    found, expected = (f(turned, index, spread) for f in (multiply, gathered))
    torch.testing.assert_close(found, expected)
    ours, theirs = (
        torch.autograd.grad(y.square().sum(), (matrices, points)) for y in (found, expected)
    )
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_second_derivative_is_refused():
    matrices, index, points = example(torch.float64)
    total = multiply(matrices, index, points).square().sum()
    with pytest.raises(RuntimeError, match="first derivatives only"):
        torch.autograd.grad(total, points, create_graph=True)
