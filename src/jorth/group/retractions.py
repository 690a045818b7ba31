"""From the Lie algebra {K : J K skew} to the group: the exponential and the guarded Cayley map."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, explained, like_input, unit_roundoff
from jorth.group.elements import finite_square, residual
from jorth.signature import Signature


@explained
def exp(K: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """The exponential of K (..., n, n), J K skew: J-orthogonal and in the identity component.

    It is computed by scaling and squaring. The scaled residual is a few n u for steps of moderate
    size. For rotations by many turns it grows like ||K|| u, as does the error of the angle that a
    rounded K stands for; that of `cayley` does not. A ValueError is raised where half of the digits
    are lost, at some 1 / sqrt(u) radians.

    Args:
        K: (..., n, n) with J K skew.
        signature: The signs of J.
    """
    algebra = _algebra_element(K, signature)
    X = matrix_exp(algebra)
    if not bool(torch.isfinite(X).all()):
        raise ValueError("K must be small enough for exp(K) to be finite, got overflow")
    _check_digits(X.detach(), algebra.detach(), signature)
    return like_input(X, K)


def _check_digits(X: Tensor, K: Tensor, signature: Signature) -> None:
    """Raise a ValueError where X = exp(K) has a scaled residual above sqrt(u)."""
    size = K.abs().max().item() if K.numel() else 0.0
    u = unit_roundoff(X)
    if signature.n * size * u <= 1e-3 * u**0.5:
        return
    found = float(torch.as_tensor(residual(X, signature)).max())
    if found > u**0.5:
        given = f"max |K| = {size:.3g}, at which the scaled residual is {found:.1g}"
        raise ValueError(f"K must be small enough for exp(K) to keep its digits, got {given}")


def matrix_exp(K: Tensor) -> Tensor:
    """torch.linalg.matrix_exp without a fault of torch 2.13.

    For one matrix of 1-norm 3e-4 to 5e-2 in float64, and 5e-2 to 0.6 in float32, torch uses a
    Taylor polynomial of degree 8 with a wrong coefficient, and is off by up to 3e-10 and 3e-5. For
    a batch of two it uses another polynomial. The derivative is the exponential of a larger matrix,
    so the norm of K says nothing about it.

    Reference: github.com/pytorch/pytorch/issues/196592.
    """
    norm = torch.linalg.matrix_norm(K, ord=1) if _is_single(K) and not K.requires_grad else None
    if norm is None or bool((norm > 3e-4) & (norm < 0.6)):
        return traceable_exp(K)
    X: Tensor = torch.linalg.matrix_exp(K)
    return X


def traceable_exp(K: Tensor) -> Tensor:
    """`matrix_exp` that never reads K, for torch.compile and torch.func: one matrix costs two."""
    X: Tensor = torch.linalg.matrix_exp(torch.stack([K, K]) if _is_single(K) else K)
    return X[0] if _is_single(K) else X


def exp_by_products(K: Tensor) -> Tensor:
    """exp(K) (..., n, n) by scaling and squaring, from products alone, for training.

    Its derivative takes two products for each one, where that of torch.linalg.matrix_exp is the
    exponential of a matrix of twice the size. Taylor's polynomial of degree p^2 takes 2 p - 2
    products (Paterson and Stockmeyer 1973). Where K has been halved to a norm below 0.8, what it
    leaves out is below u: 0.8^10 / 10! for p = 3 in float32, 0.8^17 / 17! for p = 4 in float64.
    """
    p = 4 if K.dtype == torch.float64 else 3
    norm = float(K.detach().abs().sum(dim=-1).amax()) if K.numel() else 0.0
    halvings = max(0, math.frexp(norm / 0.8)[1])
    A = (K * 0.5**halvings).reshape(-1, *K.shape[-2:])
    powers = [torch.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand_as(A), A]
    for _ in range(p - 1):
        powers.append(powers[-1] @ A)
    weights = [[1 / math.factorial(p * i + j) for j in range(p)] for i in range(p)]
    blocks = torch.tensordot(A.new_tensor(weights), torch.stack(powers[:p]), dims=1)
    X = torch.add(blocks[-1], powers[p], alpha=1 / math.factorial(p * p))
    for block in reversed(blocks.unbind()[:-1]):
        X = torch.baddbmm(block, X, powers[p])
    for _ in range(halvings):
        X = X @ X
    return X.reshape(K.shape)


def _is_single(K: Tensor) -> bool:
    return K.ndim == 2 or K.shape[:-2].numel() == 1


@explained
def cayley(K: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """The Cayley transform (I - K/2)^-1 (I + K/2) of K (..., n, n), J K skew.

    It agrees with exp(K) to second order and costs one solve. Along a boost of rapidity w it is
    u = (1 + w/2) / (1 - w/2), with a pole at w = 2 and another component beyond. A real eigenvalue
    of K is at most the norm of its symmetric part, which is the largest singular value of K[+,-]. A
    ValueError is raised unless that is below 2, so that no step passes the pole.

    Args:
        K: (..., n, n) with J K skew.
        signature: The signs of J.
    """
    algebra = _algebra_element(K, signature)
    plus, minus = signature.positions(algebra.device)
    boost = algebra[..., plus[:, None], minus]
    norms = torch.linalg.matrix_norm(boost, ord=2) if boost.numel() else boost.new_zeros(1)
    if (largest := norms.amax().item()) >= 2:
        found = f"{largest:.3g}; take a shorter step or jorth.exp"
        raise ValueError(f"K must have its boost part K[+,-] below 2 in norm (a pole), got {found}")
    identity = torch.eye(signature.n, dtype=algebra.dtype, device=algebra.device)
    return like_input(cayley_step(algebra, identity), K)


def cayley_step(K: Tensor, X: Tensor) -> Tensor:
    """(I - K/2)^-1 (I + K/2) X = 2 (I - K/2)^-1 X - X for a K in the algebra, before the pole.

    Nothing waits for a CUDA device.
    """
    shifted = K / -2
    shifted.diagonal(dim1=-2, dim2=-1).add_(1)
    # a check of whether the matrix is singular, which it is not before the pole, would wait
    moved: Tensor = torch.linalg.solve_ex(shifted, X, check_errors=not K.is_cuda)[0]
    return torch.add(-X, moved, alpha=2)


def _algebra_element(K: object, signature: Signature) -> Tensor:
    algebra = finite_square(K, signature, "K")
    JK = signature.vector(algebra)[:, None] * algebra
    defects = (JK + JK.mT).abs().amax(dim=(-2, -1))
    sizes = algebra.abs().amax(dim=(-2, -1))
    # the rounding of a product such as Y K Y^-1 is tolerated
    bad = defects > 8 * signature.n * unit_roundoff(algebra) * sizes
    if bool(bad.any()):
        found = f"max |J K + (J K)^T| = {defects[bad].amax().item():.3g}"
        size = f"max |K| = {sizes[bad].amax().item():.3g} for {signature}"
        raise ValueError(f"K must be in the Lie algebra (J K skew), got {found} at {size}")
    return algebra
