"""A Gauss-Seidel sweep on f = 1/2 tr(X^T L X D) + <C, X> with L = diag(l).

f is a sum over the rows of X: disjoint pairs that follow one another are independent, and the
compiled sweep solves them together. `jorth.plane.tournament` is therefore the fastest order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jorth.plane.proximal import StepRule
from jorth.solvers.jobcd.quadratic_sweeps import CHUNK, Matrix

LANES = 8
"""Numbers in a line of the cache, and in the widest vector registers."""


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
        pairs: (t, 2), in the order in which steps are taken.
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
