"""The inverse curvature of a convex quadratic, as a first metric.

For f = 1/2 tr(X^T A X) + <C, X> the curvature in S is S -> (J A J S X X^T + X X^T S J A J) / 2 up to a term that
vanishes with the gradient. That operator is inverted exactly: with J X^T A X J = U diag(l) U^T and W = J X J U it is
Z -> (l_i + l_j) Z_ij / 2 in S = W Z W^T, a Sylvester equation solved by one eigendecomposition.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jorth.solvers.base import State
from jorth.solvers.problem import Problem

FAR = 4e4
"""||X||_F^2 - n beyond which the model is no good: there the steps that it asks for are cut to nothing at the pole."""
STALE = 0.05
"""The relative change of X after which the preconditioner is made anew."""


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
        state.cache["basis"] = _eigenbasis(form.A.to(made_at), made_at, problem.signs)
    return changed


def precondition(state: State, r: Tensor) -> Tensor | None:
    """The inverse curvature times r, skew; None where there is none."""
    basis: tuple[Tensor, Tensor] | None = state.cache.get("basis")
    if basis is None:
        return None
    W, eigenvalues = basis
    Z = 2 * (W.mT @ r @ W) / (eigenvalues[:, None] + eigenvalues)
    S = W @ Z @ W.mT
    return (S - S.mT).div_(2)


def _eigenbasis(A: Tensor, X: Tensor, s: Tensor) -> tuple[Tensor, Tensor] | None:
    """W and l at X; None where the quadratic is not convex or X is far out."""
    B = s[:, None] * (X.mT @ A @ X) * s
    eigenvalues, U = torch.linalg.eigh((B + B.mT) / 2)
    floor = 1e-8 * eigenvalues[-1]
    convex = bool(eigenvalues[0] > -floor) and bool(floor > 0)
    if not convex or float(X.square().sum()) > len(X) + FAR:
        return None
    return (s[:, None] * X * s) @ U, eigenvalues.clamp(min=floor.item())
