"""The inverse curvature of a convex quadratic, as a first metric.

For f = 1/2 tr(X^T A X) + <C, X> the curvature in S is S -> (J A J S X X^T + X X^T S J A J) / 2 up to a term that
vanishes with the gradient. That operator is inverted exactly: with J X^T A X J = U diag(l) U^T and W = J X J U it is
Z -> (l_i + l_j) Z_ij / 2 in S = W Z W^T, a Sylvester equation solved by one eigendecomposition. A first metric need not
be exact to the last digit: it is computed in single precision where that resolves the smallest l.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State

FAR = 4e4
"""||X||_F^2 - n beyond which the model is no good: there the steps that it asks for are cut to nothing at the pole."""
STALE = 0.05
"""The relative change of X after which the preconditioner is made anew."""
RESOLVED = 1e-5
"""The least ratio of the smallest to the largest l for single precision, whose rounding is some 1e-7 of the largest."""
FLAT = 1e-8
"""What is less than this share of the largest l counts as zero."""


class Basis(NamedTuple):
    """W (n, n) and l (n,) for A / scale."""

    W: Tensor
    eigenvalues: Tensor
    scale: float


def renew(problem: Problem, state: State) -> bool:
    """Make W and l where they are missing or stale; True when the metric has changed.

    They are made at a point that is stored in the state, so that a resumed run makes the same.
    """
    form = problem.objective.quadratic()
    if form is None or form.D is not None or state.X.shape[0] != state.X.shape[1]:
        return False
    made_at = state.tensors.get("made_at")
    changed = made_at is None or bool((state.X - made_at).norm() > STALE * state.X.norm())
    if changed:
        made_at = state.tensors["made_at"] = state.X.clone()
    if changed or "basis" not in state.cache:
        assert made_at is not None
        state.cache["basis"] = _make(form.A.to(made_at), made_at, problem.signs, state.numbers)
    return changed


def precondition(state: State, r: Tensor) -> Tensor | None:
    """The inverse curvature times r, skew; None where there is none."""
    basis: Basis | None = state.cache.get("basis")
    if basis is None:
        return None
    W, eigenvalues, scale = basis
    size = float(r.abs().max()) or 1.0
    Z = (W.mT @ (r / size).to(W) @ W).div_(eigenvalues[:, None] + eigenvalues)
    S = W @ Z @ W.mT
    return (S - S.mT).to(r).mul_(size / scale)


def _make(A: Tensor, X: Tensor, s: Tensor, numbers: dict[str, float]) -> Basis | None:
    """W and l at X; None where the quadratic is not convex or X is far out.

    Once single precision was not enough it is not tried again; ``numbers``, which a checkpoint keeps, remember that.
    """
    scale = float(A.abs().max())
    if float(X.square().sum()) > len(X) + FAR or not 0 < scale < float("inf"):
        return None
    if not numbers.get("double"):
        basis = _eigenbasis((A / scale).float(), X.float(), s.float(), scale, RESOLVED)
        if basis is not None:
            return basis
        numbers["double"] = 1.0
    return _eigenbasis(A / scale, X, s, scale, -FLAT)


def _eigenbasis(A: Tensor, X: Tensor, s: Tensor, scale: float, least: float) -> Basis | None:
    """W and l in the precision of the arguments; None where the smallest l is below ``least`` times the largest."""
    B = s[:, None] * (X.mT @ A @ X) * s
    eigenvalues, U = torch.linalg.eigh((B + B.mT) / 2)
    largest = float(eigenvalues[-1])
    if not (largest > 0 and float(eigenvalues[0]) > least * largest):
        return None
    return Basis((s[:, None] * X * s) @ U, eigenvalues.clamp(min=FLAT * largest), scale)
