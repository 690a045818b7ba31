"""A Gauss-Seidel sweep on a quadratic f: one pair after the other, or by blocks of rows.

With blocks, pair steps run in cache and everything else is matrix products. Let B be the rows of
two blocks and X_B <- U X_B the only change. With Y = X D X^T and M = A Y + C X^T,

    f = 1/2 tr(U^T A_BB U Y_BB) + <R, U> + constant,    R = M_BB - A_BB Y_BB,

which is a small quadratic in U: exact pair steps on the rows of U are exact pair steps on those of
X. Two blocks of k rows cost the products M_BB and U [Y_B X_B]. A sweep takes about 14 n^3
operations at the speed of matrix products, and reads each matrix n / k times instead of n times.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.objectives import QuadraticForm
from jorth.plane import all_pairs

Matrix = NDArray[np.float64]

CHUNK = 50_000
"""Pairs between two checks of the clock."""
SIZES = {512: 60, 192: 28}
"""The rows of a block that were fastest, by the least n they are for.

Below that, single pairs are as fast. The sizes are odd multiples of 4, so that the columns of two
blocks do not map to the same lines of the cache.
"""


class StepRule(NamedTuple):
    """How exact pair steps on a quadratic form are taken."""

    theta: float
    """The proximal weight; negative is relative to the curvature."""
    all_components: bool
    stop_unbounded: bool
    has_d: bool = False
    """Whether the form has a D: null lengths then come from X D X^T, not from the rows of X."""
    concave: bool = False
    """Whether f is concave, and therefore majorised by its linear part."""


class SweepForm(NamedTuple):
    """f = 1/2 tr(X^T A X D) + <C, X> in the matrix X (n, m) whose rows change.

    A (n, n) and D (m, m) are symmetric, and None is the identity; a zero C has no columns.
    """

    A: Matrix
    C: Matrix
    D: Matrix | None

    @classmethod
    def of(cls, form: QuadraticForm, side: str, columns: int) -> SweepForm:
        """The arrays of a form in the layout that compiled code needs."""
        turned = transposed_form(form, side, columns)
        C = np.zeros((len(turned.A), 0)) if turned.C is None else _contiguous(turned.C)
        return cls(_contiguous(turned.A), C, None if turned.D is None else _contiguous(turned.D))

    def concave(self) -> bool:
        """Whether -A and D, or A and -D, are positive semidefinite up to rounding."""
        low, high = np.linalg.eigvalsh(self.A)[[0, -1]]
        least, most = (1.0, 1.0) if self.D is None else np.linalg.eigvalsh(self.D)[[0, -1]]
        tiny_a = 1e-12 * max(abs(low), abs(high))
        tiny_d = 1e-12 * max(abs(least), abs(most))
        return bool((high <= tiny_a and least >= -tiny_d) or (low >= -tiny_a and most <= tiny_d))

    def gram(self, X: Matrix) -> Matrix:
        product: Matrix = X @ X.T if self.D is None else X @ self.D @ X.T
        return product


def oriented(X: Tensor, side: str) -> Tensor:
    """The matrix whose rows change: X for left steps, a copy of X^T for right steps."""
    return X if side == "left" else X.mT.contiguous()


def transposed_form(form: QuadraticForm, side: str, columns: int) -> QuadraticForm:
    """The quadratic form in the matrix whose rows change."""
    if side == "left":
        return form
    A = form.A
    D = form.D if form.D is not None else torch.eye(columns, dtype=A.dtype, device=A.device)
    return QuadraticForm(D, None if form.C is None else form.C.mT, A, form.constant)


def rows_of_a_block(n: int) -> int:
    """The size of the blocks for a matrix of n rows."""
    return next((size for least, size in SIZES.items() if n >= least), 1)


class PairwiseSweep:
    """Steps on pairs (t, 2) of rows of X (n, m), in place: O(n) each, as Y = X D X^T is updated."""

    def __init__(
        self,
        form: SweepForm,
        X: Matrix,
        signs: NDArray[np.int8],
        pairs: NDArray[np.int64],
        rule: StepRule,
    ) -> None:
        self.unbounded = False
        self._form = form
        self._X = X
        self._Y = form.gram(X)
        self._signs = signs
        self._pairs = pairs
        self._rule = rule._replace(has_d=form.D is not None)

    def run(self) -> Iterator[int]:
        """Take all steps, and now and then yield the number of pairs done since."""
        from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic

        A, C, _ = self._form
        for start in range(0, len(self._pairs), CHUNK):
            pairs = self._pairs[start : start + CHUNK]
            done, _ = sweep_quadratic(A, C, self._X, self._Y, self._signs, pairs, self._rule)
            self.unbounded = done < 0
            yield done if done >= 0 else -done - 1
            if self.unbounded:
                return

    def rows(self) -> Matrix:
        """X (n, m)."""
        return self._X


class BlockedSweep:
    """One sweep over all pairs of rows of X (n, m), each pair once, by blocks of rows.

    Two blocks at a time meet, along `zigzags`: the second one is held to meet the next, so that
    each time one block is loaded and one is stored. The pairs of two blocks are treated row by row,
    those within a block when it is first held.

    Args:
        form: The quadratic f, which must not be concave.
        X: (n, m).
        signs: (n,).
        order: A permutation of the rows, which is divided into blocks.
        size: The number of rows of a block.
        rule: How pair steps are taken.
    """

    def __init__(
        self,
        form: SweepForm,
        X: Matrix,
        signs: NDArray[np.int8],
        order: NDArray[np.int64],
        size: int,
        rule: StepRule,
    ) -> None:
        n, columns = X.shape
        self.unbounded = False
        self._order = order
        self._signs = signs[order]
        self._rule = rule._replace(has_d=form.D is not None)
        self._blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        rows = X[order]
        self._data = np.concatenate([form.A[np.ix_(order, order)], form.C[order]], axis=1)
        """[A C]; its product with the transpose of [Y X] is M."""
        self._state = np.concatenate([form.gram(rows), rows], axis=1)
        """[Y X], except for the rows of the held block and the columns of Y that mirror them."""
        self._panel, self._spare = np.empty((2, 2 * size, n + columns))
        """The rows of [Y X] at work: those of the held block, then those of the other one."""
        self._held = slice(0, 0)
        self._slopes = np.empty((0, 0))
        """M of the held block."""

    def run(self) -> Iterator[int]:
        """Take all steps, and yield the number of pairs done after every meeting of blocks."""
        for done in self._meetings():
            yield done
            if self.unbounded:
                return

    def _meetings(self) -> Iterator[int]:
        for turn, path in enumerate(zigzags(len(self._blocks))):
            for place in path:
                if place == len(self._blocks):  # a free turn, since the number of blocks is odd
                    self._release()
                    continue
                if len(self._slopes):
                    yield self._meet(self._blocks[place])
                else:
                    self._hold(self._blocks[place])
                if turn == 0:
                    yield self._meet(None)
            self._release()

    def rows(self) -> Matrix:
        """X (n, m)."""
        self._store(self._held, self._panel[: len(self._slopes)])
        n = len(self._order)
        X = np.empty((n, self._state.shape[1] - n))
        X[self._order] = self._state[:, n:]
        return X

    def _hold(self, block: slice) -> None:
        rows = self._panel[: block.stop - block.start]
        rows[:] = self._state[block]
        self._held = block
        self._slopes = self._product(block, rows)

    def _release(self) -> None:
        self._store(self._held, self._panel[: len(self._slopes)])
        self._held = slice(0, 0)
        self._slopes = np.empty((0, 0))

    def _store(self, block: slice, rows: Matrix) -> None:
        self._state[block] = rows
        self._state[:, block] = rows[:, : len(self._order)].T

    def _product(self, block: slice, rows: Matrix) -> Matrix:
        """The part of M that belongs to a block and some rows of [Y X]."""
        product: Matrix = self._data[block] @ rows[:, : self._data.shape[1]].T
        return product

    def _meet(self, other: slice | None) -> int:
        """Treat all pairs of the held block and another, or within the held block for None.

        The other block is held then, so its rows are put first: U is rolled accordingly. Returns
        the number of pairs.
        """
        n = len(self._order)
        mine = len(self._slopes)
        blocks = (self._held,) if other is None else (self._held, other)
        panel = self._panel[: sum(block.stop - block.start for block in blocks)]
        M = self._slopes if other is None else self._join(other, panel)
        A = np.concatenate([_columns(self._data[block], blocks) for block in blocks])
        Y = _columns(panel, blocks)
        R = M - A @ Y
        signs = np.concatenate([self._signs[block] for block in blocks])
        U, done = self._pair_steps(A, R, Y, panel[:, n:], signs, _pairs(mine, len(panel) - mine))
        first = 0 if other is None else mine
        changed = np.matmul(np.roll(U, -first, axis=0), panel, out=self._spare[: len(U)])
        self._panel, self._spare = self._spare, self._panel
        rolled = np.roll(Y, -first, axis=0)
        changed[:, self._held] = rolled[:, :mine]
        self._slopes = A[first:] @ Y[:, first:] + R[first:] @ U[first:].T
        if other is not None:
            changed[:, other] = rolled[:, mine:]
            self._store(self._held, changed[-mine:])
            self._held = other
        return done

    def _join(self, other: slice, panel: Matrix) -> Matrix:
        """Load the rows of the other block into the panel, and return M of both blocks."""
        mine = len(self._slopes)
        panel[mine:] = self._state[other]
        panel[mine:, self._held] = panel[:mine, other].T
        above = np.concatenate([self._slopes, self._product(self._held, panel[mine:])], axis=1)
        return np.concatenate([above, self._product(other, panel)])

    def _pair_steps(
        self,
        A: Matrix,
        R: Matrix,
        Y: Matrix,
        X: Matrix,
        signs: NDArray[np.int8],
        pairs: NDArray[np.int64],
    ) -> tuple[Matrix, int]:
        """U and the number of pairs done; Y changes in place.

        If the kernel asks for rows, it gets those of U X up to an isometry, R^T with (U X)^T = Q R.
        """
        from jorth.solvers.jobcd._sweeps_numba import NEEDS_ROWS, UNBOUNDED, sweep_block

        U = np.eye(len(A))
        rows = np.empty((len(A), 0))
        done = 0
        end = NEEDS_ROWS
        while end == NEEDS_ROWS:
            count, _, end = sweep_block(A, R, U, Y, rows, signs, pairs[done:], self._rule)
            done += count
            if end == NEEDS_ROWS:
                triangle = scipy.linalg.qr(
                    (U @ X).T, mode="r", overwrite_a=True, check_finite=False
                )[0]
                rows = np.ascontiguousarray(triangle[: len(A)].T)
        self.unbounded = end == UNBOUNDED
        return U, done


def zigzags(count: int) -> NDArray[np.int64]:
    """Paths through 0 .. count - 1 in which any two numbers are neighbours exactly once.

    With m = count, or count + 1 if it is odd, they are s, s + 1, s - 1, s + 2, s - 2, ... modulo m,
    of shape (m / 2, m). The number ``count`` stands for a free turn.
    """
    even = count + count % 2
    steps = np.arange(1, even + 1) // 2 * np.where(np.arange(even) % 2, 1, -1)
    paths: NDArray[np.int64] = (np.arange(even // 2)[:, None] + steps) % even
    return paths


def _columns(rows: Matrix, blocks: tuple[slice, ...]) -> Matrix:
    return np.concatenate([rows[:, block] for block in blocks], axis=1)


@cache
def _pairs(mine: int, others: int) -> NDArray[np.int64]:
    """The pairs of the first rows with the others after them; without others, all pairs."""
    if others == 0:
        return all_pairs(mine) if mine > 1 else np.empty((0, 2), np.int64)
    first, second = np.divmod(np.arange(mine * others), others)
    return np.stack([first, mine + second], axis=1)


def _contiguous(tensor: Tensor) -> Matrix:
    return np.ascontiguousarray(tensor.double().cpu().numpy())
