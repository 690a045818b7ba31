"""A Gauss-Seidel sweep on a quadratic f: one pair after the other, or by blocks of rows.

Blocks: pair steps in cache, matrix products for all the rest. Let B be the rows of two blocks and
X_B <- U X_B the only change. With Y = X D X^T and M = A Y + C X^T,

    f = 1/2 tr(U^T A_BB U Y_BB) + <R, U> + constant,    R = M_BB - A_BB Y_BB,

a small quadratic of its own: exact pair steps on the rows of U are exact pair steps on those of X.
Two blocks of k rows cost the products M_BB and U [Y_B X_B]. A sweep is some 14 n^3 operations at
the speed of matrix products, and passes over each matrix n / k times in place of n.
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
from jorth.plane.proximal import StepRule

Matrix = NDArray[np.float64]

CHUNK = 50_000
"""Pairs between two checks of the clock."""
SIZES = {512: 60, 192: 28}
"""Rows of a block by the least n they are for: the fastest in trials.

Below that, single pairs are as fast. An odd multiple of 4, so that the columns of two blocks do not
fall on each other in cache.
"""


class SweepForm(NamedTuple):
    """f = 1/2 tr(X^T A X D) + <C, X> in the matrix X (n, m) whose rows are changed.

    A (n, n) and D (m, m) are symmetric, None is the identity; C (n, m) has no columns if it is
    zero.
    """

    A: Matrix
    C: Matrix
    D: Matrix | None

    @classmethod
    def of(cls, form: QuadraticForm, side: str, columns: int) -> SweepForm:
        """The arrays of a form as compiled code takes them."""
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
        """X D X^T."""
        product: Matrix = X @ X.T if self.D is None else X @ self.D @ X.T
        return product


def oriented(X: Tensor, side: str) -> Tensor:
    """The matrix whose rows are changed: X for left steps, a copy of X^T for right ones."""
    return X if side == "left" else X.mT.contiguous()


def transposed_form(form: QuadraticForm, side: str, columns: int) -> QuadraticForm:
    """The quadratic form in the matrix whose rows are changed."""
    if side == "left":
        return form
    A = form.A
    D = form.D if form.D is not None else torch.eye(columns, dtype=A.dtype, device=A.device)
    return QuadraticForm(D, None if form.C is None else form.C.mT, A, form.constant)


def rows_of_a_block(n: int) -> int:
    """The size of blocks for n rows."""
    return next((size for least, size in SIZES.items() if n >= least), 1)


class PairwiseSweep:
    """Steps on the given pairs of rows of X, one after the other: O(n) each, keeping Y = X D X^T.

    Args:
        form: The quadratic f.
        X: (n, m), changed in place.
        signs: (n,).
        pairs: (t, 2).
        rule: The rule of the pair steps.
    """

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
        """Take all steps; stops now and then with the number of pairs done since."""
        from jorth.plane.compiled.quadratic import sweep_quadratic

        A, C, _ = self._form
        for start in range(0, len(self._pairs), CHUNK):
            pairs = self._pairs[start : start + CHUNK]
            done, _ = sweep_quadratic(A, C, self._X, self._Y, self._signs, pairs, self._rule)
            self.unbounded = done < 0
            yield done if done >= 0 else -done - 1
            if self.unbounded:
                return

    def rows(self) -> Matrix:
        """X as it stands, (n, m)."""
        return self._X


class BlockedSweep:
    """One sweep over all pairs of rows of X, each pair once, by blocks of rows.

    Blocks meet along `zigzags`: of two that meet, the second is held for the next, so that one
    block comes and one goes each time. The pairs of two blocks are met row by row; those within a
    block, when it is held first.

    Args:
        form: The quadratic f.
        X: (n, m).
        signs: (n,).
        order: A permutation of the rows, which is cut into blocks.
        size: Rows of a block.
        rule: The rule of the pair steps; not for a concave f.
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
        """[A C]: M is its product with the transpose of the state, as far as it has columns."""
        self._state = np.concatenate([form.gram(rows), rows], axis=1)
        """[Y X], but for the rows of the held block, and the columns of Y that mirror them."""
        self._panel, self._spare = np.empty((2, 2 * size, n + columns))
        """The rows of [Y X] that are at work: those of the held block, then those of the other."""
        self._held = slice(0, 0)
        self._slopes = np.empty((0, 0))
        """M of the held block."""

    def run(self) -> Iterator[int]:
        """Take all steps; stops after every block, or two, with the number of pairs done there."""
        for done in self._meetings():
            yield done
            if self.unbounded:
                return

    def _meetings(self) -> Iterator[int]:
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
        """The part of M between a block and some rows of the state."""
        product: Matrix = self._data[block] @ rows[:, : self._data.shape[1]].T
        return product

    def _meet(self, other: slice | None) -> int:
        """Steps on all pairs of the held block with the other, which is held then.

        With None they are those within the held block. The rows of the block that comes next are
        put first: U is turned accordingly. Returns the number of pairs.
        """
        n, mine = len(self._order), len(self._slopes)
        blocks = (self._held,) if other is None else (self._held, other)
        panel = self._panel[: sum(block.stop - block.start for block in blocks)]
        M = self._slopes if other is None else self._join(other, panel)
        A = np.concatenate([_columns(self._data[block], blocks) for block in blocks])
        Y = _columns(panel, blocks)
        R = M - A @ Y
        signs = np.concatenate([self._signs[block] for block in blocks])
        U, done = self._pair_steps(A, R, Y, panel[:, n:], signs, _pairs(mine, len(panel) - mine))
        first = 0 if other is None else mine
        changed = self._apply(np.roll(U, -first, axis=0), panel)
        turned = np.roll(Y, -first, axis=0)
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

        Where the kernel asks for rows, it gets those of U X up to an isometry: R^T of (U X)^T = Q
        R.
        """
        from jorth.plane.compiled.quadratic import NEEDS_ROWS, UNBOUNDED, sweep_block

        U, rows = np.eye(len(A)), np.empty((len(A), 0))
        done, end = 0, NEEDS_ROWS
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
    """Paths through 0 .. count - 1 in which every two are neighbours once.

    They are s, s + 1, s - 1, s + 2, s - 2, ... modulo an even number; where ``count`` is odd, it
    stands for nobody. Shape (half of it, all of it).
    """
    even = count + count % 2
    steps = np.arange(1, even + 1) // 2 * np.where(np.arange(even) % 2, 1, -1)
    paths: NDArray[np.int64] = (np.arange(even // 2)[:, None] + steps) % even
    return paths


def _columns(rows: Matrix, blocks: tuple[slice, ...]) -> Matrix:
    return np.concatenate([rows[:, block] for block in blocks], axis=1)


@cache
def _pairs(mine: int, others: int) -> NDArray[np.int64]:
    """Each of the first rows with each of the others after them; without others, all pairs."""
    if others == 0:
        return all_pairs(mine) if mine > 1 else np.empty((0, 2), np.int64)
    first, second = np.divmod(np.arange(mine * others), others)
    return np.stack([first, mine + second], axis=1)


def _contiguous(tensor: Tensor) -> Matrix:
    return np.ascontiguousarray(tensor.double().cpu().numpy())
