"""Kernels of the model on any device, against torch's own operations in float64."""

import torch

"""Points, rows and matrices: parts of several blocks, and matrices without points."""


def check_arcs(device, write=None):
    """Near one, at zero, huge, without a number: arcs, and slopes that are 0 at |g| = 0 and 1."""
    if write is None:
        from jorth.kge._loss_triton import write_squared_arcs as write
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
