"""The plane problem: the best 2x2 step for every pair of a batch, globally, without a loop over pairs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import check_finite, describe, is_number, to_tensor
from jorth.plane.general import solve_general
from jorth.plane.scalar import solve_scalar

Components = Literal["all", "identity"]


class PlaneSolution(NamedTuple):
    """The steps V (..., 2, 2), how far each lowers the surrogate (...), and which problems have no minimiser (...)."""

    V: Any
    decrease: Any
    unbounded: Any


def solve_plane(
    P: Any,
    Q: Any,
    signs: Any,
    *,
    theta: Any = 0.0,
    components: Components = "all",
    check: bool = True,
) -> PlaneSolution:
    """The global minimiser V of <V - I, P> + 1/2 ||V - I||^2_{Q + theta I} over V^T diag(signs) V = diag(signs).

    Args:
        P: (..., 2, 2), the linear term.
        Q: (..., 4, 4) symmetric, acting on vec(V - I) = (V11, V21, V12, V22) - (1, 0, 0, 1); or (...) or a number for
            multiples of the identity.
        signs: (..., 2), each +1 or -1; equal and opposite pairs may be mixed.
        theta: A number or (...), added to the diagonal of Q.
        components: "all" lets V change the component of O(p, q), as in the paper; "identity" allows rotations and
            boosts only.
        check: Raise on NaN and on asymmetric Q, which reads from the device. With False nothing is read back: V = I and
            decrease = NaN there.

    Returns:
        V, decrease >= 0 of the surrogate, and the flag unbounded: no minimiser exists, because the surrogate falls for
        ever, or towards a value it never attains, or beyond the range of the dtype. There V = I and decrease = 0. Of
        equal minima the proper V (rotation or boost) is taken; if nothing decreases by more than rounding, V = I. V
        carries no gradient. float32 is computed in float64 and rounded at the end.
    """
    if components not in ("all", "identity"):
        raise ValueError(f'components must be "all" or "identity", got {components!r}')
    P_, Q_, opposite, theta_ = _tensors(P, Q, signs, theta, check)
    general, eps = Q_.ndim == P_.ndim, torch.finfo(P_.dtype).eps
    if check:
        _check_values(P_, Q_, theta_, general)
    valid = torch.isfinite(P_).all(-1).all(-1) & torch.isfinite(theta_)
    if general:
        valid = valid & torch.isfinite(Q_).all(-1).all(-1) & _symmetric(Q_)
        V, decrease, unbounded = solve_general(
            P_.double(), Q_.double(), opposite, theta_.double(), components == "all", eps
        )
    else:
        valid = valid & torch.isfinite(Q_)
        kappa = (Q_.double() + theta_.double()).expand(P_.shape[:-2])
        V, decrease, unbounded = solve_scalar(P_.double(), kappa, opposite, components == "all", eps)
    V, decrease = V.to(P_.dtype), decrease.to(P_.dtype)
    unbounded = (unbounded | ~torch.isfinite(decrease) | ~torch.isfinite(V).all(-1).all(-1)) & valid
    keep = (decrease > 0) & ~unbounded & valid
    V = torch.where(keep[..., None, None], V, torch.eye(2, dtype=P_.dtype, device=P_.device))
    decrease = torch.where(keep, decrease, torch.where(valid, 0.0, torch.nan))
    if isinstance(P, np.ndarray):
        return PlaneSolution(V.numpy(), decrease.numpy(), unbounded.numpy())
    return PlaneSolution(V, decrease, unbounded)


def _check_values(P: Tensor, Q: Tensor, theta: Tensor, general: bool) -> None:
    for name, tensor in (("P", P), ("Q", Q), ("theta", theta)):
        check_finite(tensor, name)
    if general and not bool(_symmetric(Q).all()):
        bad = ~_symmetric(Q)
        defect = (Q - Q.mT).abs().amax().item()
        raise ValueError(
            f"Q must be symmetric, got max |Q - Q^T| = {defect:.3g} in {int(bad.sum())} of {bad.numel()} pairs"
        )


def _symmetric(Q: Tensor) -> Tensor:
    """Whether each Q is symmetric up to the rounding of its own formation."""
    defect = (Q - Q.mT).abs().amax(dim=(-2, -1))
    return defect <= 64 * torch.finfo(Q.dtype).eps * Q.abs().amax(dim=(-2, -1))


def _tensors(P: Any, Q: Any, signs: Any, theta: Any, check: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    P_ = to_tensor(P, "P").detach()
    if P_.ndim < 2 or P_.shape[-2:] != (2, 2):
        raise ValueError(f"P must have shape (..., 2, 2), got {describe(P)}")
    batch = P_.shape[:-2]
    Q_ = _coefficient(Q, "Q", P_)
    if Q_.shape not in ((), batch, (*batch, 4, 4)):
        raise ValueError(f"Q must have shape {(*batch, 4, 4)} or {tuple(batch)} to go with P, got {describe(Q)}")
    theta_ = _coefficient(theta, "theta", P_)
    if theta_.shape not in ((), batch):
        raise ValueError(f"theta must be a number or have shape {tuple(batch)}, got {describe(theta)}")
    signs_ = torch.as_tensor(np.array(signs) if isinstance(signs, np.ndarray) else signs, device=P_.device)
    if signs_.dtype == torch.bool:
        raise TypeError(f"signs must be numbers +1 or -1, got {describe(signs)}")
    if signs_.shape != (*batch, 2):
        raise ValueError(f"signs must have shape {(*batch, 2)} to go with P, got {describe(signs)}")
    if check and (other := int((signs_.abs() != 1).sum())):
        raise ValueError(f"signs must each be +1 or -1, got {describe(signs)} with {other} other values")
    return P_, Q_, signs_[..., 0] != signs_[..., 1], theta_


def _coefficient(value: Any, name: str, P: Tensor) -> Tensor:
    """A number or an array as a tensor with the dtype and device of P."""
    if is_number(value):
        return torch.full((), float(value), dtype=P.dtype, device=P.device)  # a fill, not a transfer
    if not isinstance(value, (np.ndarray, Tensor)):
        raise TypeError(f"{name} must be a number, a NumPy array or a tensor, got {describe(value)}")
    tensor = to_tensor(value, name).detach()
    if tensor.dtype != P.dtype or tensor.device != P.device:
        raise TypeError(
            f"{name} must have the dtype and device of P ({P.dtype}, {P.device}), got ({tensor.dtype}, {tensor.device})"
        )
    return tensor
