"""The polar decomposition in the indefinite inner product."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jorth._inputs import ArrayT, Convertible, like_input, square_matrix
from jorth.group.elements import power_of_two
from jorth.group.polish import PolishError, orthogonal_factor
from jorth.linalg.batch import check_matrices
from jorth.signature import Signature

UNIT = torch.finfo(torch.float64).eps / 2


def polar(A: ArrayT | Convertible, signature: Signature) -> tuple[ArrayT, ArrayT]:
    """Return (X, S) with A = X S, X J-orthogonal, J S symmetric, for A (..., n, n).

    S = (J A^T J A)^(1/2) is the principal root, with eigenvalues in the open right half plane. It
    exists and is unique if and only if A is regular and J A^T J A has no eigenvalue on the negative
    real axis; with p = 0 or q = 0 that holds for every regular A. X comes from Newton's iteration
    as in `jorth.polish`, in float64, but A may be anywhere, and the result is checked.

    Reference: N. J. Higham, D. S. Mackey, N. Mackey, F. Tisseur, SIAM J. Matrix Anal. Appl. 26
    (2005).

    Args:
        A: (..., n, n).
        signature: The signs of J.

    Returns:
        (X, S), like A.

    Raises:
        PolishError: There is no such decomposition, or the iteration does not find it because A is
            too close to having none.

    >>> sig = jorth.Signature(1, 1)
    >>> X, S = jorth.polar(np.array([[2.5, 1.5], [1.5, 2.5]]), sig)  # twice a boost
    >>> X
    array([[1.25, 0.75],
           [0.75, 1.25]])
    """
    matrix = square_matrix(A, signature, "A")
    check_matrices(matrix, "A")
    exact = matrix.to(torch.float64)
    scale = power_of_two(exact.abs().amax(dim=(-2, -1), keepdim=True))
    work = exact / scale
    s = signature.vector(work)
    X = orthogonal_factor(balance(work), signature, "A")
    JS = X.mT @ (s[:, None] * work)
    _check_root(JS, X, work, s)
    S = scale * s[:, None] * (JS + JS.mT) / 2
    return like_input(X.to(matrix), A), like_input(S.to(matrix), A)


def balance(A: Tensor) -> Tensor:
    """Return the multiple of A with ||A|| = ||A^-1||: it has the same X and is nearer to it."""
    inverse, info = torch.linalg.inv_ex(A)
    if bool((info != 0).any()):
        found = f"{int((info != 0).sum())} of {info.numel()} are singular"
        raise PolishError(f"A has no polar decomposition: {found}")
    ratio = torch.linalg.matrix_norm(inverse).sqrt() / torch.linalg.matrix_norm(A).sqrt()
    scaled: Tensor = A * ratio[..., None, None]
    return scaled


def _check_root(JS: Tensor, X: Tensor, A: Tensor, s: Tensor) -> None:
    """Raise a PolishError unless J S is symmetric and S has a spectrum in the right half plane."""
    size = torch.linalg.matrix_norm(X) * torch.linalg.matrix_norm(A)
    defect = (torch.linalg.matrix_norm(JS - JS.mT) / size).max().item()
    least = torch.linalg.eigvals(s[:, None] * JS).real.min().item()
    if defect > math.sqrt(UNIT) or least <= 0:
        raise PolishError(
            "A has no polar decomposition that the iteration can reach: J A^T J A must have no "
            f"eigenvalue on the negative real axis (S has an eigenvalue of real part {least:.3g}, "
            f"and J S is symmetric to {defect:.3g})"
        )
