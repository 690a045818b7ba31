"""Products with chosen matrices and their slopes, against gathered matrices in float64."""

import torch

from jorth.kge.moving_on_device import moved, outer_products

SHAPES = ((1, 2, 1), (150, 3, 2), (50, 33, 70))
"""Points, rows and matrices: parts of several blocks, and matrices without points."""


def check_moving(device):
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
                moved(R, index, x, transposed=False),
                moved(R, index, x, transposed=True),
                outer_products(index, y, x, m),
            )
            unit = torch.finfo(dtype).eps / 2
            for one, other, terms in zip(found, (forth, back, sums), (n, n, B), strict=True):
                assert one.dtype == dtype
                # each of the terms is below 5^2, as are products of normal numbers here
                assert (one.cpu().double() - other).abs().max() <= 25 * terms**1.5 * unit
