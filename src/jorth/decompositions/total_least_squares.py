"""Total least squares, with errors in the data as well as in the right-hand side."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.arrays import (
    ArrayT,
    Convertible,
    check_overflow,
    describe,
    like_input,
    to_tensor,
    unit_roundoff,
)
from jorth.decompositions.least_squares import right_hand_side
from jorth.decompositions.qr import tall_matrix
from jorth.group.norms import power_of_two
from jorth.signature import Signature
from jorth.suggestions import explained


@explained
def total_least_squares(
    A: ArrayT | Convertible, b: ArrayT | Convertible, signature: Signature | None = None
) -> ArrayT:
    """The x with (A + E) x = b + f for the least ||[E f]||_F, A (..., m, n), by an SVD of [A b].

    A row with the sign - takes data out: a row that stands in A with + and once more with - has no
    effect, as if it had been removed. With M = [A b], the solution is in the eigenvectors of
    M^T J M for its smallest eigenvalues, as many as b has columns. These are the squared hyperbolic
    singular values of M^T and the columns of U of `hsvd`. M^T J M must be positive semidefinite. It
    is not formed: M = P S V^T and P^T J P = Z K Z^T give K^1/2 Z^T S V^T, whose ordinary SVD has
    the same right vectors. This is backward stable: x is exact for an M that is off by a few m u
    ||M||. It is computed in float64 and carries no gradient.

    All entries of [A b] should have errors of the same size: scale its columns first if not. A
    column without errors, such as one of ones for an intercept, does not belong in A: subtract the
    means instead.

    References: S. Van Huffel, J. Vandewalle, The Total Least Squares Problem, SIAM (1991); R. Onn,
    A. O. Steinhardt, A. W. Bojanczyk, The hyperbolic singular value decomposition and
    applications, IEEE Trans. Signal Processing 39 (1991).

    Args:
        A: (..., m, n).
        b: One right-hand side per matrix, (..., m), or d of them, (..., m, d); the batch is that
            of A.
        signature: The signs of J, one for each row. None is + everywhere: the classical problem.

    Returns:
        x, (..., n) or (..., n, d), like A.

    Raises:
        ValueError: M^T J M has a negative eigenvalue; the problem has no unique solution (two
            eigenvalues are equal); or it has none, because the eigenvectors have no part in b
            (the nongeneric case).
    """
    signature = _one_sign(A) if signature is None else signature
    matrix = tall_matrix(A, signature)
    right = right_hand_side(b, matrix)
    columns = right[..., None] if right.ndim < matrix.ndim else right
    if not columns.shape[-1]:
        raise ValueError(f"b must have at least one column, got {describe(b)}")
    M = torch.cat([matrix, columns], dim=-1).detach().to(torch.float64)
    M = M / power_of_two(M.abs().amax(dim=(-2, -1), keepdim=True))
    x = _solution(M, signature, matrix.shape[-1])
    x = x.reshape(*matrix.shape[:-2], matrix.shape[-1], *right.shape[matrix.ndim - 1 :]).to(matrix)
    check_overflow(x, "A and b", "x")
    return like_input(x, A)


def _one_sign(A: object) -> Signature:
    """The signature of as many + as A has rows."""
    matrix = to_tensor(A, "A")
    if matrix.ndim < 2 or not 1 <= matrix.shape[-1] <= matrix.shape[-2]:
        expected = "(..., m, n) with 1 <= n <= m"
        raise ValueError(f"A must have shape {expected}, got {describe(A)}")
    return Signature(matrix.shape[-2], 0)


def _solution(M: Tensor, signature: Signature, n: int) -> Tensor:
    """x (..., n, d) from M = [A b] (..., m, n + d)."""
    zero = 2 * max(M.shape[-2:]) * unit_roundoff(M)
    P, S, Vh = torch.linalg.svd(M, full_matrices=False)
    largest = S[..., :1]
    S = torch.where(zero * largest < S, S, 0)
    factor = _root_of_form(P, S, signature, zero) @ (S[..., None] * Vh)
    values, vectors = torch.linalg.svd(factor)[1:]
    values = torch.nn.functional.pad(values, (0, M.shape[-1] - values.shape[-1]))
    kept = values[..., n - 1]
    # rounding changes M v by zero * largest, and so v^T M^T J M v by twice that times |M v|
    length = torch.linalg.vector_norm(S[..., None] * (Vh @ vectors.mT), dim=-2)[..., n - 1]
    gap = (kept - values[..., n]) * (kept + values[..., n])
    noise = 2 * zero * largest[..., 0] * length
    if not bool((gap > noise).all()):
        raise ValueError(
            f"A and b must have one solution, got equal singular values {n} and {n + 1} of [A b] "
            "to rounding: several x fit alike"
        )
    upper, lower = vectors[..., n:, :n].mT, vectors[..., n:, n:].mT
    part = torch.linalg.svdvals(lower)[..., -1]
    if not bool((part > noise / gap).all()):
        raise ValueError(
            "A and b must have a solution, got a nongeneric problem: a singular vector of [A b] "
            "has no part in b beyond rounding, as if A had dependent columns"
        )
    x: Tensor = -torch.linalg.solve(lower.mT, upper.mT).mT
    return x


def _root_of_form(P: Tensor, S: Tensor, signature: Signature, zero: float) -> Tensor:
    """K^1/2 Z^T with P^T J P = Z K Z^T on the columns with S > 0, or a ValueError if K < 0."""
    used = S > 0
    form = (P.mT * signature.vector(P)) @ P
    form = torch.where(used[..., None] & used[..., None, :], form, torch.eye(P.shape[-1]).to(P))
    values, Z = torch.linalg.eigh(form)
    # rounding changes M by zero * largest, and so z^T P^T J P z by twice that times |S^-1 z|
    inverse = torch.where(used, S[..., :1] / S, 0)
    noise = zero * (1 + 2 * torch.linalg.vector_norm(inverse[..., None] * Z, dim=-2))
    if bool((values < -noise).any()):
        least = values[values < -noise].min().item()
        raise ValueError(
            "[A b]^T J [A b] must have no negative eigenvalue, got one of "
            f"{least:.3g} relative to [A b]^T [A b] for {signature}"
        )
    root: Tensor = values.clamp(min=0).sqrt()[..., None] * Z.mT
    return root
