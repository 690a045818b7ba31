"""Parallel transport along one-parameter subgroups, in the connection that both sides preserve."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayT, Convertible, explained, like_input, unit_roundoff
from jorth.group.arguments import beside, elements
from jorth.group.logarithm import check_principal
from jorth.group.roots import square_root
from jorth.signature import Signature


@explained
def transport(
    X: ArrayT | Convertible, Y: ArrayT | Convertible, V: ArrayT | Convertible, signature: Signature
) -> ArrayT:
    """The tangent vector V at X, moved in parallel to Y along X exp(t log(X^-1 Y)).

    With R = (X^-1 Y)^(1/2) it is X R X^-1 V R. The connection is the symmetric one of Cartan and
    Schouten, which is the Levi-Civita connection of the form tr(K L) for V = X K, W = X L. This
    form is indefinite and invariant under translations from both sides, and so is the transport:
    tr(K L) is kept, and that of A V B from A X B to A Y B is A times the result times B. The
    geodesics are those of `mean`. Lengths in the metric of `distance` are kept only where p or q is
    0. X^-1 Y must have a principal logarithm, see `log`; a ValueError says why it has none. The
    result is differentiable.

    Args:
        X: (..., n, n), J-orthogonal.
        Y: (..., n, n), J-orthogonal.
        V: (..., n, n), tangent at X: X^T J V is skew.
        signature: The signs of J.
    """
    start, end = elements(signature, X=X, Y=Y)
    vector = beside(V, "V", start, "X", signature)
    _check_tangent(start.detach(), vector.detach(), signature)
    A, B, W = start.double(), end.double(), vector.double()
    s = signature.vector(A)
    inverse = s[:, None] * A.mT * s
    M = inverse @ B
    check_principal(M.detach(), signature, "X^-1 Y")
    R = square_root(M, s)
    moved = (A @ R @ (inverse @ W) @ R).to(start.dtype)
    _inputs.check_overflow(moved, "X, Y and V", "the tangent vector")
    return like_input(moved, X, Y, V)


def _check_tangent(X: Tensor, V: Tensor, signature: Signature) -> None:
    """Raise a ValueError unless X^T J V is skew to half of the digits."""
    V = V.double()
    size = V.abs().amax(dim=(-2, -1), keepdim=True)
    V = V / torch.where(size > 0, size, 1.0)  # no product overflows
    M = X.mT.double() @ (signature.vector(V)[:, None] * V)
    defect = (M + M.mT).abs().amax(dim=(-2, -1))
    norms = torch.linalg.matrix_norm(X.double()) * torch.linalg.matrix_norm(V)
    bad = ~(defect <= unit_roundoff(X) ** 0.5 * norms)
    if bool(bad.any()):
        found = f"max |X^T J V + (X^T J V)^T| / max |V| = {float(defect[bad].max()):.3g}"
        raise ValueError(f"V must be tangent at X (X^T J V skew) for {signature}, got {found}")
