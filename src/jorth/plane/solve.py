"""The plane problem: the best 2x2 step for every pair of a batch, globally, without a loop over pairs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import (
    check_alike,
    check_choice,
    check_finite,
    check_flag,
    describe,
    is_number,
    real_numbers,
    rounded_to,
    to_tensor,
)
from jorth.plane.general import solve_general
from jorth.plane.row_forms import RowForms
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
    check_choice(components, "components", ("all", "identity"))
    check_flag(check, "check")
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
        V, decrease, unbounded = solve_scalar(
            P_.double(), kappa, opposite, components == "all", eps
        )
    return _finished(
        V.to(P_.dtype), decrease.to(P_.dtype), unbounded, valid, numpy_out=isinstance(P, np.ndarray)
    )


def solve_rows(
    G: Any,
    Z: Any,
    A: Any,
    signs: Any,
    *,
    D: Any = None,
    theta: Any = 0.0,
    components: Components = "all",
    check: bool = True,
) -> PlaneSolution:
    """`solve_plane` for P = G Z^T and Q = (Z D Z^T) (x) A, from the two rows themselves.

    These are the P and Q of a left step on f(X) = 1/2 tr(X^T A X D) + <C, X>: Z = X[B, :], G the same rows of the
    gradient, A_BB for A; and with A = L those of an L-smooth f. All null forms are products of row i plus row j and row
    i minus row j, so that nothing is lost however close the rows are to the light cone. A 4x4 Q loses the smaller one
    from cond(X) = u^(-1/2) on, 1e8 in float64.

    Args:
        G: (..., 2, m), two rows of the gradient.
        Z: (..., 2, m), the same rows of X.
        A: (..., 2, 2) symmetric; or (...) or a number for multiples of the identity.
        signs: (..., 2), each +1 or -1.
        D: (m, m) symmetric; the identity when omitted.
        theta: As in `solve_plane`.
        components: As in `solve_plane`.
        check: As in `solve_plane`; A and D must be symmetric, too.

    Returns:
        As `solve_plane`.
    """
    check_choice(components, "components", ("all", "identity"))
    check_flag(check, "check")
    G_, Z_ = to_tensor(G, "G").detach(), to_tensor(Z, "Z").detach()
    if Z_.ndim < 2 or Z_.shape[-2] != 2 or Z_.shape[-1] == 0:
        raise ValueError(f"Z must have shape (..., 2, m) with m at least 1, got {describe(Z)}")
    if G_.shape != Z_.shape or G_.dtype != Z_.dtype or G_.device != Z_.device:
        raise ValueError(
            f"G must have the shape, dtype and device of Z, {describe(Z)}, got {describe(G)}"
        )
    batch, m = Z_.shape[:-2], Z_.shape[-1]
    A_, theta_ = _coefficient(A, "A", Z_, check, "Z"), _theta(theta, Z_, check, "Z")
    if A_.shape not in ((), batch, (*batch, 2, 2)):
        raise ValueError(
            f"A must have shape {(*batch, 2, 2)} or {tuple(batch)} to go with Z, got {describe(A)}"
        )
    if A_.ndim < Z_.ndim or A_.shape == ():
        A_ = A_[..., None, None] * torch.eye(2, dtype=Z_.dtype, device=Z_.device)
    D_ = None if D is None else _coefficient(D, "D", Z_, check, "Z")
    if D_ is not None and D_.shape != (m, m):
        raise ValueError(f"D must have shape {(m, m)} to go with Z, got {describe(D)}")
    opposite = _opposite(signs, Z_, check, "Z")
    if check:
        for name, tensor in (("G", G_), ("Z", Z_), ("A", A_), ("D", D_), ("theta", theta_)):
            if tensor is not None:
                check_finite(tensor, name)
        for name, tensor in (("A", A_), ("D", D_)):
            if tensor is not None:
                _check_symmetric(tensor, name)
    valid = (
        torch.isfinite(G_).all(-1).all(-1)
        & torch.isfinite(Z_).all(-1).all(-1)
        & torch.isfinite(theta_)
    )
    valid = valid & torch.isfinite(A_).all(-1).all(-1) & _symmetric(A_)
    if D_ is not None:
        valid = valid & torch.isfinite(D_).all() & _symmetric(D_)
    rows = RowForms(
        G_.double(), Z_.double(), A_.double(), None if D_ is None else D_.double(), theta_.double()
    )
    V, decrease, unbounded = rows.solve(opposite, components == "all", torch.finfo(Z_.dtype).eps)
    return _finished(
        V.to(Z_.dtype), decrease.to(Z_.dtype), unbounded, valid, numpy_out=isinstance(Z, np.ndarray)
    )


def _finished(
    V: Tensor, decrease: Tensor, unbounded: Tensor, valid: Tensor, *, numpy_out: bool
) -> PlaneSolution:
    """The identity where there is no minimiser, or no decrease, or no valid problem."""
    unbounded = (unbounded | ~torch.isfinite(decrease) | ~torch.isfinite(V).all(-1).all(-1)) & valid
    keep = (decrease > 0) & ~unbounded & valid
    V = torch.where(keep[..., None, None], V, torch.eye(2, dtype=V.dtype, device=V.device))
    decrease = torch.where(keep, decrease, torch.where(valid, 0.0, torch.nan))
    if numpy_out:
        return PlaneSolution(V.numpy(), decrease.numpy(), unbounded.numpy())
    return PlaneSolution(V, decrease, unbounded)


def _check_values(P: Tensor, Q: Tensor, theta: Tensor, general: bool) -> None:
    for name, tensor in (("P", P), ("Q", Q), ("theta", theta)):
        check_finite(tensor, name)
    if general:
        _check_symmetric(Q, "Q")


def _check_symmetric(Q: Tensor, name: str) -> None:
    bad = ~_symmetric(Q)
    if bool(bad.any()):
        defect = (Q - Q.mT).abs().amax().item()
        raise ValueError(
            f"{name} must be symmetric, got max |{name} - {name}^T| = {defect:.3g} "
            f"in {int(bad.sum())} of {bad.numel()} pairs"
        )


def _symmetric(Q: Tensor) -> Tensor:
    """Whether each Q is symmetric up to the rounding of its own formation."""
    defect = (Q - Q.mT).abs().amax(dim=(-2, -1))
    return defect <= 64 * torch.finfo(Q.dtype).eps * Q.abs().amax(dim=(-2, -1))


def _tensors(
    P: Any, Q: Any, signs: Any, theta: Any, check: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    P_ = to_tensor(P, "P", meta=not check).detach()
    if P_.ndim < 2 or P_.shape[-2:] != (2, 2):
        raise ValueError(f"P must have shape (..., 2, 2), got {describe(P)}")
    batch = P_.shape[:-2]
    Q_ = _coefficient(Q, "Q", P_, check)
    if Q_.shape not in ((), batch, (*batch, 4, 4)):
        raise ValueError(
            f"Q must have shape {(*batch, 4, 4)} or {tuple(batch)} to go with P, got {describe(Q)}"
        )
    return P_, Q_, _opposite(signs, P_, check), _theta(theta, P_, check)


def _theta(theta: Any, P: Tensor, check: bool, first: str = "P") -> Tensor:
    weight, batch = _coefficient(theta, "theta", P, check, first), P.shape[:-2]
    if weight.shape not in ((), batch):
        raise ValueError(
            f"theta must be a number or have shape {tuple(batch)}, got {describe(theta)}"
        )
    return weight


def _opposite(signs: Any, P: Tensor, check: bool, first: str = "P") -> Tensor:
    """Whether the two signs of each pair differ."""
    batch = P.shape[:-2]
    signs_ = real_numbers(signs, "signs", "numbers +1 or -1", P.device)
    if signs_.shape != (*batch, 2):
        raise ValueError(
            f"signs must have shape {(*batch, 2)} to go with {first}, got {describe(signs)}"
        )
    if check and (other := int((signs_.abs() != 1).sum())):
        raise ValueError(
            f"signs must each be +1 or -1, got {describe(signs)} with {other} other values"
        )
    return signs_[..., 0] != signs_[..., 1]


def _coefficient(value: Any, name: str, P: Tensor, check: bool, first: str = "P") -> Tensor:
    """A number or an array as a tensor with the dtype and device of P, the first argument."""
    if is_number(value):
        number = rounded_to(P.dtype, float(value))
        return torch.full((), number, dtype=P.dtype, device=P.device)  # a fill, not a transfer
    if not isinstance(value, (np.ndarray, Tensor)):
        raise TypeError(
            f"{name} must be a number, a NumPy array or a tensor, got {describe(value)}"
        )
    tensor = to_tensor(value, name, meta=not check).detach()
    check_alike(tensor, name, P, first)
    return tensor
