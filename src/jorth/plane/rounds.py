"""Rounds of disjoint pairs: on the majoriser of one gradient, and on a quadratic form.

The majoriser <Y - X, G> + L/2 ||Y - X||_F^2 of an L-smooth function has the gradient G + L (Y - X)
at any Y. So several rounds can be run on it without a new gradient, with exact steps on every pair:
P = G Z^T and Q = L (Z Z^T) (x) I_2 for its two rows Z. Steps act on the left, on rows. A right step
is a left step on the transposes: f(X) as a function of X^T has the gradient G^T.

On a quadratic form rounds update Y = X D X^T, so that each has its own gradient for O(n^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._triton import runs_triton
from jorth.plane.apply import apply_columns, apply_rows
from jorth.plane.averages import finite_matrices
from jorth.plane.pairs import RoundTables, round_tables
from jorth.plane.problem import Components, PlaneSolution, solve_plane, solve_rows
from jorth.signature import Signature

CHUNK = 32
"""Rounds whose pairs are uploaded together and form one CUDA graph; even, as two Y alternate."""


class Tiles(NamedTuple):
    """Columns and warps of the dot products; row pairs, columns and warps of the application."""

    dot: int
    dot_warps: int
    rows: int
    turn: int
    turn_warps: int


LANES = 32
TILES = {8: Tiles(1024, 4, 1, 512, 4), 4: Tiles(1024, 4, 1, 1024, 4)}
"""The best tiles found on an H200, by bytes per number."""


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

        The arithmetic is float64. A matrix whose gradient is zero or not finite stays as it is.
        """
        G = torch.where(finite_matrices(G), G, 0.0)
        if X.device.type == "cpu":
            return self.compiled_rounds(X, G, L, rounds)
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
        from jorth.plane._numba import sweep_batch

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
        from jorth.plane._numba import PairCurvature, propose_round

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


