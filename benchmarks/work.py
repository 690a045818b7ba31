"""Bytes and operations of each kernel: what `roofline.py` and `growth.py` hold measured times
against.

Operations are additions, multiplications, divisions and roots, one each. Bytes are those that must
pass between the kernel and where its matrices lie: every operand of a pass read once, every result
written once. What a pass keeps at hand (a block, a small matrix of a batch) is not counted again.
"""

from __future__ import annotations

from typing import NamedTuple

PLANE = 320
"""Operations of the 2x2 problem of one pair within a component, counted on random pairs far from a
minimum, where Newton's method from V = I is often in vain; fewer close to one."""
TURN = 8
"""Operations to apply a step to one column of two rows: (a + b) u and (a - b) / u, their sum and
difference, added."""
ARC = 20
"""Operations of acosh^2 or acos^2 of one inner product, and its share of the score or the loss; a
logarithm is one."""


class Work(NamedTuple):
    """What a kernel does."""

    flops: float
    bytes: float
    """That must be moved."""
    held: float
    """Bytes of all its matrices together: they say which memory they come from."""


def matrix_product(m, k, n, size=8):
    """(m, k) times (k, n): m k n multiplications and additions; both factors read, the result
    written."""
    moved = size * (m * k + k * n + m * n)
    return Work(2 * m * k * n, moved, moved)


def copy(words, size=8):
    """Each word read and written."""
    return Work(0, 2 * size * words, 2 * size * words)


def pair_step(n):
    """One exact step on two rows, C given: eight dot products (A with Y, C with X), the plane, X
    and Y turned.

    Rows of A, C, X and Y are read, 8 n; those of X and Y and two columns of Y are written, 6 n.
    """
    return Work(16 * n + 2 * TURN * n + PLANE, 14 * n * 8, 4 * n * n * 8)


def pair_sweep(n):
    """All n (n - 1) / 2 pairs, one after the other, after Y = X X^T."""
    step, pairs, Y = pair_step(n), n * (n - 1) // 2, matrix_product(n, n, n)
    return Work(pairs * step.flops + Y.flops, pairs * step.bytes + Y.bytes, step.held)


def blocked_sweep(n, k):
    """The same by blocks of k rows: (n / k)^2 / 2 meetings of two blocks, after Y = X X^T.

    A meeting: products M, 3/4 of (2k, 2n) x (2n, 2k), and U [Y X], (2k, 2k) x (2k, 2n), together
    28 k^2 n; A_BB Y_BB and the slopes that are kept, 24 k^3; k^2 pair steps on rows of 2k columns.
    It reads [A C] of both (4 k n), fetches [Y X] of one (read and written, 4 k n), turns both
    (likewise, 8 k n) and stores one with columns of Y (3 k n).
    """
    meetings, Y = (n / k) ** 2 / 2, matrix_product(n, n, n)
    flops = 28 * k * k * n + 24 * k**3 + k * k * pair_step(2 * k).flops
    return Work(meetings * flops + Y.flops, meetings * 19 * k * n * 8 + Y.bytes, 4 * n * n * 8)


def gradient_round(n):
    """Disjoint pairs of rows from a gradient at hand: dot products of G with X and of X with
    itself, planes, X turned.

    X and G are read, the new X is written.
    """
    return Work(n // 2 * (16 * n + TURN * n + PLANE), 3 * n * n * 8, 3 * n * n * 8)


def kept_round(n, size=8, with_c=False):
    """Disjoint pairs of rows with Y kept: A and Y read for the coefficients, X and Y read and
    written to turn them.

    The columns of Y are turned too. C and X are read besides where C is given.
    """
    flops = n // 2 * ((16 if with_c else 8) * n + 3 * TURN * n + PLANE)
    words = (8 if with_c else 6) * n * n
    return Work(flops, words * size, (4 if with_c else 3) * n * n * size)


def batch_step(batch, n, rounds, size=8):
    """Rounds on the majoriser of one gradient for a batch: dot products of X with X and the
    centre, planes, X turned.

    A matrix stays at hand through all rounds: X and G are read once, X is written once.
    """
    pair = 16 * n + TURN * n + PLANE
    return Work(
        batch * rounds * (n // 2) * pair, 3 * batch * n * n * size, 3 * batch * n * n * size
    )


def turn_rows(n):
    """Steps applied to all rows in disjoint pairs: every row read and written."""
    return Work(n // 2 * TURN * n, 2 * n * n * 8, n * n * 8)


def quadratic_gradient(n, size=8):
    """A X + C and f: one product, <X, A X>, <C, X> and the sum. A, X, C read, G written."""
    return Work(2 * n**3 + 5 * n * n, 4 * n * n * size, 4 * n * n * size)


def lbfgs_iteration(n):
    """One iteration of Riemannian L-BFGS on Procrustes with one trial, the preconditioner made
    already.

    Preconditioner: four products, in single precision where that resolves it, counted like the
    others. Trial: an LU factorisation (2/3 n^3) and its solves (2 n^3) for the Cayley step, R X
    and R^T (R X - T) for the gradient, G X^T for its skew part. Together seven products, 14 n^3,
    and 8/3 n^3. A product reads two matrices, writes one; some thirty further passes over a
    matrix, six for each of three kept pairs.
    """
    return Work((7 * 2 + 8 / 3) * n**3, (7 * 3 + 4 + 30) * n * n * 8, 16 * n * n * 8)


def compression(m, n, block=4096):
    """The triangle of [source target], (m, 2n), by QR of blocks below the triangle so far: 2 r c^2
    - 2/3 c^3 each."""
    c, flops = 2 * n, 0.0
    for start in range(0, m, block):
        rows = min(block, m - start) + min(start, c)
        flops += 2 * rows * min(rows, c) * c - 2 / 3 * min(rows, c) ** 3
    return Work(flops, (m * c + c * c) * 8, (m * c + c * c) * 8)


def probe_gradient(m, n, block=512):
    """Structural probe: three products over blocks of pairs i <= j, the loss of each pair, D X and
    D^T dZ.

    The distances asked for (half of them) are read; of (m, n) matrices D is read twice, Q and its
    derivative written and read for every block of rows.
    """
    edges = [min(block, m - start) for start in range(0, m, block)]
    entries = sum(a * sum(edges[at:]) for at, a in enumerate(edges))
    passes = 2 + 4 * len(edges)
    return Work(
        entries * (6 * n + ARC) + 4 * m * n * n,
        (entries + passes * m * n) * 8,
        (entries + 5 * m * n) * 8,
    )


def scores(batch, entities, n, size=8):
    """Scores of queries against all entities: one product, the arc of each; E read, the scores
    written."""
    words = entities * n + batch * n + batch * entities
    return Work(batch * entities * (2 * n + ARC) + batch * 2 * n * n, words * size, words * size)
