"""Bounds on f for many Procrustes problems at once, and another look at those with an open gap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth import arrays
from jorth.group.norms import power_of_two
from jorth.signature import Signature
from jorth.solvers.batches import STATUSES, BatchResult
from jorth.solvers.loop.record import Result, public
from jorth.solvers.procrustes.certificate import CLOSED, CLOSED_SENTENCE

AT_ONCE = 2**22
"""The numbers in the sources of a chunk."""


class _Bounds(NamedTuple):
    """The bounds and gaps (B,) of a batch in float64, and whether they are closed."""

    bound: Tensor
    gap: Tensor
    closed: Tensor


def certify_batch(
    found: BatchResult,
    source: Any,
    target: Any,
    signature: Signature,
    solve: Callable[[Any, Any, Any], Result],
) -> BatchResult:
    """The answers with their bounds and gaps; open ones are solved again, one by one.

    Args:
        found: The answers.
        source: (B, m, n).
        target: (B, m, n).
        signature: The signs of J.
        solve: Solves a single problem (source, target, x0), with its certificate.
    """
    T = arrays.to_tensor(target, "target").detach()
    S = arrays.tensor_alike(source, "source", T, "target").detach()
    X = arrays.to_tensor(found.x, "x").clone()
    step = max(1, AT_ONCE // S[0].numel())
    parts = [slice(start, start + step) for start in range(0, len(S), step)]
    pieces = [_bounds(S[part], T[part], X[part], signature) for part in parts]
    bound, gap, closed = (torch.cat(column) for column in zip(*pieces, strict=True))
    value = arrays.to_tensor(found.value, "value").clone()
    norm = arrays.to_tensor(found.gradient_norm, "gradient_norm").clone()
    codes, iterations = found.codes.copy(), found.iterations.copy()
    for place in torch.nonzero(~closed & torch.isfinite(value))[:, 0].tolist():
        single = solve(S[place], T[place], X[place])
        if single.bound is None or single.gap is None:
            continue
        bound[place], gap[place] = single.bound, single.gap
        closed[place] = CLOSED_SENTENCE in single.message
        iterations[place] += single.iterations
        if single.value < value[place] and single.status in STATUSES:
            X[place], value[place], norm[place] = single.x, single.value, single.gradient_norm
            codes[place] = STATUSES.index(single.status)
    numpy_out = not isinstance(found.x, Tensor)
    x, value, norm, bound, gap = (
        public(part, numpy_out=numpy_out) for part in (X, value, norm, bound, gap)
    )
    message = f"{found.message}; {int(closed.sum())} certified"
    changed: dict[str, Any] = dict(x=x, value=value, gradient_norm=norm, bound=bound, gap=gap)
    return replace(found, **changed, codes=codes, iterations=iterations, message=message)


def _bounds(source: Tensor, target: Tensor, X: Tensor, signature: Signature) -> _Bounds:
    """Bounds by the multiplier of each X alone, where it is one, else by nothing: 0.

    The formulas are those of `jorth.solvers.procrustes.certificate`.
    """
    u, unit = arrays.unit_roundoff(target), np.finfo(np.float64).eps / 2
    m, n = source.shape[1:]
    S, T, X = source.double(), target.double(), X.double()
    size = torch.maximum(S.abs().amax((1, 2)), T.abs().amax((1, 2)))
    sound = torch.isfinite(size) & torch.isfinite(X).all(2).all(1)
    scale = power_of_two(torch.where(sound, size, 1.0))
    keep = sound[:, None, None]
    S, T = (torch.where(keep, part / scale[:, None, None], 0.0) for part in (S, T))
    X = torch.where(keep, X, torch.eye(n).to(X))
    signs = signature.vector(X)
    rest = S @ X - T
    G = S.mT @ rest / m
    A = S.mT @ S / m
    value = rest.square().sum((1, 2)) / (2 * m)
    Lam = signs[:, None] * (X.mT @ G)
    Lam = (Lam + Lam.mT) / 2
    ends = torch.linalg.eigvalsh(Lam)[:, [0, -1]]
    values = torch.linalg.eigvalsh(A[:, None] - ends[:, :, None, None] * torch.diag(signs))
    least = values[..., 0].amin(1) - 8 * (m + n) * unit * values.abs().amax((1, 2))
    r = G - signs[:, None] * (X @ Lam)
    of_s, of_t, of_x, of_lam, of_r = map(torch.linalg.matrix_norm, (S, T, X, Lam, r))
    reach = of_s * of_x + of_t
    error = 2 * (m + n) * unit * (of_s * reach / m + of_x * of_lam)
    loss = (of_r + error).square() / (2 * least)
    defect = X.mT @ (signs[:, None] * X) - torch.diag(signs)
    loss += torch.linalg.matrix_norm(defect) * of_lam + n * unit * of_x.square() * of_lam
    doubt = 4 * n * u * reach
    doubt = doubt * ((2 * m * value).sqrt() + doubt) / m
    floor = torch.maximum(value, u * of_t.square() / (2 * m))
    bound = (value - loss - doubt).clamp(min=0.0)
    bound = torch.where(least > 0, torch.minimum(bound, value), 0.0)
    gap = torch.where(floor > 0, (value - bound) / floor, 0.0)
    closed = sound & ((gap <= CLOSED) | (value - bound <= 2 * doubt))
    nothing = torch.full_like(gap, torch.nan)
    bound = torch.where(sound, bound * scale.square(), nothing)
    return _Bounds(bound, torch.where(sound, gap, nothing), closed)
