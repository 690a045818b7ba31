"""Kernels of the model on any device, against torch's own operations in float64."""

import torch

SHAPES = ((1, 2, 1), (150, 3, 2), (50, 33, 70))
"""Points, rows and matrices: parts of several blocks, and matrices without points."""


def check_arcs(device, write=None):
    """Near one, at zero, huge, without a number: arcs, and slopes that are 0 at |g| = 0 and 1."""
    if write is None:
        from jorth.kge._distances_triton import write_squared_arcs as write
    near = 1 + torch.tensor([-(2.0**-20), 0.0, 2.0**-20, 2.0**-6, -(2.0**-6), 1e-3, -1e-3])
    random = torch.randn(600, generator=torch.Generator().manual_seed(0))
    parts = (near, random, random * 1e3, torch.tensor([0.0, 1e15, 1e25, torch.nan]))
    for dtype in (torch.float64, torch.float32):
        g = torch.cat(parts).to(dtype)
        g = torch.cat([g, -g])
        exact = g.double()
        e = exact.abs() - 1
        sine = e.abs().sqrt() * (exact.abs() + 1).sqrt()
        arc = torch.where(e < 0, torch.atan2(sine, exact.abs()), torch.log1p(e + sine))
        slopes = 2 * arc / torch.where(sine > 0, sine, 1.0) * exact.sign() * e.sign()
        square, slope = torch.empty_like(g, device=device), torch.empty_like(g, device=device)
        write(g.to(device), square, slope)
        unit = torch.finfo(dtype).eps / 2
        for found, expected in ((square, arc**2), (slope, slopes)):
            torch.testing.assert_close(
                found.cpu().double(), expected, rtol=20 * unit, atol=0, equal_nan=True
            )


def check_moving(device):
    from jorth.kge import _products_triton as engine

    for B, n, m in SHAPES:
        for dtype in (torch.float64, torch.float32):
            random = torch.Generator().manual_seed(B)
            R, x, y = (
                torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)
                for shape in ((m, n, n), (B, n), (B, n))
            )
            index = torch.randint(m, (B,), generator=random)
            chosen = R.double()[index]
            outer = y.double()[:, :, None] * x.double()[:, None, :]
            sums = torch.zeros(m, n, n, dtype=torch.float64).index_add(0, index, outer)
            forth = (chosen @ x.double()[..., None]).squeeze(-1)
            back = (chosen.mT @ x.double()[..., None]).squeeze(-1)
            R, x, y, index = (part.to(device) for part in (R, x, y, index))
            found = (
                engine.apply_matrices(R, index, x, transposed=False),
                engine.apply_matrices(R, index, x, transposed=True),
                engine.outer_products(index, y, x, m),
            )
            unit = torch.finfo(dtype).eps / 2
            for one, other, terms in zip(found, (forth, back, sums), (n, n, B), strict=True):
                assert one.dtype == dtype
                # each of the terms is below 5^2, as are products of normal numbers here
                assert (one.cpu().double() - other).abs().max() <= 25 * terms**1.5 * unit
