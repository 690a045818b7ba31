"""From the Lie algebra {K : J K skew} to the group: the exponential and the guarded Cayley transform."""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.arrays import ArrayT, check_finite, like_input, square_matrix, unit_roundoff
from jorth.signature import Signature


def exp(K: ArrayT, signature: Signature) -> ArrayT:
    """The exponential of K (..., n, n), J K skew: a J-orthogonal matrix in the identity component."""
    algebra = _algebra_element(K, signature)
    return like_input(torch.linalg.matrix_exp(algebra), K)


def cayley(K: ArrayT, signature: Signature) -> ArrayT:
    """The Cayley transform (I - K/2)^-1 (I + K/2) of K (..., n, n), J K skew.

    It agrees with exp(K) to second order and costs one solve. Along a boost of rapidity w it is
    u = (1 + w/2) / (1 - w/2): a pole at w = 2 and, silently, another component beyond. A real eigenvalue of K is
    at most the norm of its symmetric part, the largest singular value of the block K[+,-], so a ValueError is
    raised unless that is below 2: no step that is returned has passed the pole.
    """
    algebra = _algebra_element(K, signature)
    _check_before_pole(algebra, signature)
    identity = torch.eye(signature.n, dtype=algebra.dtype, device=algebra.device)
    return like_input(torch.linalg.solve(identity - algebra / 2, identity + algebra / 2), K)


def _algebra_element(K: ArrayT, signature: Signature) -> Tensor:
    algebra = square_matrix(K, signature, "K")
    check_finite(algebra, "K")
    JK = signature.vector(algebra)[:, None] * algebra
    defect = (JK + JK.mT).abs().amax().item()
    size = algebra.abs().amax().item()
    # an element formed in floating point as J S with S = M - M^T is skew exactly; a few roundings are let through
    if defect > 8 * unit_roundoff(algebra) * size:
        raise ValueError(
            f"K must be in the Lie algebra (J K skew), got max |J K + (J K)^T| = {defect:.3g} at max |K| = {size:.3g}"
        )
    return algebra


def _check_before_pole(K: Tensor, signature: Signature) -> None:
    if signature.p == 0 or signature.q == 0:
        return
    plus, minus = signature.positions(K.device)
    boost = K[..., plus[:, None], minus]
    largest = torch.linalg.matrix_norm(boost, ord=2).amax().item()
    if largest >= 2:
        raise ValueError(
            f"K must have its boost part K[+,-] below 2 in norm for the Cayley transform (pole at 2), "
            f"got {largest:.3g}; take a shorter step or jorth.exp"
        )
