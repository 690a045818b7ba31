"""The engine of all Jacobi steps: rounds of disjoint pairs on the majoriser of one gradient.

The majoriser <Y - X, G> + L/2 ||Y - X||_F^2 of an L-smooth function has the gradient G + L (Y - X)
at any Y. So several rounds can be run on it without a new gradient, with exact steps on every pair:
P = G Z^T and Q = L (Z Z^T) (x) I_2 for its two rows Z. Steps act on the left, on rows. A right step
is a left step on the transposes: f(X) as a function of X^T has the gradient G^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._triton import runs_triton
from jorth.plane import PlaneSolution, apply_rows, solve_plane, solve_rows
from jorth.plane.averages import finite_matrices
from jorth.signature import Signature

MOST_FUSED_ROWS = 128
"""The most rows of a matrix that one Triton program takes through all rounds."""
WIDTH = 4
"""Columns that a lane takes at a time."""


class Moved(NamedTuple):
    """Matrices (b, n, k) after some rounds, and the decrease of the majoriser of each (b,)."""

    X: Tensor
    decrease: Tensor


@dataclass
class Proposal:
    """A trial point, the decrease of the majoriser, and twice its quadratic term there."""

    X: Tensor
    decrease: float
    quadratic: float
    pairs: int
    unbounded: bool = False


@dataclass(frozen=True)
class Majoriser:
    """How a function is majorised along steps on pairs of rows, and which steps may be taken.

    Attributes:
        signature: The signs of the rows.
        all_components: Whether steps may change the component.
        theta: The proximal weight; negative is relative to the curvature of each pair.
        A: For a single round on a quadratic form, with Q = L (Z D Z^T) (x) A_BB and an L >= 1 that
            makes up for what the pairs have in common. None is the identity.
        D: See A.
        scalar: For a single round with Q = L I.
    """

    signature: Signature
    all_components: bool = False
    theta: float = 0.0
    A: Tensor | None = None
    D: Tensor | None = None
    scalar: bool = False

    def rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Moved:
        """The matrices X (b, n, k) after rounds (r, m, 2), from their gradients G (b, n, k).

        The arithmetic is float64. On a device small matrices take all rounds in one launch. A
        matrix whose gradient is zero or not finite stays as it is.
        """
        G = torch.where(finite_matrices(G), G, 0.0)
        if X.device.type == "cpu":
            return self.compiled_rounds(X, G, L, rounds)
        if runs_triton(X.device) and 2 <= X.shape[-2] <= MOST_FUSED_ROWS and len(X) > 0:
            return self.fused_rounds(X, G, L, rounds)
        return self.torch_rounds(X, G, L, rounds)

    def relative_rounds(self, X: Tensor, H: Tensor, L: float, rounds: NDArray[np.int64]) -> Tensor:
        """The matrices V X, where V minimises <V - I, H> + L/2 ||V - I||^2 over the rounds.

        H stands for G X^T. Lengths are ||Y X^-1 - I||_F, so steps do not shrink where X is large.
        The increment is float64, so that X is rounded once.
        """
        identity = torch.eye(H.shape[-1], dtype=torch.float64, device=X.device).expand_as(H)
        V = self.rounds(identity, H.double(), L, rounds).X
        return (X.double() + (V - identity) @ X.double()).to(X.dtype)

    def propose(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Proposal:
        """One matrix X (n, k) after rounds (r, m, 2); a single one may have A, D or ``scalar``."""
        if len(rounds) == 1:
            return self._propose_round(X, G, L, rounds[0])
        moved = self.rounds(X[None], G[None], L, rounds)
        quadratic = L * (moved.X[0] - X).square().sum().item()
        return Proposal(moved.X[0], moved.decrease.item(), quadratic, rounds.size // 2)

    # -- several rounds

    def compiled_rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Moved:
        """One matrix after the other, pair by pair, on the CPU."""
        from jorth.plane.compiled.majoriser import sweep_batch

        moved = X.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
        centre = (moved - G.double() / L).contiguous()
        decrease = sweep_batch(
            moved.numpy(), centre.numpy(), float(L), self.signature.signs, rounds.reshape(-1, 2),
            self.theta, self.all_components,
        )  # fmt: skip
        return Moved(moved.to(X), torch.from_numpy(decrease))

    def torch_rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Moved:
        """All matrices and all pairs of a round at once."""
        moved = X.clone(memory_format=torch.contiguous_format)
        decrease = torch.zeros(len(X), dtype=torch.float64, device=X.device)
        for pairs in rounds:
            index = torch.from_numpy(pairs).to(X.device)
            gradient = G + L * (moved - X)
            step = self._solve(gradient[:, index].double(), moved[:, index].double(), L, index)
            apply_rows(moved, index, step.V.to(X.dtype))
            decrease += step.decrease.sum(dim=1)
        return Moved(moved, decrease)

    def fused_rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Moved:
        """All rounds in one Triton launch: a program takes a matrix, a lane is a pair."""
        launch = FusedLaunch(self, X, G, L, rounds)
        if rounds.size:
            launch.run()
        moved = launch.moved.mT.to(X.dtype, memory_format=torch.contiguous_format)
        return Moved(moved, launch.decrease)

    # -- a single round

    def _propose_round(self, X: Tensor, G: Tensor, L: float, pairs: NDArray[np.int64]) -> Proposal:
        """The best steps on disjoint pairs (m, 2)."""
        if X.device.type == "cpu":
            trial, decrease, linear, unbounded = self._compiled_round(X, G, L, pairs)
        else:
            index = torch.from_numpy(pairs).to(X.device)
            Z = X[index]
            step = self._solve(G[index], Z, L, index)
            trial = X.clone()
            apply_rows(trial, index, step.V)
            moved = (step.V - torch.eye(2, dtype=X.dtype, device=X.device)) @ Z
            decrease = step.decrease.sum().item()
            linear = (moved * G[index]).sum().item()
            unbounded = bool(step.unbounded.any())
        return Proposal(trial, decrease, -2 * (decrease + linear), len(pairs), unbounded)

    def _compiled_round(
        self, X: Tensor, G: Tensor, L: float, pairs: NDArray[np.int64]
    ) -> tuple[Tensor, float, float, bool]:
        """The trial point, the decrease, <V - I, P> and unbounded, in one pass over X and G."""
        from jorth.plane.compiled.majoriser import PairCurvature, propose_round

        rows = X.double().numpy()
        trial = rows.copy()
        weighted = rows if self.D is None else (X @ self.D).double().numpy()
        A = rows[:0] if self.A is None else self.A.double().numpy()
        curvature = PairCurvature(float(L), weighted, A, self.D is not None, self.scalar)
        decrease, linear, unbounded = propose_round(
            trial, rows, G.double().numpy(), curvature, self.signature.signs, pairs,
            self.theta, self.all_components,
        )  # fmt: skip
        return torch.from_numpy(trial).to(X), decrease, linear, unbounded

    def _solve(self, G: Tensor, Z: Tensor, L: float, index: Tensor) -> PlaneSolution:
        """The best V (..., m, 2, 2) for rows Z and their gradients G, both (..., m, 2, k)."""
        signs = self.signature.vector(Z)[index].expand(*Z.shape[:-2], 2)
        options: dict[str, Any] = {
            "components": "all" if self.all_components else "identity",
            "check": False,
        }
        if self.scalar:
            theta = self.theta if self.theta >= 0 else -self.theta * L
            return solve_plane(G @ Z.mT, L, signs, theta=theta, **options)
        A = L if self.A is None else L * self.A[index[:, :, None], index[:, None, :]]
        weight: Tensor | float = self.theta
        if self.theta < 0:
            gram = Z @ (Z if self.D is None else Z @ self.D).mT
            size_a = A.abs().amax(dim=(-2, -1)) if isinstance(A, Tensor) else A
            weight = -self.theta * size_a * gram.abs().amax(dim=(-2, -1))
        return solve_rows(G, Z, A, signs, D=self.D, theta=weight, **options)


class FusedLaunch:
    """What one launch reads and writes: X^T and centre^T = (X - G / L)^T, in float64."""

    def __init__(
        self, majoriser: Majoriser, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]
    ) -> None:
        self.moved = X.mT.to(torch.float64, copy=True, memory_format=torch.contiguous_format)
        self.decrease = torch.zeros(len(X), dtype=torch.float64, device=X.device)
        self._centre = (self.moved - G.mT.double() / L).contiguous()
        pairs = np.ascontiguousarray(np.moveaxis(rounds, 2, 0), dtype=np.int32)
        self._pairs = torch.from_numpy(pairs).to(X.device)
        self._signs = torch.from_numpy(majoriser.signature.signs.copy()).to(X.device)
        settings = torch.tensor([L, majoriser.theta], dtype=torch.float64)
        self._settings = settings.to(X.device)
        self._all_components = majoriser.all_components

    def run(self) -> None:
        """Move the matrices, in place."""
        from jorth.kernels.by_triton.batches import majoriser_rounds

        batch, k, n = self.moved.shape
        first, second = self._pairs
        count, m = first.shape
        lanes = max(32, 1 << (m - 1).bit_length())
        majoriser_rounds[(batch,)](
            self.moved, self._centre, first, second, self._signs, self._settings, self.decrease,
            count, n, k, m,
            EPS=2.0**-52, ALL_COMPONENTS=self._all_components, LANES=lanes, WIDTH=WIDTH,
            num_warps=lanes // 32, num_stages=1,
        )  # fmt: skip
