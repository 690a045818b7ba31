"""A Gauss-Seidel sweep by blocks of rows: pair steps in cache, matrix products for all the rest.

Let B be the rows of two blocks and X_B <- U X_B the only change. With Y = X D X^T and M = A Y + C X^T,

    f = 1/2 tr(U^T A_BB U Y_BB) + <R, U> + constant,    R = M_BB - A_BB Y_BB,

a small quadratic of its own: exact pair steps on the rows of U are exact pair steps on those of X. Two blocks of k rows
cost the products M_BB and U [Y_B X_B]. A sweep is some 14 n^3 operations at the speed of matrix products, and passes
over each matrix n / k times in place of n.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from jorth.plane import all_pairs
from jorth.solvers.jobcd.pairwise import Matrix, StepRule

SIZES = {512: 60, 192: 28}
"""Rows of a block by the least n they are for: the fastest in trials. Below that, single pairs are as fast. An odd
multiple of 4, so that the columns of two blocks do not fall on each other in cache."""


def rows_of_a_block(n: int) -> int:
    """The size of blocks for n rows."""
    return next((size for least, size in SIZES.items() if n >= least), 1)


class BlockedSweep:
    """One sweep over all pairs of rows of X for f = 1/2 tr(X^T A X D) + <C, X>, each pair once.

    Blocks meet along `zigzags`: of two that meet, the second is held for the next, so that one block comes and one goes
    each time. The pairs of two blocks are met row by row; those within a block, when it is held first.

    Args:
        A: (n, n) symmetric.
        C: (n, m), or without columns where it is zero.
        D: (m, m) symmetric; None is the identity.
        X: (n, m).
        signs: (n,).
        order: A permutation of the rows, which is cut into blocks.
        size: Rows of a block.
        rule: Of the pair steps; not for a concave f.
    """

    def __init__(
        self,
        A: Matrix,
        C: Matrix,
        D: Matrix | None,
        X: Matrix,
        signs: NDArray[np.int8],
        order: NDArray[np.int64],
        size: int,
        rule: StepRule,
    ) -> None:
        n, columns = X.shape
        self.unbounded = False
        self._order, self._signs, self._rule, self._has_d = order, signs[order], rule, D is not None
        self._blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
        rows = X[order]
        Y = rows @ rows.T if D is None else rows @ D @ rows.T
        self._data = np.concatenate([A[np.ix_(order, order)], C[order]], axis=1)
        """[A C]: M is its product with the transpose of the state, as far as it has columns."""
        self._state = np.concatenate([Y, rows], axis=1)
        """[Y X], but for the rows of the block that is held, and the columns of Y that mirror them."""
        self._panel, self._spare = np.empty((2, 2 * size, n + columns))
        """The rows of [Y X] that are at work: those of the block that is held, then those of the other."""
        self._held, self._slopes = slice(0, 0), np.empty((0, 0))
        """The block that is held, and its M."""

    def run(self) -> Iterator[int]:
        """Take all steps; stops after every block, or two, with the number of pairs done there."""
        for done in self._walk():
            yield done
            if self.unbounded:
                return

    def _walk(self) -> Iterator[int]:
        for turn, path in enumerate(zigzags(len(self._blocks))):
            for place in path:
                if place == len(self._blocks):  # nobody: their number is odd
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
        """X as it stands, (n, m)."""
        self._store(self._held, self._panel[: len(self._slopes)])
        n = len(self._order)
        X = np.empty((n, self._state.shape[1] - n))
        X[self._order] = self._state[:, n:]
        return X

    def _hold(self, block: slice) -> None:
        rows = self._panel[: block.stop - block.start]
        rows[:] = self._state[block]
        self._held, self._slopes = block, self._product(block, rows)

    def _release(self) -> None:
        self._store(self._held, self._panel[: len(self._slopes)])
        self._held, self._slopes = slice(0, 0), np.empty((0, 0))

    def _store(self, block: slice, rows: Matrix) -> None:
        self._state[block] = rows
        self._state[:, block] = rows[:, : len(self._order)].T

    def _product(self, block: slice, rows: Matrix) -> Matrix:
        """The part of M between a block and some rows of the state."""
        product: Matrix = self._data[block] @ rows[:, : self._data.shape[1]].T
        return product

    def _meet(self, other: slice | None) -> int:
        """Steps on all pairs of the block that is held with the other, which is held then; with None on those within.

        The rows of the block that comes next are put first: U is turned accordingly. Returns the number of pairs.
        """
        n, mine = len(self._order), len(self._slopes)
        blocks = (self._held,) if other is None else (self._held, other)
        panel = self._panel[: sum(block.stop - block.start for block in blocks)]
        M = self._slopes if other is None else self._join(other, panel)
        A, Y = (
            np.concatenate([_columns(self._data[block], blocks) for block in blocks]),
            _columns(panel, blocks),
        )
        R, signs = M - A @ Y, np.concatenate([self._signs[block] for block in blocks])
        U, done = self._pair_steps(A, R, Y, panel[:, n:], signs, _pairs(mine, len(panel) - mine))
        first = 0 if other is None else mine
        changed, turned = self._apply(np.roll(U, -first, axis=0), panel), np.roll(Y, -first, axis=0)
        changed[:, self._held] = turned[:, :mine]
        self._slopes = A[first:] @ Y[:, first:] + R[first:] @ U[first:].T
        if other is not None:
            changed[:, other] = turned[:, mine:]
            self._store(self._held, changed[-mine:])
            self._held = other
        return done

    def _join(self, other: slice, panel: Matrix) -> Matrix:
        """Bring the rows of the other block into the panel: M of both."""
        mine = len(self._slopes)
        panel[mine:] = self._state[other]
        panel[mine:, self._held] = panel[:mine, other].T
        above = np.concatenate([self._slopes, self._product(self._held, panel[mine:])], axis=1)
        return np.concatenate([above, self._product(other, panel)])

    def _apply(self, U: Matrix, panel: Matrix) -> Matrix:
        changed: Matrix = np.matmul(U, panel, out=self._spare[: len(U)])
        self._panel, self._spare = self._spare, self._panel
        return changed

    def _pair_steps(
        self,
        A: Matrix,
        R: Matrix,
        Y: Matrix,
        X: Matrix,
        signs: NDArray[np.int8],
        pairs: NDArray[np.int64],
    ) -> tuple[Matrix, int]:
        """U and the number of pairs done; Y is changed in place.

        Where the kernel asks for rows, it gets those of U X up to an isometry: R^T of (U X)^T = Q R.
        """
        from jorth.plane.compiled.sweeps import NEEDS_ROWS, UNBOUNDED, sweep_block

        rule, U, rows, done, end = self._rule, np.eye(len(A)), np.empty((len(A), 0)), 0, NEEDS_ROWS
        while end == NEEDS_ROWS:
            done, _, end = sweep_block(
                A, R, U, Y, rows, self._has_d, signs, pairs, done,
                rule.theta, rule.all_components, rule.stop_unbounded,
            )  # fmt: skip
            if end == NEEDS_ROWS:
                triangle = scipy.linalg.qr(
                    (U @ X).T, mode="r", overwrite_a=True, check_finite=False
                )[0]
                rows = np.ascontiguousarray(triangle[: len(A)].T)
        self.unbounded = end == UNBOUNDED
        return U, done


def zigzags(count: int) -> NDArray[np.int64]:
    """Paths through 0 .. count - 1 in which every two are neighbours once: s, s + 1, s - 1, s + 2, s - 2, ...

    Modulo an even number; where ``count`` is odd, it stands for nobody. Shape (half of it, all of it).
    """
    even = count + count % 2
    steps = np.arange(1, even + 1) // 2 * np.where(np.arange(even) % 2, 1, -1)
    paths: NDArray[np.int64] = (np.arange(even // 2)[:, None] + steps) % even
    return paths


def _columns(rows: Matrix, blocks: tuple[slice, ...]) -> Matrix:
    return np.concatenate([rows[:, block] for block in blocks], axis=1)


@cache
def _pairs(mine: int, others: int) -> NDArray[np.int64]:
    """Each of the first rows with each of the others after them; all pairs of the first if there are no others."""
    if others == 0:
        return all_pairs(mine) if mine > 1 else np.empty((0, 2), np.int64)
    first, second = np.divmod(np.arange(mine * others), others)
    return np.stack([first, mine + second], axis=1)
