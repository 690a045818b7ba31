"""The plane problem: the best 2x2 step for every pair of a batch, globally, without a loop."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import describe, is_number, is_symmetric, tensor_alike, to_tensor
from jorth.plane.families import best_step, matrix_surrogate, row_surrogate

Components = Literal["all", "identity"]
RELATIVE_THETA = 1e-12
"""The default proximal weight of solvers, relative to the curvature of each pair."""
ROUNDING = 16
"""A decrease counts if it exceeds so many units of the last place of P and Q."""


class PlaneSolution(NamedTuple):
    """The steps V (..., 2, 2), the decrease of each, and which have no minimiser.

    Attributes:
        V: (..., 2, 2), the steps.
        decrease: (...), how far each lowers the surrogate.
        unbounded: (...), which have no minimiser.
    """

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
    """Return the global minimiser V of <V - I, P> + 1/2 ||V - I||^2_{Q + theta I}, V^T J V = J.

    Here J = diag(signs).

    Args:
        P: (..., 2, 2), the linear term.
        Q: (..., 4, 4) symmetric, acting on vec(V - I) = (V11, V21, V12, V22) - (1, 0, 0, 1); or
            (...) or a number for multiples of the identity.
        signs: (..., 2), each +1 or -1; equal and opposite pairs may be mixed.
        theta: A number or (...), added to the diagonal of Q; negative numbers are relative to the
            largest entry of Q.
        components: "all" lets V change the component of O(p, q), as in the paper; "identity" allows
            rotations and boosts only.
        check: Raise an error for NaN and for an asymmetric Q, which reads from the device. With
            False nothing is read, and such problems get V = I and decrease = NaN.

    Returns:
        V, decrease >= 0 of the surrogate, and the flag unbounded. It marks problems without a
        minimiser, where the surrogate falls without bound, towards a value it never attains, or
        beyond the range of the dtype; V = I and decrease = 0 there. If two minima are equal, V is
        the proper one (a rotation or a boost); if nothing decreases by more than rounding, V = I.
        V carries no gradient. float32 is computed in float64 and rounded at the end.
    """
    _inputs.check_choice(components, "components", ("all", "identity"))
    _inputs.check_flag(check, "check")
    P_ = to_tensor(P, "P").detach()
    if P_.ndim < 2 or P_.shape[-2:] != (2, 2):
        raise ValueError(f"P must have shape (..., 2, 2), got {describe(P)}")
    arguments = _Arguments(P_, "P", check)
    Q_ = arguments.coefficient(Q, "Q", 4, 4).double()
    opposite = arguments.opposite(signs)
    theta_ = arguments.coefficient(theta, "theta").double()
    noise = ROUNDING * torch.finfo(P_.dtype).eps
    if Q_.ndim < P_.ndim:
        Q_ = Q_.expand(P_.shape[:-2])[..., None, None] * torch.eye(4).to(Q_)
    surrogate = matrix_surrogate(P_.double(), Q_, theta_, noise)
    found = best_step(surrogate, opposite, components == "all", noise)
    return arguments.solution(*found, numpy_out=not isinstance(P, Tensor))


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
    """Return `solve_plane` for P = G Z^T and Q = (Z D Z^T) (x) A, from the two rows themselves.

    These are the P and Q of a left step on f(X) = 1/2 tr(X^T A X D) + <C, X>, where Z = X[B, :], G
    holds the same rows of the gradient, and A stands for A_BB; A = L gives those of an L-smooth f.
    All null forms are products of z_i + z_j and z_i - z_j, so no accuracy is lost however close the
    rows are to the light cone. A 4x4 Q loses the smaller form once cond(X) reaches u^(-1/2), 1e8 in
    float64.

    Args:
        G: (..., 2, m), two rows of the gradient.
        Z: (..., 2, m), the same rows of X.
        A: (..., 2, 2) symmetric; or (...) or a number for multiples of the identity.
        signs: (..., 2), each +1 or -1.
        D: (m, m) symmetric; the identity when omitted.
        theta: As in `solve_plane`.
        components: As in `solve_plane`.
        check: As in `solve_plane`; A and D must be symmetric.
    """
    _inputs.check_choice(components, "components", ("all", "identity"))
    _inputs.check_flag(check, "check")
    Z_ = to_tensor(Z, "Z").detach()
    G_ = _inputs.tensor_after(G, "G", Z_).detach()
    if Z_.ndim < 2 or Z_.shape[-2] != 2 or Z_.shape[-1] == 0:
        raise ValueError(f"Z must have shape (..., 2, m) with m at least 1, got {describe(Z)}")
    if G_.shape != Z_.shape or G_.dtype != Z_.dtype or G_.device != Z_.device:
        given = f"{describe(G)} and {describe(Z)}"
        raise ValueError(f"G must have the shape, dtype and device of Z, got {given}")
    arguments = _Arguments(Z_, "Z", check)
    arguments.accept(G_, "G", torch.isfinite(G_).all(-1).all(-1))
    A_ = arguments.coefficient(A, "A", 2, 2).double()
    if A_.ndim < Z_.ndim:
        A_ = A_[..., None, None] * torch.eye(2, dtype=A_.dtype, device=A_.device)
    D_ = None if D is None else arguments.like_first(D, "D")
    if D_ is not None:
        if D_.shape != (Z_.shape[-1],) * 2:
            raise ValueError(f"D must have shape {(Z_.shape[-1],) * 2}, got {describe(D)}")
        D_ = arguments.symmetric(D_, "D").double()
    opposite = arguments.opposite(signs)
    theta_ = arguments.coefficient(theta, "theta").double()
    surrogate = row_surrogate(G_.double(), Z_.double(), A_, D_, theta_, opposite)
    noise = ROUNDING * torch.finfo(Z_.dtype).eps
    found = best_step(surrogate, opposite, components == "all", noise)
    return arguments.solution(*found, numpy_out=not isinstance(Z, Tensor))


class _Arguments:
    """Turns arguments into tensors like the first one, and records which problems are valid."""

    def __init__(self, first: Tensor, name: str, check: bool) -> None:
        self._first = first
        self._name = name
        self._check = check
        self._valid = torch.ones((), dtype=torch.bool, device=first.device)
        self.accept(first, name, torch.isfinite(first).all(-1).all(-1))

    def accept(self, tensor: Tensor, name: str, valid: Tensor) -> None:
        """Refuse numbers that are not finite, or mark their problems."""
        if self._check:
            _inputs.check_finite(tensor, name)
        self._valid = self._valid & valid

    def coefficient(self, value: Any, name: str, *matrix: int) -> Tensor:
        """Return a number, an array (...) or symmetric matrices of the shape ``matrix``."""
        tensor, batch = self.like_first(value, name), tuple(self._first.shape[:-2])
        if tensor.shape in ((), batch):
            self.accept(tensor, name, torch.isfinite(tensor))
            return tensor
        if not matrix or tensor.shape != (*batch, *matrix):
            expected = f" or {(*batch, *matrix)}" if matrix else ""
            found = f"{batch}{expected}, got {describe(value)}"
            raise ValueError(f"{name} must be a number or have shape {found}")
        return self.symmetric(tensor, name)

    def symmetric(self, tensor: Tensor, name: str) -> Tensor:
        """Refuse or mark what is not symmetric."""
        self.accept(tensor, name, torch.isfinite(tensor).all(-1).all(-1) & is_symmetric(tensor))
        if self._check:
            _inputs.check_symmetric(tensor, name)
        return tensor

    def opposite(self, signs: Any) -> Tensor:
        """Return whether the two signs of each pair differ."""
        shape = (*self._first.shape[:-2], 2)
        found = to_tensor(signs, "signs").to(self._first.device)
        if found.shape != shape or (self._check and bool((found.abs() != 1).any())):
            raise ValueError(f"signs must be +1 or -1 of shape {shape}, got {describe(signs)}")
        return found[..., 0] != found[..., 1]

    def solution(
        self, V: Tensor, decrease: Tensor, unbounded: Tensor, *, numpy_out: bool
    ) -> PlaneSolution:
        """Return V, and V = I where a problem is invalid, unbounded or has nothing to gain."""
        V = V.to(self._first.dtype)
        decrease = decrease.to(self._first.dtype)
        overflow = ~torch.isfinite(decrease) | ~torch.isfinite(V).all(-1).all(-1)
        unbounded = (unbounded | overflow) & self._valid
        keep = (decrease > 0) & ~unbounded & self._valid
        V = torch.where(keep[..., None, None], V, torch.eye(2, dtype=V.dtype, device=V.device))
        decrease = torch.where(keep, decrease, torch.where(self._valid, 0.0, torch.nan))
        found = PlaneSolution(V, decrease, unbounded)
        return PlaneSolution(*(part.numpy() for part in found)) if numpy_out else found

    def like_first(self, value: Any, name: str) -> Tensor:
        """Return a number or an array as a tensor with the dtype and device of the first one."""
        first = self._first
        if is_number(value):  # a fill, not a transfer
            return torch.full((), float(value), dtype=first.dtype, device=first.device)
        if value is None or isinstance(value, str):
            raise TypeError(f"{name} must be a number or an array, got {describe(value)}")
        return tensor_alike(value, name, first, self._name).detach()
