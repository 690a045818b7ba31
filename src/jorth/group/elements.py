"""Elements of O(p, q): inverse, residual, component, exchange, norms, and checks of arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import (
    ArrayLike,
    ArrayT,
    Convertible,
    describe,
    like_input,
    square_matrix,
    tensor_alike,
    to_tensor,
)
from jorth.signature import Signature


def inverse(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the inverse X^-1 = J X^T J of a J-orthogonal X (..., n, n), exact and without a solve.

    Args:
        X: (..., n, n), J-orthogonal; that it is so is not checked.
        signature: The signs of J.

    >>> jorth.inverse(np.array([[1.25, 0.75], [0.75, 1.25]]), jorth.Signature(1, 1))
    array([[ 1.25, -0.75],
           [-0.75,  1.25]])
    """
    matrix = finite_square(X, signature)
    s = signature.vector(matrix)
    return like_input(s[:, None] * matrix.mT * s, X)


def residual(X: ArrayLike, signature: Signature, *, gram: ArrayLike | None = None) -> Any:
    """Return the scaled distance from feasibility, max |X^T J X - J| / max(1, ||X||_2^2).

    A computed J-orthogonal matrix has a residual of a few n u, u the unit roundoff of its dtype,
    whatever its condition number; without the scaling it would grow with ||X||_2^2. float32 is
    measured in float64.

    Args:
        X: (..., n, n), or thin (..., n, k) together with ``gram``.
        signature: The signs of J.
        gram: (..., k, k), what X^T J X should be; J if omitted.

    Returns:
        A float for one matrix, an array (...) of the kind of X for a batch; NaN where X is not
        finite.

    >>> sig = jorth.Signature(2, 0)
    >>> jorth.residual(np.diag([2.0, 1.0]), sig)  # |X^T X - I| = 3, ||X||^2 = 4
    0.75
    """
    matrix = to_tensor(X, "X").to(torch.float64)
    n = _inputs.check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2] != n:
        raise ValueError(f"X must have shape (..., {n}, k) for {signature}, got {describe(X)}")
    k = matrix.shape[-1]
    s = signature.vector(matrix)
    if gram is not None:
        target = to_tensor(gram, "gram").to(matrix)
        if target.shape[-2:] != (k, k):
            found = f"{describe(gram)} and {k} columns of X"
            raise ValueError(f"gram must have shape (..., {k}, {k}), got {found}")
        _inputs.check_finite(target, "gram")
    elif k == n:
        target = torch.diag(s)
    else:
        raise ValueError(f"gram is needed for a thin X (..., {n}, {k}), got None")
    scaled = scaled_violation(matrix, s, target)
    if scaled.ndim == 0:
        return scaled.item()
    return like_input(scaled, X, gram)


def component(X: ArrayLike, signature: Signature) -> Any:
    """Return the component of O(p, q) that holds X: the signs of det X[+,+] and det X[-,-].

    Args:
        X: (..., n, n), J-orthogonal.
        signature: The signs of J.

    Returns:
        The tuple (+-1, +-1) for one matrix, an integer array (..., 2) for a batch. An empty block
        counts as +1.

    >>> jorth.component(np.diag([1.0, -1.0]), jorth.Signature(1, 1))
    (1, -1)
    """
    matrix = finite_square(X, signature)
    blocks = [matrix[..., at[:, None], at] for at in signature.positions(matrix.device)]
    signs = torch.stack([torch.linalg.slogdet(block).sign for block in blocks], dim=-1)
    found = signs.to(torch.int64)
    if bool((found == 0).any()):
        raise ValueError(f"X must be J-orthogonal, got a singular diagonal block for {signature}")
    if found.ndim == 1:
        return int(found[0]), int(found[1])
    return found if isinstance(X, Tensor) else found.numpy()


