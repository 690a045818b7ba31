"""Norms: ||X||_2 to one per cent, and how far X is from feasible relative to it."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

EXACT_COLUMNS = 200
"""The most columns for which all singular values are computed: Lanczos steps cost more."""
ACCURACY = 0.018
"""Relative accuracy of ||X||_2^2: 0.9 per cent for ||X||_2, which leaves room for float32."""
FAILURE_PROBABILITY = 1e-6
"""The probability of a result that is less accurate than that."""


def spectral_norm(X: Tensor) -> float:
    """Return ||X||_2 to one per cent.

    It is exact for few columns. For many, the Lanczos method runs on X^T X from fixed random
    starts, for as many steps as the bound of Kuczynski and Wozniakowski requires for any spectrum:
    O(n k log n).
    """
    largest = float(X.abs().max())
    if not 0 < largest < math.inf:
        return largest
    scaled = X / largest  # its square neither over- nor underflows
    if X.shape[1] <= EXACT_COLUMNS:
        gram = (scaled.mT @ scaled).double().cpu()
        square = float(torch.linalg.eigvalsh(gram)[-1])
    else:
        square = by_lanczos(scaled.float())
    return largest * math.sqrt(square)


def lanczos_steps(columns: int, starts: int) -> int:
    """Return the number of steps after which all starts fail with `FAILURE_PROBABILITY` at most.

    After k steps from one start the relative error of the largest eigenvalue exceeds e with
    probability at most 1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)): J. Kuczynski and H. Wozniakowski,
    Estimating the largest eigenvalue by the power and Lanczos algorithms with a random start,
    SIAM J. Matrix Anal. Appl. 13 (1992), Theorem 4.2.
    """
    each = FAILURE_PROBABILITY ** (1 / starts)
    wanted = (1 + math.log(1.648 * math.sqrt(columns) / each) / math.sqrt(ACCURACY)) / 2
    return min(math.ceil(wanted), columns)


def by_lanczos(X: Tensor) -> float:
    """Return the largest eigenvalue of X^T X: the largest Ritz value from one start or several."""
    columns = X.shape[1]
    starts = 1 if X.device.type == "cpu" else 8  # a device does eight in the time of one
    V = _starts(columns, starts).to(X)
    before = torch.zeros_like(V)
    beta = V.new_zeros(starts)
    diagonal: list[Tensor] = []
    off_diagonal: list[Tensor] = []
    for _ in range(lanczos_steps(columns, starts)):
        image = X @ V
        alpha = image.square().sum(0)  # v^T X^T X v
        W = X.mT @ image
        W.addcmul_(V, alpha, value=-1).addcmul_(before, beta, value=-1)
        beta = torch.linalg.vector_norm(W, dim=0)
        diagonal.append(alpha)
        off_diagonal.append(beta)
        before = V
        V = W / torch.where(beta > 0, beta, 1.0)
    T = torch.diag_embed(torch.stack(diagonal, -1).double().cpu())
    side = torch.stack(off_diagonal[:-1], -1).double().cpu()
    T = T + torch.diag_embed(side, 1) + torch.diag_embed(side, -1)
    return float(torch.linalg.eigvalsh(T)[:, -1].max())


@lru_cache(maxsize=8)
def _starts(columns: int, starts: int) -> Tensor:
    """Return unit vectors (columns, starts), random but always the same."""
    generator = torch.Generator("cpu").manual_seed(0)
    start = torch.randn(columns, starts, generator=generator, dtype=torch.float32, device="cpu")
    return torch.nn.functional.normalize(start, dim=0)


def scaled_violation(X: Tensor, signs: Tensor, gram: Tensor, norm: float | None = None) -> Tensor:
    """max |X^T J X - gram| / max(1, ||X||_2^2) for X (..., n, k), without overflow.

    It is NaN where X is not finite. A caller who knows ||X||_2 of a single matrix, if only to a few
    per cent, can pass it as ``norm``; the rest costs one product.
    """
    scale: float | Tensor
    if norm is None:
        size = power_of_two(X.abs().amax(dim=(-2, -1), keepdim=True).clamp(min=1.0))
        X = X / size
        gram = gram / size / size
        norms = torch.linalg.matrix_norm(X.nan_to_num(), ord=2)
        scale = torch.maximum(norms, 1 / size[..., 0, 0])
    elif norm > math.sqrt(torch.finfo(X.dtype).max) / 1e3:
        return scaled_violation(X / norm, signs, gram / norm / norm, 1.0)
    else:
        scale = max(norm, 1.0)
    return (X.mT @ (signs[:, None] * X) - gram).abs().amax(dim=(-2, -1)) / scale**2


def power_of_two(size: Tensor) -> Tensor:
    """The largest power of two up to ``size`` >= 0, or 1 for 0: scaling by it is exact."""
    mantissa, _ = torch.frexp(size)
    return torch.where(size > 0, size / (2 * mantissa), 1.0)
