"""The hyperbolic CS form diag(U1, U2) H(mu) diag(V1, V2)^T of a J-orthogonal matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.signature import Signature


def compose_cs(
    U1: Tensor, U2: Tensor, mu: Tensor, V1: Tensor, V2: Tensor, signature: Signature
) -> Tensor:
    """X (..., n, n) in the order of the signature, from its factors and mu (..., min(p, q)).

    Every J-orthogonal X has this form. With the positive signs of J first,
    H(mu) = [[cosh mu, 0, sinh mu], [0, I, 0], [sinh mu, 0, cosh mu]].
    """
    k, n = mu.shape[-1], signature.n
    cosh, sinh = mu.cosh()[..., None, :], mu.sinh()[..., None, :]
    plus, minus = signature.positions(mu.device)
    X = torch.empty((*mu.shape[:-1], n, n), dtype=mu.dtype, device=mu.device)
    X[..., plus[:, None], plus] = _scale_first(U1, cosh) @ V1.mT
    X[..., minus[:, None], minus] = _scale_first(U2, cosh) @ V2.mT
    X[..., plus[:, None], minus] = (U1[..., :k] * sinh) @ V2[..., :k].mT
    X[..., minus[:, None], plus] = (U2[..., :k] * sinh) @ V1[..., :k].mT
    return X


def _scale_first(U: Tensor, cosh: Tensor) -> Tensor:
    k = cosh.shape[-1]
    return torch.cat([U[..., :k] * cosh, U[..., k:]], dim=-1)
