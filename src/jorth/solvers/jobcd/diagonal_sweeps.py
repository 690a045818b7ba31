"""A Gauss-Seidel sweep on f = 1/2 tr(X^T L X D) + <C, X> with L = diag(l).

f is a sum over the rows of X: disjoint pairs that follow one another are independent, and the
compiled sweep solves them together, in any order that it is given. In `near_pairs` there are always
some, and their rows are in cache. Products of blocks of rows, as in `BlockedSweep`, would not be
faster: without A X they take 8 n^3 operations, the pair steps themselves only 7 n^3.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth.plane import tournament
from jorth.plane.proximal import StepRule
from jorth.solvers.jobcd.quadratic_sweeps import CHUNK, Matrix, zigzags

LANES = 8
"""Numbers in a line of the cache, and in the widest vector registers."""
BLOCK = 16
"""Rows that stay in cache while they meet others; 8 to 64 are as fast."""


class DiagonalForm(NamedTuple):
    """f = 1/2 tr(X^T L X D) + <C, X> with L = diag(l) in the matrix X (n, m) whose rows change.

    The diagonal l is (n,), D (m, m) is symmetric, and None is the identity; a zero C (n, m) has no
    columns.
    """

    diagonal: NDArray[np.float64]
    C: Matrix
    D: Matrix | None


class DiagonalSweep:
    """Steps on pairs (t, 2) of rows of a copy of X (n, m): O(m) each.

    Args:
        form: The quadratic f, which must not be concave.
        X: (n, m).
        signs: (n,).
        pairs: (t, 2), in the order in which steps are taken; `near_pairs` is the fastest.
        rule: How pair steps are taken.
    """

    def __init__(
        self,
        form: DiagonalForm,
        X: Matrix,
        signs: NDArray[np.int8],
        pairs: NDArray[np.int64],
        rule: StepRule,
    ) -> None:
        self.unbounded = False
        self.decrease = 0.0
        """Of all steps so far, as computed pair by pair."""
        self._X, self._rows = _arrange(form, X)
        self._own = np.zeros((len(X), 3))
        self._own[:, 0] = form.diagonal
        self._signs = signs
        self._pairs = pairs
        self._rule = rule._replace(has_d=form.D is not None)

    def run(self) -> Iterator[int]:
        """Take all steps, and now and then yield the number of pairs done since."""
        from jorth.plane.compiled.diagonal import sweep_diagonal

        for start in range(0, len(self._pairs), CHUNK):
            pairs = self._pairs[start : start + CHUNK]
            done, decrease = sweep_diagonal(self._rows, self._own, self._signs, pairs, self._rule)
            self.decrease += decrease
            self.unbounded = done < 0
            yield done if done >= 0 else -done - 1
            if self.unbounded:
                return

    def rows(self) -> Matrix:
        """X (n, m)."""
        return self._X.copy()


@cache
def near_pairs(n: int) -> NDArray[np.int64]:
    """All pairs i < j or j < i of n rows once, in rounds of disjoint pairs of a few rows (t, 2).

    Two blocks of rows at a time meet, along `zigzags`, each row of one with all rows of the other.
    """
    blocks = [np.arange(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
    found = []
    for turn, path in enumerate(zigzags(len(blocks))):
        last = np.arange(0)
        for place in path:
            block = blocks[place] if place < len(blocks) else np.arange(0)  # a free turn
            found.append(_between(last, block))
            if turn == 0 and len(block) > 1:
                found.append(block[tournament(len(block)).reshape(-1, 2)])
            last = block
    return np.concatenate(found)


def _between(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """All pairs of two blocks, in as many rounds as the larger one has rows."""
    few, many = sorted((first, second), key=len)
    rounds, places = np.divmod(np.arange(len(few) * len(many)), max(len(few), 1))
    return np.stack([few[places], many[(places + rounds) % max(len(many), 1)]], axis=1)


def _arrange(form: DiagonalForm, X: Matrix) -> tuple[Matrix, Matrix]:
    """A view on X among the rows of the compiled sweep, and these rows.

    They begin with lines of the cache and have zeros at their end: a whole number of vector
    registers.
    """
    n, columns = X.shape
    matrices = [X]
    if form.C.shape[1] > 0:
        matrices.append(form.C)
    if form.D is not None:
        matrices.append(X @ form.D)
    length = -(-columns // LANES) * LANES
    size = n * len(matrices) * length
    flat = np.zeros(size + LANES)
    first = -(flat.ctypes.data // flat.itemsize) % LANES
    rows = flat[first : first + size].reshape(n, len(matrices), length)
    for place, matrix in enumerate(matrices):
        rows[:, place, :columns] = matrix
    return rows[:, 0, :columns], rows.reshape(-1, length)
