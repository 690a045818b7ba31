"""A Gauss-Seidel sweep on a large quadratic f, by blocks of rows.

Pair steps run in cache, and everything else is matrix products. Let B be the rows of two blocks and
X_B <- U X_B the only change. With Y = X D X^T and M = A Y + C X^T,

    f = 1/2 tr(U^T A_BB U Y_BB) + <R, U> + constant,    R = M_BB - A_BB Y_BB,

which is a small quadratic in U: exact pair steps on the rows of U are exact pair steps on those of
X. Two blocks of k rows cost the products M_BB and U [Y_B X_B]. A sweep takes about 16 n^3
operations at the speed of matrix products, and reads each matrix n / k times instead of n times.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from jorth.plane import all_pairs, tournament
from jorth.solvers.jobcd.sweeps import Matrix, Pairs, StepRule, SweepForm
from jorth.solvers.problem import Problem

Rows = NDArray[np.int64]

BLOCK_ROWS = {512: 60, 192: 28}
"""The rows of a block that were fastest, by the least n they are for; single pairs below that.

They are odd multiples of 4, so that the columns of two blocks do not map to the same cache lines.
"""


def rows_of_a_block(n: int) -> int:
    """Return the rows of a block for X of n rows; 1 is no blocks."""
    return next((size for least, size in BLOCK_ROWS.items() if n >= least), 1)


def blocked_sweep(
    problem: Problem, form: SweepForm, X: Matrix, order: Rows, size: int, rule: StepRule
) -> bool:
    """Take the exact step on every pair of rows of X (n, m) once, in place.

    The rows, in the given order, are divided into blocks of ``size``, at least two. Where two
    blocks meet, in the rounds of a tournament, their pairs are treated row by row; those within a
    block are treated where it first meets another. Return whether a plane without a minimiser has
    ended the sweep.
    """
    from jorth.solvers.jobcd._sweeps_numba import sweep_quadratic

    n = len(X)
    signs, rule = problem.signature.signs[order], rule._replace(has_d=True)  # D is Y_BB in a block
    AC = np.concatenate([form.A[np.ix_(order, order)], form.C[order]], axis=1)
    rows = X[order]
    Y = rows @ rows.T if form.D is None else rows @ form.D @ rows.T
    YX = np.concatenate([Y, rows], axis=1)  # M = [A C] [Y X]^T
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    fresh = np.ones(len(blocks), dtype=bool)
    try:
        for meeting in tournament(len(blocks)).reshape(-1, 2):
            upper, lower = (blocks[block] for block in meeting)
            B = np.r_[upper, lower]
            k = upper.stop - upper.start
            pairs = _pairs(k, len(B) - k, *fresh[meeting].tolist())
            fresh[meeting] = False
            data, panel = AC[B], YX[B]
            A, Y = data[:, B], panel[:, B]
            R = data @ panel[:, : data.shape[1]].T - A @ Y
            U = np.eye(len(B))
            done = sweep_quadratic(A, R, U, Y, signs[B], pairs, rule)
            problem.objective.count.pair_updates += done if done >= 0 else -done - 1
            panel = U @ panel
            panel[:, B] = Y
            YX[upper], YX[lower] = panel[:k], panel[k:]
            YX[:, upper], YX[:, lower] = panel[:k, :n].T, panel[k:, :n].T
            if done < 0:
                return True
            problem.objective.check_limits()
    finally:
        X[order] = YX[:, n:]
    return False


@cache
def _pairs(upper: int, lower: int, within_upper: bool, within_lower: bool) -> Pairs:
    """Return the pairs of two blocks, row by row, and those within them where asked for."""
    pairs = all_pairs(upper + lower)
    i, j = pairs.T
    keep = (i < upper) & (j >= upper)
    keep |= within_upper & (j < upper)
    keep |= within_lower & (i >= upper)
    return np.asarray(pairs[keep])
