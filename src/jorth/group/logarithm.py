"""The principal logarithm on the group: structured square roots, then the series of artanh."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, explained, like_input, unit_roundoff
from jorth.group.elements import check_feasible, component, finite_square
from jorth.group.retractions import matrix_exp
from jorth.group.roots import square_root
from jorth.signature import Signature

RADIUS = 0.25
"""The series is summed where ||C||_1 is below this; 14 terms then leave out less than u."""
TERMS = 14
MAX_ROOTS = 100


@explained
def log(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """The principal logarithm K of X (..., n, n): exp(K) = X, J K skew, |Im eigenvalues| < pi.

    It exists where X has no eigenvalue on the negative real axis. X must be in the identity
    component, which is not sufficient: a half turn has logarithms, but none that is singled out,
    and where p and q are at least 2 there are elements with negative eigenvalues that have no real
    logarithm at all. A ValueError says which of these it is.

    The method is inverse scaling and squaring within the group. J-orthogonal square roots are taken
    until K = 2 artanh((X - I) (X + I)^-1) has a short series, which is odd and therefore stays in
    the Lie algebra. The error is a small multiple of n u ||X|| times the condition number of the
    logarithm, which grows like 1 / (pi - angle) near a half turn; X near I loses no digits.
    A ValueError is raised where half of the digits are lost. float32 is computed in float64. The
    result has derivatives of every order along the group.

    Args:
        X: (..., n, n), J-orthogonal.
        signature: The signs of J.
    """
    matrix = finite_square(X, signature)
    check_feasible(matrix, signature, "X")
    return like_input(principal_log(matrix, signature, "X"), X)


def principal_log(X: Tensor, signature: Signature, name: str) -> Tensor:
    """`log` of a J-orthogonal tensor; errors call it ``name``."""
    check_principal(X.detach(), signature, name)
    double = X.double()
    K = log_at(double, signature.vector(double))
    _check_digits(K.detach(), double.detach(), unit_roundoff(X), name)
    return K.to(X.dtype)


def log_at(X: Tensor, signs: Tensor) -> Tensor:
    """`log` without its checks, for float64: anything, or NaN, where there is no logarithm."""
    shape = X.shape
    X = X.reshape(-1, *shape[-2:])
    scale = X.new_ones(len(X), 1, 1)
    C = _cayley_inverse(X)
    for _ in range(MAX_ROOTS):
        far = torch.linalg.matrix_norm(C.detach(), ord=1) > RADIUS
        if not bool(far.any()):
            break
        roots = square_root(X[far], signs)
        X = X.index_put((far,), roots)
        C = C.index_put((far,), _cayley_inverse(roots))
        scale = torch.where(far[:, None, None], 2 * scale, scale)
    K = scale * _twice_artanh(C)
    return ((K - signs[:, None] * K.mT * signs) / 2).reshape(shape)


def _cayley_inverse(X: Tensor) -> Tensor:
    """(X + I)^-1 (X - I) = tanh(K / 2); X - I is exact for X near I."""
    identity = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    found: Tensor = torch.linalg.solve_ex(X + identity, X - identity)[0]
    return found


def _twice_artanh(C: Tensor) -> Tensor:
    """2 (C + C^3 / 3 + C^5 / 5 + ...)."""
    identity = torch.eye(C.shape[-1], dtype=C.dtype, device=C.device)
    square = C @ C
    total = identity / (2 * TERMS - 1)
    for k in reversed(range(TERMS - 1)):
        total = identity / (2 * k + 1) + square @ total
    return 2 * C @ total


def check_principal(X: Tensor, signature: Signature, name: str) -> None:
    """Raise a ValueError unless all J-orthogonal X (..., n, n) have a principal logarithm.

    Computed eigenvalues are those of a matrix within a few n u ||X|| of X.
    """
    if not X.numel():
        return
    X = X.double()
    components = torch.as_tensor(component(X, signature)).reshape(-1, 2)
    elsewhere = (components < 0).any(dim=-1)
    if bool(elsewhere.any()):
        found = tuple(components[elsewhere][0].tolist())
        expected = "in the identity component (1, 1) to have a logarithm"
        counted = _count(elsewhere)
        raise ValueError(f"{name} must be {expected}, got component {found}{counted}")
    values = torch.linalg.eigvals(X).reshape(-1, signature.n)
    size = torch.linalg.matrix_norm(X, ord=2).reshape(-1, 1)
    near = 8 * signature.n * unit_roundoff(X) * size
    negative = (values.real < 0) & (values.imag.abs() <= near)
    bad = negative.any(dim=-1)
    if bool(bad.any()):
        value = float(values.real[negative][0])
        turn = " (a half turn)" if abs(value + 1) <= 1e-6 else ""
        if abs(value) <= float(near.expand_as(negative)[negative][0]):
            turn = f" (zero to rounding: ||{name}||_2 = {float(size[bad][0]):.3g} is too large)"
        expected = "no eigenvalue on the negative real axis for a principal logarithm"
        raise ValueError(f"{name} must have {expected}, got {value:.3g}{turn}{_count(bad)}")


def _check_digits(K: Tensor, X: Tensor, u: float, name: str) -> None:
    """Raise a ValueError where exp(K) tells that K is not right to half of its digits."""
    off = torch.linalg.matrix_norm(matrix_exp(K) - X) / torch.linalg.matrix_norm(X)
    lost = ~(off <= u**0.5 * torch.linalg.matrix_norm(K).clamp(min=1.0))
    if bool(lost.any()):
        size = float(torch.linalg.matrix_norm(X, ord=2)[lost].max())
        found = f"exp(log) - {name} of relative size {float(off[lost].max()):.1g}, ||{name}||_2 = "
        expected = "so far from half turns, and of such a size, that log keeps half of its digits"
        raise ValueError(f"{name} must be {expected}, got {found}{size:.3g}{_count(lost)}")


def _count(bad: Tensor) -> str:
    return f" in {int(bad.sum())} of {bad.numel()} matrices" if bad.numel() > 1 else ""
