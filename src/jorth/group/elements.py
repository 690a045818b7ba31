"""What can be asked of one J-orthogonal matrix: inverse, residual, component, exchange."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jorth.arrays import (
    Array,
    ArrayT,
    check_finite,
    check_overflow,
    check_signature,
    describe,
    like_input,
    square_matrix,
    to_tensor,
)
from jorth.signature import Signature


def inverse(X: ArrayT, signature: Signature) -> ArrayT:
    """The inverse X^-1 = J X^T J of a J-orthogonal matrix (..., n, n): exact, no solve."""
    matrix = square_matrix(X, signature)
    check_finite(matrix, "X")
    return like_input(_inverse(matrix, signature), X)


def _inverse(X: Tensor, signature: Signature) -> Tensor:
    s = signature.vector(X)
    return s[:, None] * X.mT * s


def residual(X: Array, signature: Signature, *, gram: Array | None = None) -> Any:
    """How far X is from feasible, scaled: max |X^T J X - J| / max(1, ||X||_2^2).

    A computed J-orthogonal matrix has a residual of a few n u, u the unit roundoff of its dtype, whatever its
    condition number; an unscaled residual grows with ||X||_2^2. float32 is measured in float64.

    Args:
        X: (..., n, n), or thin (..., n, k) together with ``gram``.
        signature: The signs of J.
        gram: (..., k, k), what X^T J X should be; J itself when omitted.

    Returns:
        A float for one matrix, an array (...) of the kind of X for a batch; NaN where X is not finite.
    """
    matrix = to_tensor(X, "X").to(torch.float64)
    n = check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2] != n:
        raise ValueError(f"X must have shape (..., {n}, k) for {signature}, got {describe(X)}")
    columns = matrix.shape[-1]
    s = signature.vector(matrix)
    if gram is not None:
        target = to_tensor(gram, "gram").to(matrix.device, matrix.dtype)
        if target.shape[-2:] != (columns, columns):
            raise ValueError(
                f"gram must have shape (..., {columns}, {columns}), got {describe(gram)} beside an X of that size"
            )
        check_finite(target, "gram")
    elif columns == n:
        target = torch.diag(s)
    else:
        raise ValueError(
            f"gram is needed for a thin X (..., {n}, {columns}), X^T J X of shape ({columns}, {columns}), got None"
        )
    scaled = _scaled_violation(matrix, s, target)
    if scaled.ndim == 0:
        return scaled.item()
    return scaled if isinstance(X, Tensor) else scaled.numpy()


def _scaled_violation(X: Tensor, s: Tensor, target: Tensor) -> Tensor:
    """Max |X^T J X - target| / max(1, ||X||_2^2), free of overflow; NaN where X is not finite."""
    finite = torch.isfinite(X).all(dim=-1).all(dim=-1)
    X = torch.where(finite[..., None, None], X, 0.0)
    scale = X.abs().flatten(-2).max(dim=-1).values.clamp(min=1.0)
    Y = X / scale[..., None, None]
    violation = (
        (Y.mT @ (s[:, None] * Y) - target / scale[..., None, None].square())
        .abs()
        .flatten(-2)
        .max(dim=-1)
        .values
    )
    norm = torch.linalg.matrix_norm(Y, ord=2)
    return torch.where(finite, violation / torch.maximum(norm, 1 / scale).square(), torch.nan)


def component(X: Array, signature: Signature) -> Any:
    """Which of the four components of O(p, q) holds X: the signs of det X[+,+] and det X[-,-].

    Returns:
        The tuple (+-1, +-1) for one matrix, an integer array (..., 2) for a batch. An empty block counts as +1.
    """
    matrix = square_matrix(X, signature)
    check_finite(matrix, "X")
    signs = [
        torch.linalg.slogdet(_block(matrix, index, index)).sign
        for index in signature.positions(matrix.device)
    ]
    found = torch.stack(signs, dim=-1).to(torch.int64)
    if bool((found == 0).any()):
        raise ValueError(
            f"X must be J-orthogonal, got a matrix with a singular diagonal block for {signature}"
        )
    if found.ndim == 1:
        return int(found[0]), int(found[1])
    return found.cpu().numpy() if not isinstance(X, Tensor) else found


def exchange(X: ArrayT, signature: Signature) -> ArrayT:
    """The exchange operator: maps J-orthogonal matrices to orthogonal ones and back.

    With X partitioned by the signs, exc(X) = [[X11^-1, -X11^-1 X12], [X21 X11^-1, X22^-T]]. It is its own
    inverse. The (2, 2) block is the Schur complement X22 - X21 X11^-1 X12 of the textbook form, which equals
    X22^-T both for J-orthogonal and for orthogonal X, without its cancellation. X must be one of the two; that is not
    checked.

    Reference: N. J. Higham, J-orthogonal matrices: properties and generation, SIAM Review 45 (2003).
    """
    matrix = square_matrix(X, signature)
    check_finite(matrix, "X")
    plus, minus = signature.positions(matrix.device)
    X11, X12 = _block(matrix, plus, plus), _block(matrix, plus, minus)
    X21, X22 = _block(matrix, minus, plus), _block(matrix, minus, minus)
    try:
        inverse11, inverse22 = torch.linalg.inv(X11), torch.linalg.inv(X22)
    except RuntimeError as error:
        raise ValueError(
            f"X has no exchange: a diagonal block of it is singular for {signature}"
        ) from error
    result = torch.empty_like(matrix)
    result[..., plus[:, None], plus] = inverse11
    result[..., plus[:, None], minus] = -inverse11 @ X12
    result[..., minus[:, None], plus] = X21 @ inverse11
    result[..., minus[:, None], minus] = inverse22.mT
    check_overflow(result, "the blocks of X", "the exchange")
    return like_input(result, X)


def _block(X: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return X[..., rows[:, None], columns]
