"""Jacobi rounds on a quadratic form that update Y = X D X^T: O(n^2) per round, no gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._triton import runs_triton
from jorth.kernels.pairings import RoundTables, round_tables
from jorth.plane import apply_columns, apply_rows, solve_plane
from jorth.plane.solve import Components

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
        from jorth.kernels.by_triton import rounds

        device = owner.A.device
        n, m = len(owner.A), owner._pairs
        self.owner = owner
        self.k = k
        self.warm = False
        self.code: Any = rounds
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
        self.code.turn_matrices[(_blocks(max(n, k), tiles.turn), _blocks(m, tiles.rows), 2)](
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
