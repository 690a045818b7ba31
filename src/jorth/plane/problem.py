"""The plane problem: the best 2x2 step for every pair of a batch, globally, without a loop."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import describe, is_number, is_symmetric, tensor_alike, to_tensor
from jorth.plane.families import Surrogate, best_step, matrix_surrogate, row_surrogate

Components = Literal["all", "identity"]
RELATIVE_THETA = 1e-12
"""The default proximal weight of solvers, relative to the curvature of each pair."""
ROUNDING = 16
"""A decrease counts if it exceeds so many units of the last place of P and Q."""


class PlaneSolution(NamedTuple):
    """The best steps of a batch.

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

    >>> P, Q = np.array([[0.0, -1.0], [1.0, 0.0]]), 1.0
    >>> jorth.solve_plane(P, Q, np.array([1, 1])).V
    array([[ 0.70710678,  0.70710678],
           [-0.70710678,  0.70710678]])
    """
    P_ = to_tensor(P, "P").detach()
    if P_.ndim < 2 or P_.shape[-2:] != (2, 2):
        raise ValueError(f"P must have shape (..., 2, 2), got {describe(P)}")
    arguments = _Arguments(P_, "P", signs, theta, components, check)
    Q_ = arguments.coefficient(Q, "Q", 4).expand(*P_.shape[:-2], 4, 4)
    surrogate = matrix_surrogate(P_.double(), Q_, arguments.theta, arguments.noise)
    return arguments.solution(surrogate, numpy_out=not isinstance(P, Tensor))


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
    Z_ = to_tensor(Z, "Z").detach()
    G_ = _inputs.tensor_after(G, "G", Z_).detach()
    if Z_.ndim < 2 or Z_.shape[-2] != 2 or Z_.shape[-1] == 0:
        raise ValueError(f"Z must have shape (..., 2, m) with m at least 1, got {describe(Z)}")
    if G_.shape != Z_.shape or G_.dtype != Z_.dtype or G_.device != Z_.device:
        given = f"{describe(G)} and {describe(Z)}"
        raise ValueError(f"G must have the shape, dtype and device of Z, got {given}")
    arguments = _Arguments(Z_, "Z", signs, theta, components, check)
    arguments.accept(G_, "G", torch.isfinite(G_).all(-1).all(-1))
    A_, D_ = arguments.coefficient(A, "A", 2), None
    if D is not None:
        D_ = arguments.like_first(D, "D")
        if D_.shape != (Z_.shape[-1],) * 2:
            raise ValueError(f"D must have shape {(Z_.shape[-1],) * 2}, got {describe(D)}")
        D_ = arguments.symmetric(D_, "D").double()
    own = arguments.theta, arguments.opposite
    surrogate = row_surrogate(G_.double(), Z_.double(), A_, D_, *own)
    return arguments.solution(surrogate, numpy_out=not isinstance(Z, Tensor))


class _Arguments:
    """Turns arguments into tensors like the first one, and records which problems are valid."""

    def __init__(
        self, first: Tensor, name: str, signs: Any, theta: Any, components: str, check: bool
    ) -> None:
        _inputs.check_choice(components, "components", ("all", "identity"))
        _inputs.check_flag(check, "check")
        self._first, self._name, self._check = first, name, check
        self._batch, self._all_components = tuple(first.shape[:-2]), components == "all"
        self._valid = torch.ones((), dtype=torch.bool, device=first.device)
        self.accept(first, name, torch.isfinite(first).all(-1).all(-1))
        self.noise = ROUNDING * torch.finfo(first.dtype).eps
        self.theta = self.coefficient(theta, "theta")
        shape, found = (*self._batch, 2), to_tensor(signs, "signs").to(first.device)
        if found.shape != shape or (check and bool((found.abs() != 1).any())):
            raise ValueError(f"signs must be +1 or -1 of shape {shape}, got {describe(signs)}")
        self.opposite = found[..., 0] != found[..., 1]

    def accept(self, tensor: Tensor, name: str, valid: Tensor) -> None:
        """Refuse numbers that are not finite, or mark their problems."""
        if self._check:
            _inputs.check_finite(tensor, name)
        self._valid = self._valid & valid

    def symmetric(self, tensor: Tensor, name: str) -> Tensor:
        """Refuse or mark what is not symmetric."""
        self.accept(tensor, name, torch.isfinite(tensor).all(-1).all(-1) & is_symmetric(tensor))
        if self._check:
            _inputs.check_symmetric(tensor, name)
        return tensor

    def coefficient(self, value: Any, name: str, n: int = 0) -> Tensor:
        """Return a number or (...); or, with n, (..., n, n), where these are multiples of I."""
        tensor = self.like_first(value, name)
        if tensor.shape in ((), self._batch):
            self.accept(tensor, name, torch.isfinite(tensor))
            tensor = tensor.double()
            return tensor[..., None, None] * torch.eye(n).to(tensor) if n else tensor
        if not n or tensor.shape != (*self._batch, n, n):
            expected = f"{self._batch} or {(*self._batch, n, n)}" if n else str(self._batch)
            found = describe(value)
            raise ValueError(f"{name} must be a number or have shape {expected}, got {found}")
        return self.symmetric(tensor, name).double()

    def like_first(self, value: Any, name: str) -> Tensor:
        """Return a number or an array as a tensor with the dtype and device of the first one."""
        first = self._first
        if is_number(value):  # a fill, not a transfer
            return torch.full((), float(value), dtype=first.dtype, device=first.device)
        if value is None or isinstance(value, str):
            raise TypeError(f"{name} must be a number or an array, got {describe(value)}")
        return tensor_alike(value, name, first, self._name).detach()

    def solution(self, surrogate: Surrogate, *, numpy_out: bool) -> PlaneSolution:
        """Return V, and V = I where a problem is invalid, unbounded or has nothing to gain."""
        found = best_step(surrogate, self.opposite, self._all_components, self.noise)
        V, decrease = (part.to(self._first.dtype) for part in found[:2])
        overflow = ~torch.isfinite(decrease) | ~torch.isfinite(V).all(-1).all(-1)
        unbounded = (found[2] | overflow) & self._valid
        keep = (decrease > 0) & ~unbounded & self._valid
        V = torch.where(keep[..., None, None], V, torch.eye(2, dtype=V.dtype, device=V.device))
        decrease = torch.where(keep, decrease, torch.where(self._valid, 0.0, torch.nan))
        answer = V, decrease, unbounded
        return PlaneSolution(*(part.numpy() for part in answer) if numpy_out else answer)
