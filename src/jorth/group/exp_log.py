"""Between the Lie algebra {K : J K skew} and the group: exponential, Cayley map, logarithm."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, like_input, unit_roundoff
from jorth.group.elements import check_feasible, component, finite_square, residual
from jorth.signature import Signature


def exp(K: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the exponential of K (..., n, n), J K skew, which is in the identity component.

    It is computed by scaling and squaring. The scaled residual is a few n u for steps of moderate
    size, and grows like ||K|| u for rotations by many turns; that of `cayley` does not. A
    ValueError is raised where half of the digits are lost, at some 1 / sqrt(u) radians.

    Args:
        K: (..., n, n) with J K skew.
        signature: The signs of J.

    >>> jorth.exp(np.array([[0, np.log(2)], [np.log(2), 0]]), jorth.Signature(1, 1))
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    algebra = _algebra_element(K, signature)
    X = matrix_exp(algebra)
    if not bool(torch.isfinite(X).all()):
        raise ValueError("K must be small enough for exp(K) to be finite, got overflow")
    size = algebra.detach().abs().max().item() if algebra.numel() else 0.0
    u = unit_roundoff(X)
    if signature.n * size * u > 1e-3 * u**0.5:  # otherwise no digits are lost
        defect = float(torch.as_tensor(residual(X.detach(), signature)).max())
        if defect > u**0.5:
            found = f"max |K| = {size:.3g}, at which the scaled residual is {defect:.1g}"
            raise ValueError(f"K must be small enough for exp(K) to keep its digits, got {found}")
    return like_input(X, K)


def matrix_exp(K: Tensor) -> Tensor:
    """Compute torch.linalg.matrix_exp without a fault of torch 2.13.

    For one matrix of 1-norm 3e-4 to 5e-2 in float64, and 5e-2 to 0.6 in float32, a Taylor
    polynomial of torch has a wrong coefficient, and is off by up to 3e-10 and 3e-5
    (github.com/pytorch/pytorch/issues/196592). A batch of two takes another polynomial, so one
    matrix is computed twice; to read its norm first would stop torch.compile and torch.func.
    """
    single = K.ndim == 2 or K.shape[:-2].numel() == 1
    X: Tensor = torch.linalg.matrix_exp(torch.stack([K, K]) if single else K)
    return X[0] if single else X


def exp_by_products(K: Tensor) -> Tensor:
    """Return exp(K) (..., n, n) by scaling and squaring, from products alone, for training.

    Its derivative takes two products for each one. Taylor's polynomial of degree p^2 takes 2 p - 2
    products (Paterson and Stockmeyer 1973). K is halved to a norm below 0.8, where the remainder is
    below u: 0.8^10 / 10! for p = 3 in float32, 0.8^17 / 17! for p = 4 in float64.
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


