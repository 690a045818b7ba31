"""Rounds of disjoint pairs: on the majoriser of one gradient, and on a quadratic form.

The majoriser <Y - X, G> + L/2 ||Y - X||_F^2 of an L-smooth function has the gradient G + L (Y - X)
at any Y, so that several rounds run on it without a new gradient. Steps act on rows; a right step
is a left step on the transposes. On a quadratic form rounds update Y = X D X^T in O(n^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._triton import runs_triton
from jorth.plane.apply import apply_rows
from jorth.plane.families import kronecker
from jorth.plane.pairs import round_tables
from jorth.plane.problem import Components, solve_plane, solve_rows
from jorth.signature import Signature

After = tuple[Tensor, Tensor, Tensor]
CHUNK = 32
"""Rounds whose pairs are uploaded together and form one CUDA graph; even, as two Y alternate."""


@dataclass
class Proposal:
    """A trial point, the decrease of the majoriser, and twice its quadratic term there.

    The quadratic term is that of Q = L (Z Z^T) (x) I_2, for a scalar majoriser too.
    """

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
        scalar: For a single round with Q = L I.
    """

    signature: Signature
    all_components: bool = False
    theta: float = 0.0
    scalar: bool = False

    def propose(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> Proposal:
        """Return X (n, k) after rounds (r, m, 2); a single one may be ``scalar``."""
        Y, gain, flag = self.rounds(X[None].double(), G[None], L, rounds)
        step = Y[0] - X.double()
        # -2 (gain + <step, G>) would be lost in the rounding of <X, G> for short steps
        quadratic = L * step.square().sum()
        # the only wait for a device
        decrease, twice, unbounded = torch.stack([gain[0], quadratic, flag[0].double()]).tolist()
        return Proposal(Y[0].to(X), decrease, twice, rounds.size // 2, bool(unbounded))

    def relative_rounds(self, X: Tensor, H: Tensor, L: float, rounds: NDArray[np.int64]) -> Tensor:
        """Return the matrices V X, where V minimises <V - I, H> + L/2 ||V - I||^2 over the rounds.

        H stands for G X^T. Lengths are ||Y X^-1 - I||_F, so steps do not shrink where X is large.
        The increment is float64, so that X is rounded once.
        """
        identity = torch.eye(H.shape[-1], dtype=torch.float64, device=X.device).expand_as(H)
        V = self.rounds(identity, H.double(), L, rounds)[0]
        return (X.double() + (V - identity) @ X.double()).to(X.dtype)

    def rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> After:
        """Return the matrices X (b, n, k) after rounds (r, m, 2), from their gradients G (b, n, k).

        With them go the decreases (b,), and which have met a plane without a minimiser (b,), in
        float64. A pair whose slopes are not finite rests; its decrease is NaN.
        """
        take = self.compiled_rounds if X.device.type == "cpu" else self.torch_rounds
        Y, decrease, unbounded = take(X.double(), G.double(), L, rounds)
        return Y.to(X), decrease, unbounded

    def torch_rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> After:
        """Return the same in float64, all matrices and all pairs of a round at once."""
        Y = X.clone(memory_format=torch.contiguous_format)
        decrease = torch.zeros_like(X[:, 0, 0])
        unbounded = decrease > 0
        options: dict[str, Any] = {"theta": self.theta, "check": False}
        options["components"] = "all" if self.all_components else "identity"
        for pairs in rounds:
            index = torch.from_numpy(pairs).to(X.device)
            Z = Y[:, index]
            slopes = G[:, index] + L * (Z - X[:, index])
            signs = self.signature.vector(Z)[index].expand(*Z.shape[:-2], 2)
            if self.scalar:
                step = solve_plane(slopes @ Z.mT, L, signs, **options)
            else:
                step = solve_rows(slopes, Z, torch.full_like(Z[..., 0, 0], L), signs, **options)
            apply_rows(Y, index, step.V)
            decrease += step.decrease.sum(dim=1)
            unbounded |= step.unbounded.any(dim=1)
        return Y, decrease, unbounded

    def compiled_rounds(self, X: Tensor, G: Tensor, L: float, rounds: NDArray[np.int64]) -> After:
        """Return the same by numba on the CPU, one matrix and one pair after the other."""
        from jorth.plane._numba import majorised_steps

        Y = X.clone(memory_format=torch.contiguous_format)
        decrease, unbounded = majorised_steps(
            Y.numpy(), X.contiguous().numpy(), G.contiguous().numpy(),
            float(L), self.scalar, self.signature.signs, rounds.reshape(-1, 2), self.theta,
            self.all_components,
        )  # fmt: skip
        return Y, torch.from_numpy(decrease), torch.from_numpy(unbounded)


@dataclass(eq=False)
class QuadraticRounds:
    """Rounds of disjoint pairs of rows on f = 1/2 tr(X^T A X D) + <C, X>.

    Every pair takes the best step for its exact linear term and a multiple of its exact curvature.
    Nothing is read back from the device, and on CUDA the rounds are replayed as a graph, by kernels
    that stay in the component.

    Attributes:
        A: (n, n) symmetric.
        C: (n, k) or None.
        D: (k, k) symmetric or None, the identity.
        columns: k, of the points X.
        signs: (n,), the signs of J.
        all_components: Whether steps may change the component.
        theta: The proximal weight; negative is relative to the curvature of each pair.
    """

    A: Tensor
    C: Tensor | None
    D: Tensor | None
    columns: int
    signs: Tensor
    all_components: bool
    theta: float

    def __post_init__(self) -> None:
        A = self.A = self.A.contiguous()
        self.C = None if self.C is None else self.C.contiguous()
        self.signs = self.signs.to(device=A.device, dtype=torch.int8)
        self._compiled = runs_triton(A.device) and not self.all_components
        n, m = len(A), len(A) - len(A) // 2
        self._gained = torch.zeros(m, dtype=torch.float64, device=A.device)
        self._flags = torch.zeros(m, dtype=torch.int32, device=A.device)
        # launches read and write buffers that stay where they are
        self.X = A.new_empty((n, self.columns))
        self._Y = [torch.empty_like(A) for _ in range(2 if self._compiled else 1)]
        if self._compiled:
            double: dict[str, Any] = {"dtype": torch.float64, "device": A.device}
            self._warm = False
            self._graph: torch.cuda.CUDAGraph | None = None
            self._coefficients = torch.empty((12, m), **double)
            self._factors = torch.empty((6, m), **double)
            self._shift, self._mix = torch.empty((2, n), dtype=A.dtype, device=A.device)
            self._settings = torch.tensor([1.0, self.theta], **double)
            integer: dict[str, Any] = {"dtype": torch.int32, "device": A.device}
            self._tables = [torch.zeros((CHUNK, width), **integer) for width in (m, m, n)]

    def start(self, X: Tensor) -> None:
        """Start from a copy of X (n, k)."""
        self.X.copy_(X)
        self._current = 0
        torch.matmul(X if self.D is None else X @ self.D, X.mT, out=self._Y[0])
        self._gained.zero_()
        self._flags.zero_()

    @property
    def Y(self) -> Tensor:
        """Return X D X^T at the current point."""
        return self._Y[self._current]

    @property
    def decrease(self) -> Tensor:
        """Return the total decrease since `start`; NaN if a coefficient was not finite."""
        return self._gained.sum()

    @property
    def unbounded(self) -> Tensor:
        """Return whether a pair since `start` had no minimiser."""
        return self._flags.any()

    def run(self, rounds: NDArray[np.int64], factor: float = 1.0) -> None:
        """Run rounds of disjoint pairs (r, m, 2)."""
        if not self._compiled:
            for pairs in torch.from_numpy(rounds).to(self.A.device):
                self._take_round(pairs, factor)
            return
        for at in range(0, len(rounds), CHUNK):
            tables = round_tables(len(self.A), rounds[at : at + CHUNK], self.A.device)
            for own, given in zip(self._tables, tables, strict=True):
                own[: len(given)].copy_(given)
            self._settings[0].fill_(factor)
            if len(tables[0]) < CHUNK or not self.A.is_cuda or not self._warm:
                for turn in range(len(tables[0])):
                    self._launch(turn)
                self._warm = True  # the first rounds compile the kernels
                continue
            if self._current:  # the graph reads Y where `start` puts it
                self._Y[0].copy_(self._Y[1])
                self._current = 0
            if self._graph is None:
                self._graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self._graph):
                    for turn in range(CHUNK):
                        self._launch(turn)
            self._graph.replay()

    def _take_round(self, pairs: Tensor, factor: float) -> None:
        """Set X <- V X and Y <- V Y V^T for disjoint pairs (m, 2): what the kernels do.

        P = [A Y + C X^T]_BB and Q = factor Y_BB (x) A_BB.
        """
        A, X, Y = self.A, self.X, self.Y
        P = A[pairs] @ Y[pairs].mT
        if self.C is not None:
            P = P + self.C[pairs] @ X[pairs].mT
        block = pairs[:, :, None], pairs[:, None, :]
        Q = kronecker((Y[block] + Y[block].mT) / 2, factor * A[block])
        components: Components = "all" if self.all_components else "identity"
        V, decrease, unbounded = solve_plane(
            P, Q, self.signs[pairs], theta=self.theta, components=components, check=False
        )
        apply_rows(X, pairs, V)
        apply_rows(Y, pairs, V)
        apply_rows(Y.mT, pairs, V)
        self._gained[: len(pairs)] += decrease
        self._flags[: len(pairs)] |= unbounded.int()

    def _launch(self, turn: int) -> None:
        """Launch round ``turn`` of the tables; tiles and warps are the best found on an H200."""
        from jorth.plane import _triton

        A, X, Y, new_Y = self.A, self.X, self.Y, self._Y[1 - self._current]
        n, k, m = len(A), X.shape[1], len(self._gained)
        first, second, partner = (table[turn] for table in self._tables)
        _triton.pair_coefficients[(m,)](
            A, A if self.C is None else self.C, X, Y, first, second, self._coefficients, n, k, m,
            HAS_C=self.C is not None, HAS_D=self.D is not None, TILE=1024, num_warps=4,
        )  # fmt: skip
        lanes, tile = 32, 4096 // A.element_size()
        _triton.solve_pairs[(-(-m // lanes),)](
            self._coefficients, first, second, self.signs, self._settings, self._factors,
            self._shift, self._mix, self._gained, self._flags, m,
            EPS=torch.finfo(X.dtype).eps, LANES=lanes, num_warps=1,
        )  # fmt: skip
        _triton.apply_steps[(-(-max(n, k) // tile), m, 2)](
            X, Y, new_Y, first, second, partner, self._factors, self._shift, self._mix, n, k, m,
            TILE=tile, num_warps=4,
        )  # fmt: skip
        self._current = 1 - self._current