def exchange(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Apply the exchange operator, which maps J-orthogonal matrices to orthogonal ones and back.

    With X partitioned by the signs, exc(X) = [[X11^-1, -X11^-1 X12], [X21 X11^-1, X22^-T]]. It is
    its own inverse. (Textbooks have X22 - X21 X11^-1 X12 for X22^-T, which is equal but suffers
    from cancellation.) That X is one of the two is not checked.

    Reference: N. J. Higham, SIAM Rev. 45 (2003).

    Args:
        X: (..., n, n), J-orthogonal or orthogonal.
        signature: The signs of J.

    >>> jorth.exchange(np.array([[1.25, 0.75], [0.75, 1.25]]), jorth.Signature(1, 1))
    array([[ 0.8, -0.6],
           [ 0.6,  0.8]])
    """
    matrix = finite_square(X, signature)
    plus, minus = signature.positions(matrix.device)
    try:
        inverse11 = torch.linalg.inv(matrix[..., plus[:, None], plus])
        inverse22 = torch.linalg.inv(matrix[..., minus[:, None], minus])
    except RuntimeError as error:
        raise ValueError(f"X has no exchange: a singular diagonal block for {signature}") from error
    result = torch.empty_like(matrix)
    result[..., plus[:, None], plus] = inverse11
    result[..., plus[:, None], minus] = -inverse11 @ matrix[..., plus[:, None], minus]
    result[..., minus[:, None], plus] = matrix[..., minus[:, None], plus] @ inverse11
    result[..., minus[:, None], minus] = inverse22.mT
    _inputs.check_overflow(result, "the blocks of X", "the exchange")
    return like_input(result, X)


def check_feasible(
    X: Tensor,
    signature: Signature,
    name: str = "X",
    *,
    limit: float | None = None,
    remedy: str = "",
) -> None:
    """Raise a ValueError if a residual exceeds ``limit``, by default half the digits, u^(1/2).

    The columns of a thin X must be J-orthonormal: X^T J X = diag(+-1).
    """
    limit = _inputs.unit_roundoff(X) ** 0.5 if limit is None else limit
    point = X.detach()
    gram = torch.diag_embed(column_signs(point, signature))
    found = torch.as_tensor(residual(point, signature, gram=gram))
    worst = float(found.max()) if X.numel() else 0.0
    if not worst <= limit:  # also if it is NaN
        thin = "have J-orthonormal columns, X^T J X = diag(+-1),"
        wanted = thin if X.shape[-1] < X.shape[-2] else "be J-orthogonal"
        given = f"got a scaled residual of {worst:.3g}{remedy}"
        raise ValueError(f"{name} must {wanted} for {signature}, {given}")


def column_signs(X: Tensor, signature: Signature) -> Tensor:
    """Return the signs of X^T J X (..., k) for J-orthonormal columns; those of J if X is square."""
    s = signature.vector(X)
    if X.shape[-1] == X.shape[-2]:
        return s
    lengths = (s.double()[:, None] * X.double().square()).sum(dim=-2)
    return torch.where(lengths < 0, -1.0, 1.0).to(X.dtype)


def finite_square(value: object, signature: Signature, name: str = "X") -> Tensor:
    """Return a finite tensor (..., n, n) that fits the signature."""
    matrix = square_matrix(value, signature, name)
    _inputs.check_finite(matrix, name)
    return matrix


def finite_thin(value: object, signature: Signature, name: str = "X") -> Tensor:
    """Return a finite tensor (..., n, k), k from 1 to n, that fits the signature."""
    matrix = to_tensor(value, name)
    n = _inputs.check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2] != n or not 1 <= matrix.shape[-1] <= n:
        expected = f"shape (..., {n}, {n}) for {signature}, or (..., {n}, k) with fewer columns"
        raise ValueError(f"{name} must have {expected}, got {describe(value)}")
    _inputs.check_finite(matrix, name)
    return matrix


def feasible_matrices(signature: Signature, **values: object) -> list[Tensor]:
    """Return J-orthogonal tensors (..., n, n) of one dtype and device that broadcast together."""
    (first_name, first), *others = values.items()
    point = finite_square(first, signature, first_name)
    tensors = [point]
    tensors += [matrix_beside(value, name, point, first_name, signature) for name, value in others]
    for name, tensor in zip(values, tensors, strict=True):
        check_feasible(tensor, signature, name)
    return tensors


def matrix_beside(
    value: object, name: str, first: Tensor, first_name: str, signature: Signature
) -> Tensor:
    """Return a finite tensor (..., n, n) with the dtype, device and a batch that fit the first."""
    tensor = square_matrix(tensor_alike(value, name, first, first_name), signature, name)
    _inputs.check_finite(tensor, name)
    try:
        np.broadcast_shapes(tensor.shape, first.shape)
    except ValueError:
        found = f"{describe(value)} and {describe(first)}"
        raise ValueError(f"{name} must broadcast against {first_name}, got {found}") from None
    return tensor


def scaled_violation(X: Tensor, signs: Tensor, gram: Tensor, norm: float | None = None) -> Tensor:
    """Return max |X^T J X - gram| / max(1, ||X||_2^2) for X (..., n, k), without overflow.

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
    """Return the largest power of two up to ``size`` >= 0, or 1 for 0: scaling by it is exact."""
    mantissa, _ = torch.frexp(size)
    return torch.where(size > 0, size / (2 * mantissa), 1.0)