class QuadraticRounds:
    """Rounds of disjoint pairs of rows on f = 1/2 tr(X^T A X D) + <C, X>.

    Every pair takes the best step for its exact linear term and a multiple of its exact curvature.
    One round moves 6 n^2 words (8 n^2 with C): A and Y are read for the coefficients, X and Y are
    read and written when the steps are applied. Nothing is read back from the device, and on CUDA
    the rounds are replayed as a graph.

    Args:
        A: (n, n) symmetric.
        C: (n, k) or None.
        D: (k, k) symmetric or None, the identity.
        signs: (n,), the signs of J.
        all_components: Whether steps may change the component.
        theta: The proximal weight; negative is relative to the curvature of each pair.
    """

    def __init__(
        self,
        A: Tensor,
        C: Tensor | None,
        D: Tensor | None,
        signs: Tensor,
        *,
        all_components: bool,
        theta: float,
    ) -> None:
        self.A = A.contiguous()
        self.C = None if C is None else C.contiguous()
        self.D = D
        self.signs = signs.to(device=A.device, dtype=torch.int8)
        self.all_components = all_components
        self.theta = theta
        self._compiled = runs_triton(A.device)
        self._pairs = len(A) - len(A) // 2
        self._gained = torch.zeros(self._pairs, dtype=torch.float64, device=A.device)
        self._flags = torch.zeros(self._pairs, dtype=torch.int32, device=A.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._X: Tensor | None = None

    def start(self, X: Tensor) -> None:
        """Start from a copy of X (n, k)."""
        if self._X is None:
            self._X = torch.empty_like(X, memory_format=torch.contiguous_format)
            self._Y = [torch.empty_like(self.A) for _ in range(2 if self._compiled else 1)]
            self._kernels = _Kernels(self, X.shape[1]) if self._compiled else None
        self._X.copy_(X)
        self._current = 0
        torch.matmul(X if self.D is None else X @ self.D, X.mT, out=self._Y[0])
        self._gained.zero_()
        self._flags.zero_()

    @property
    def X(self) -> Tensor:
        """The current point; it changes in place."""
        assert self._X is not None
        return self._X

    @property
    def Y(self) -> Tensor:
        """X D X^T at the current point."""
        return self._Y[self._current]

    @property
    def decrease(self) -> Tensor:
        """The total decrease since `start`; NaN if the coefficients of a pair were not finite."""
        return self._gained.sum()

    @property
    def unbounded(self) -> Tensor:
        """Whether a pair since `start` had no minimiser."""
        return self._flags.any()

    def run(self, partners: NDArray[np.int64], factor: float = 1.0) -> None:
        """Run rounds that are given by the partners of all indices, (r, n)."""
        for at in range(0, len(partners), CHUNK):
            self._chunk(round_tables(partners[at : at + CHUNK], self.A.device), factor)

    def _chunk(self, tables: RoundTables, factor: float) -> None:
        if self._kernels is None:
            for first, second in zip(tables.first, tables.second, strict=True):
                self._plain(torch.stack([first, second], dim=1).long(), factor)
            return
        self._kernels.take(tables, factor)
        full = len(tables.first) == CHUNK
        if full and self.A.is_cuda and self._kernels.warm:
            self._replay()
        else:  # the first rounds compile the kernels
            for turn in range(len(tables.first)):
                self._kernels.round(turn)
            self._kernels.warm = True

    def _replay(self) -> None:
        assert self._kernels is not None
        if self._current:  # the graph reads Y where `start` puts it
            self._Y[0].copy_(self._Y[1])
            self._current = 0
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for turn in range(CHUNK):
                    self._kernels.round(turn)
        self._graph.replay()

    def _plain(self, pairs: Tensor, factor: float) -> None:
        met = pairs[:, 0] != pairs[:, 1]
        decrease, unbounded = plain_round(
            self.A, self.C, self.X, self.Y, pairs[met], self.signs,
            factor=factor, theta=self.theta, all_components=self.all_components,
        )  # fmt: skip
        self._gained[: len(decrease)] += decrease
        self._flags[: len(decrease)] |= unbounded.int()


class _Kernels:
    """The launches of one round, on buffers that stay where they are."""

    def __init__(self, owner: QuadraticRounds, k: int) -> None:
        from jorth.plane import _triton

        device = owner.A.device
        n, m = len(owner.A), owner._pairs
        self.owner = owner
        self.k = k
        self.warm = False
        self.code: Any = _triton
        self.tiles = TILES[owner.A.element_size()]
        self.coefficients = torch.empty((12, m), dtype=torch.float64, device=device)
        self.factors = torch.empty((6, m), dtype=torch.float64, device=device)
        self.shift = torch.empty(n, dtype=owner.A.dtype, device=device)
        self.mix = torch.empty_like(self.shift)
        self.settings = torch.tensor([1.0, owner.theta], dtype=torch.float64, device=device)
        shapes = ((CHUNK, m), (CHUNK, m), (CHUNK, n))
        self.tables = RoundTables(
            *(torch.zeros(shape, dtype=torch.int32, device=device) for shape in shapes)
        )

    def take(self, tables: RoundTables, factor: float) -> None:
        """Copy pairs and factor to where the launches read them."""
        for own, given in zip(self.tables, tables, strict=True):
            own[: len(given)].copy_(given)
        self.settings[0].fill_(factor)

    def round(self, turn: int) -> None:
        """Round ``turn`` of the tables."""
        owner = self.owner
        A, X, Y, new_Y = owner.A, owner.X, owner.Y, owner._Y[1 - owner._current]
        n, k, m = len(A), self.k, owner._pairs
        first, second, partner = (table[turn] for table in self.tables)
        C = A if owner.C is None else owner.C
        tiles = self.tiles
        self.code.pair_coefficients[(m,)](
            A, C, X, Y, first, second, self.coefficients, n, k, m,
            HAS_C=owner.C is not None, HAS_D=owner.D is not None, TILE=tiles.dot,
            num_warps=tiles.dot_warps,
        )  # fmt: skip
        self.code.solve_pairs[(_blocks(m, LANES),)](
            self.coefficients, first, second, owner.signs, self.settings, self.factors, self.shift,
            self.mix, owner._gained, owner._flags, m,
            EPS=torch.finfo(X.dtype).eps, ALL_COMPONENTS=owner.all_components, LANES=LANES,
            num_warps=1,
        )  # fmt: skip
        self.code.apply_steps[(_blocks(max(n, k), tiles.turn), _blocks(m, tiles.rows), 2)](
            X, Y, new_Y, first, second, partner, self.factors, self.shift, self.mix, n, k, m,
            ROWS=tiles.rows, TILE=tiles.turn, num_warps=tiles.turn_warps,
        )  # fmt: skip
        owner._current = 1 - owner._current


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


def plain_round(  # the arguments are all that the kernels read
    A: Tensor,
    C: Tensor | None,
    X: Tensor,
    Y: Tensor,
    pairs: Tensor,
    signs: Tensor,
    *,
    factor: float,
    theta: float,
    all_components: bool,
) -> tuple[Tensor, Tensor]:
    """One round in plain torch: X <- V X and Y <- V Y V^T in place for disjoint pairs (m, 2).

    P = [A Y + C X^T]_BB and Q = factor Y_BB (x) A_BB; theta < 0 is relative to the largest entry of
    Q. Returns the decrease and the unbounded flag of each pair.
    """
    P = A[pairs] @ Y[pairs].mT
    if C is not None:
        P = P + C[pairs] @ X[pairs].mT
    rows, columns = pairs[:, :, None], pairs[:, None, :]
    weight = factor * A[rows, columns]
    block = Y[rows, columns]
    block = (block + block.mT) / 2
    Q = (block[:, :, None, :, None] * weight[:, None, :, None, :]).reshape(-1, 4, 4)
    bound = -theta * Q.abs().amax(dim=(-2, -1)) if theta < 0 else torch.full_like(P[:, 0, 0], theta)
    components: Components = "all" if all_components else "identity"
    V, decrease, unbounded = solve_plane(
        P, Q, signs[pairs], theta=bound, components=components, check=False
    )
    apply_rows(X, pairs, V)
    apply_rows(Y, pairs, V)
    apply_columns(Y, pairs, V.mT)
    return decrease, unbounded
