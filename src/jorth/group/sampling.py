"""Random J-orthogonal matrices with a prescribed condition number and component, by CS forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import _inputs
from jorth._inputs import FLOATS, check_device, describe, generator, is_number
from jorth.signature import Signature


# the checks of nine arguments, then the CS form
def random_point(
    signature: Signature,
    *,
    cond: float = 10.0,
    component: tuple[int, int] = (1, 1),
    columns: tuple[int, int] | None = None,
    batch: tuple[int, ...] = (),
    seed: int | np.random.Generator = 0,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    """Return a random point of O(p, q) with condition number ``cond`` in the given component.

    X = diag(U1, U2) H(mu) diag(V1, V2)^T has the hyperbolic CS decomposition with Haar orthogonal
    factors, the largest mu = log(cond) / 2 and the others uniform below it. Since X^-1 = J X^T J,
    the norm of X is sqrt(cond). If p or q is zero, every point is orthogonal and ``cond`` has no
    effect.

    Args:
        signature: The signs of J.
        cond: The 2-norm condition number, at least 1.
        component: The signs of det X[+,+] and det X[-,-].
        columns: (r, c) for a thin X (n, r + c) with X^T J X = diag(I_r, -I_c). It consists of
            columns of a full point, to which ``cond`` applies.
        batch: Leading dimensions.
        seed: An integer or a NumPy generator.
        dtype: A NumPy or torch float dtype; float64 if omitted.
        device: A torch device.

    Returns:
        (*batch, n, n) or (*batch, n, r + c): a tensor if ``dtype`` is torch's or a device is given,
        else a NumPy array.

    >>> round(np.linalg.cond(jorth.random_point(jorth.Signature(2, 1), cond=100)))
    100
    """
    p, q = _inputs.check_signature(signature).p, signature.q
    expected = "a finite number of at least 1"
    condition = _inputs.real_number(cond, "cond", expected, lambda number: 1 <= number < math.inf)
    sizes = _inputs.batch_sizes(batch)
    pair = isinstance(component, tuple) and len(component) == 2
    if not (pair and all(is_number(sign) and sign in (1, -1) for sign in component)):
        raise ValueError(f"component must be two signs +1 or -1, got {describe(component)}")
    if (component[0] == -1 and p == 0) or (component[1] == -1 and q == 0):
        given = f"{component!r} in {signature}"
        raise ValueError(f"component must have +1 for the empty block, got {given}")
    if columns is not None:
        r, c = columns if isinstance(columns, tuple) and len(columns) == 2 else (-1, -1)
        integers = type(r) is int and type(c) is int
        if not (integers and 0 <= r <= p and 0 <= c <= q and r + c > 0):
            expected = f"(r, c) with r <= p = {p}, c <= q = {q} and r + c > 0 for {signature}"
            raise ValueError(f"columns must be {expected}, got {describe(columns)}")
    floats = {np.dtype(np.float64): torch.float64, np.dtype(np.float32): torch.float32}
    try:
        wanted = dtype if isinstance(dtype, torch.dtype) else floats.get(np.dtype(dtype))
    except (TypeError, ValueError):
        wanted = None
    if wanted not in FLOATS:
        raise TypeError(f"dtype must be float64 or float32, got {describe(dtype)}")
    check_device(device)
    if device is not None and torch.device(device).type == "meta":
        raise ValueError(f"device must be a torch device that holds data, got {describe(device)}")
    rng = generator(seed)
    largest = 0.5 * math.log(condition)
    mu = rng.uniform(0.0, largest, size=(*sizes, min(p, q)))
    mu[..., :1] = largest
    U1, V1 = _haar(p, sizes, rng), _haar(p, sizes, rng)
    U2, V2 = _haar(q, sizes, rng), _haar(q, sizes, rng)
    for U, V, sign in ((U1, V1, component[0]), (U2, V2, component[1])):
        turn = sign * np.linalg.slogdet(U)[0] * np.linalg.slogdet(V)[0]
        U[..., :1] *= turn[..., None, None]
    t = torch.from_numpy
    X = compose_cs(t(U1), t(U2), t(mu), t(V1), t(V2), signature)
    if columns is not None:
        X = X[..., np.concatenate([signature.positive[:r], signature.negative[:c]])]
    X = X.to(dtype=wanted, device=device).contiguous()
    if not bool(torch.isfinite(X).all()):
        raise ValueError(f"cond must be small enough for {wanted}, got one at which X overflows")
    return X if isinstance(dtype, torch.dtype) or device is not None else X.numpy()


def _haar(n: int, batch: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return Haar orthogonal matrices: Q factors of Gaussians, with a positive diagonal of R."""
    Q, R = np.linalg.qr(rng.standard_normal((*batch, n, n)))
    Q *= np.copysign(1.0, np.diagonal(R, axis1=-2, axis2=-1))[..., None, :]
    return Q


def compose_cs(
    U1: Tensor, U2: Tensor, mu: Tensor, V1: Tensor, V2: Tensor, signature: Signature
) -> Tensor:
    """Return the matrix of a CS decomposition in the order of the signature: `jorth.linalg.CS`."""
    k = mu.shape[-1]
    cosh, sinh = mu.cosh()[..., None, :], mu.sinh()[..., None, :]

    def scale_first(U: Tensor) -> Tensor:
        return torch.cat([U[..., :k] * cosh, U[..., k:]], dim=-1)

    upper = [scale_first(U1) @ V1.mT, (U1[..., :k] * sinh) @ V2[..., :k].mT]
    lower = [(U2[..., :k] * sinh) @ V1[..., :k].mT, scale_first(U2) @ V2.mT]
    X = torch.cat([torch.cat(upper, dim=-1), torch.cat(lower, dim=-1)], dim=-2)
    place = torch.argsort(torch.cat(signature.positions(mu.device)))  # of a row, positive first
    return X[..., place[:, None], place]
