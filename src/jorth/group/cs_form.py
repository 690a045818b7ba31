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
    k = mu.shape[-1]
    cosh, sinh = mu.cosh()[..., None, :], mu.sinh()[..., None, :]
    upper = [_scale_first(U1, cosh) @ V1.mT, (U1[..., :k] * sinh) @ V2[..., :k].mT]
    lower = [(U2[..., :k] * sinh) @ V1[..., :k].mT, _scale_first(U2, cosh) @ V2.mT]
    X = torch.cat([torch.cat(upper, dim=-1), torch.cat(lower, dim=-1)], dim=-2)
    place = torch.argsort(torch.cat(signature.positions(mu.device)))  # of a row, positive first
    return X[..., place[:, None], place]


def _scale_first(U: Tensor, cosh: Tensor) -> Tensor:
    k = cosh.shape[-1]
    return torch.cat([U[..., :k] * cosh, U[..., k:]], dim=-1)