def cayley(K: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the Cayley transform (I - K/2)^-1 (I + K/2) of K (..., n, n), J K skew.

    It agrees with exp(K) to second order and costs one solve. Along a boost of rapidity w it is
    u = (1 + w/2) / (1 - w/2), with a pole at w = 2 and another component beyond. A real eigenvalue
    of K is at most the norm of its symmetric part, which is the largest singular value of K[+,-]. A
    ValueError is raised unless that is below 2, so that no step passes the pole.

    Args:
        K: (..., n, n) with J K skew.
        signature: The signs of J.

    >>> jorth.cayley(np.array([[0, 2 / 3], [2 / 3, 0]]), jorth.Signature(1, 1))
    array([[1.25, 0.75],
           [0.75, 1.25]])
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
    """Return (I - K/2)^-1 (I + K/2) X = 2 (I - K/2)^-1 X - X for a K in the algebra, off the pole.

    Nothing waits for a CUDA device.
    """
    shifted = K / -2
    shifted.diagonal(dim1=-2, dim2=-1).add_(1)
    # a check of whether the matrix is singular, which it is not before the pole, would wait
    moved: Tensor = torch.linalg.solve_ex(shifted, X, check_errors=not K.is_cuda)[0]
    return torch.add(-X, moved, alpha=2)


def _algebra_element(K: object, signature: Signature) -> Tensor:
    """Return K as a tensor, or raise a ValueError unless J K is skew to rounding."""
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


def log(X: ArrayT | Convertible, signature: Signature) -> ArrayT:
    """Return the principal logarithm K of X: exp(K) = X, J K skew, |Im eigenvalues| < pi.

    It exists where X is in the identity component and has no eigenvalue on the negative real axis.
    A half turn has logarithms, but none that is singled out, and where p and q are at least 2 some
    elements have no real logarithm at all. A ValueError says which it is.

    The method is inverse scaling and squaring within the group. The error is a small multiple of n
    u ||X|| times the condition number of the logarithm, which grows like 1 / (pi - angle) near a
    half turn; a ValueError is raised where half of the digits are lost. The result has derivatives
    of every order along the group.

    Args:
        X: (..., n, n), J-orthogonal.
        signature: The signs of J.

    >>> K = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> np.allclose(jorth.log(jorth.exp(K, jorth.Signature(1, 1)), jorth.Signature(1, 1)), K)
    True
    """
    matrix = finite_square(X, signature)
    check_feasible(matrix, signature, "X")
    check_principal(matrix.detach(), signature, "X")
    double = matrix.double()
    K = log_at(double, signature.vector(double))
    with torch.no_grad():
        norm = torch.linalg.matrix_norm(double)
        error = torch.linalg.matrix_norm(matrix_exp(K) - double) / norm
        u = unit_roundoff(matrix)
        lost = ~(error <= u**0.5 * torch.linalg.matrix_norm(K).clamp(min=1.0))
    if bool(lost.any()):
        size = float(torch.linalg.matrix_norm(double.detach(), ord=2)[lost].max())
        worst = float(error[lost].max())
        found = f"exp(log) - X of relative size {worst:.1g}, ||X||_2 = {size:.3g}"
        expected = "so far from half turns, and of such a size, that log keeps half of its digits"
        raise ValueError(f"X must be {expected}, got {found}{_count(lost)}")
    return like_input(K.to(matrix.dtype), X)


def log_at(X: Tensor, signs: Tensor, *, radius: float = 0.25, terms: int = 14) -> Tensor:
    """Return `log` of float64 without its checks: anything, or NaN, where there is no logarithm.

    The series of artanh is summed where ||C||_1, C = (X + I)^-1 (X - I) = tanh(K / 2), is below
    the radius. With 14 terms it then leaves out less than u.
    """
    shape = X.shape
    X = X.reshape(-1, *shape[-2:])
    identity = torch.eye(shape[-1], dtype=X.dtype, device=X.device)
    scale = X.new_ones(len(X), 1, 1)

    def half_tanh(X: Tensor) -> Tensor:  # X - I is exact for X near I
        C: Tensor = torch.linalg.solve_ex(X + identity, X - identity)[0]
        return C

    C = half_tanh(X)
    for _ in range(100):
        far = torch.linalg.matrix_norm(C.detach(), ord=1) > radius
        if not bool(far.any()):
            break
        roots = square_root(X[far], signs)
        X = X.index_put((far,), roots)
        C = C.index_put((far,), half_tanh(roots))
        scale = torch.where(far[:, None, None], 2 * scale, scale)
    square = C @ C
    series = identity / (2 * terms - 1)
    for k in reversed(range(terms - 1)):
        series = identity / (2 * k + 1) + square @ series
    K = scale * (2 * C @ series)
    return ((K - signs[:, None] * K.mT * signs) / 2).reshape(shape)


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


def _count(bad: Tensor) -> str:
    return f" in {int(bad.sum())} of {bad.numel()} matrices" if bad.numel() > 1 else ""


def square_root(X: Tensor, signs: Tensor, *, max_steps: int = 60) -> Tensor:
    """Return X^(1/2) (..., n, n) for J-orthogonal X in float64 without eigenvalues on (-inf, 0].

    It is the J-orthogonal polar factor of I + X, by the Newton iteration Y <- (Y + J Y^-T J) / 2
    (Higham, Mackey, Mackey and Tisseur, SIAM J. Matrix Anal. Appl. 26, 2005), whose errors grow
    like u ||X|| and not u ||X||^2. The step after one that changes Y by less than sqrt(u) is the
    last: it makes derivatives, which lag by one step, as accurate as Y.
    """
    identity = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    small = torch.finfo(X.dtype).eps ** 0.5
    Y = (identity + X) / 2
    last = X.shape[:-2].numel() == 0
    for _ in range(max_steps):
        before = Y
        inverse, _ = torch.linalg.inv_ex(Y)  # infinite or NaN where Y is singular
        Y = (Y + signs[:, None] * inverse.mT * signs) / 2
        if last:
            break
        change = torch.linalg.matrix_norm((Y - before).detach())
        last = bool((change <= small * torch.linalg.matrix_norm(Y.detach())).all())
    return Y
