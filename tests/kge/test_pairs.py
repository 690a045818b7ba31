"""Inner products and sums of pairs of rows."""

import pytest
import torch

from jorth.kge.products import pair_terms


def parts(dtype, device="cpu"):
    """Vectors and numbers of 5 and 7 rows, and 40 pairs, some of them twice; row 4 in none."""
    seeded = torch.Generator().manual_seed(0)
    shapes = ((5, 6), (5,), (7, 6), (7,))
    given = [torch.randn(shape, generator=seeded, dtype=torch.float64) for shape in shapes]
    rows, columns = (torch.randint(below, (40,), generator=seeded) for below in (4, 7))
    moved = [part.to(device, dtype).requires_grad_() for part in given]
    return moved, rows.to(device), columns.to(device)


def terms(given, rows, columns):
    x, b, y, c = given
    return pair_terms((x, b), (y, c), rows, columns)


def gathered(given, rows, columns):
    x, b, y, c = given
    return (x[rows] * y[columns]).sum(-1), b[rows] + c[columns]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_values_and_slopes_are_those_of_gathered_rows(dtype):
    given, rows, columns = parts(dtype)
    seeded = torch.Generator().manual_seed(1)
    weights = [torch.randn(40, generator=seeded, dtype=torch.float64).to(dtype) for _ in range(2)]
    found = []
    for way in (terms, gathered):
        values = way(given, rows, columns)
        total = sum((weight * value).sum() for weight, value in zip(weights, values, strict=True))
        found.append([*values, *torch.autograd.grad(total, given)])
    for ours, expected in zip(*found, strict=True):
        assert ours.dtype == dtype
        assert torch.allclose(ours, expected, rtol=0, atol=100 * torch.finfo(dtype).eps)


def test_slopes_by_differences():
    given, rows, columns = parts(torch.float64)
    assert torch.autograd.gradcheck(lambda *tables: terms(tables, rows, columns), given)


def test_rows_need_not_be_contiguous():
    (x, b, y, c), rows, columns = parts(torch.float64)
    wide = torch.stack([x, -x], dim=-1)[..., 0]
    assert not wide.is_contiguous()
    found = pair_terms((wide, b), (y, c), rows, columns)[0]
    assert torch.equal(found, pair_terms((x, b), (y, c), rows, columns)[0])


def test_half_precision_is_gathered():
    given, rows, columns = parts(torch.bfloat16)
    expected = gathered(given, rows, columns)
    for ours, theirs in zip(terms(given, rows, columns), expected, strict=True):
        assert ours.dtype == torch.bfloat16
        assert torch.equal(ours, theirs)


@pytest.mark.gpu
def test_values_on_a_device():
    here = terms(*parts(torch.float64))
    there = terms(*parts(torch.float64, "cuda"))
    for one, other in zip(here, there, strict=True):
        assert torch.allclose(one, other.cpu(), rtol=0, atol=1e-13)
