"""Sweeps of exact pair steps, compiled: no Python between pairs. Import where used: it loads numba."""

from __future__ import annotations

import numpy as np

from jorth.compiling import compiler
from jorth.plane.compiled.pair import clip_null, solve_forms
from jorth.plane.compiled.roots import EPS, compiled
from jorth.plane.compiled.rows import apply_pair
from jorth.plane.proximal import NEAR_NULL, RELATIVE_THETA

RUNAWAY = 2.0**53
"""The square of a row's length beyond which feasibility has no digits left: a race ends before a step to there."""
FINISHED, UNBOUNDED, NEEDS_ROWS = 0, 1, 2
"""How `sweep_block` ended."""

Four = tuple[float, float, float, float]

# sums may be reassociated into vector registers; nothing else of IEEE arithmetic is given up
_summing = compiler(fastmath={"reassoc", "contract"})


@_summing
def cross_products(U: np.ndarray, W: np.ndarray, i: int, j: int) -> Four:
    """<U_i, W_i>, <U_i, W_j>, <U_j, W_i>, <U_j, W_j> of rows."""
    ii, ij, ji, jj = 0.0, 0.0, 0.0, 0.0
    for c in range(U.shape[1]):
        a, b, x, y = U[i, c], U[j, c], W[i, c], W[j, c]
        ii += a * x
        ij += a * y
        ji += b * x
        jj += b * y
    return ii, ij, ji, jj


@_summing
def null_lengths(X: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """||x_i + x_j||^2 and ||x_i - x_j||^2, each to full relative accuracy."""
    plus, minus = 0.0, 0.0
    for c in range(X.shape[1]):
        a, b = X[i, c], X[j, c]
        plus += (a + b) * (a + b)
        minus += (a - b) * (a - b)
    return plus, minus


@compiled
def kronecker_step(
    p11: float,
    p12: float,
    p21: float,
    p22: float,
    y11: float,
    y12: float,
    y22: float,
    y_plus: float,
    y_minus: float,
    a11: float,
    a12: float,
    a22: float,
    theta: float,
    opposite: bool,
    all_components: bool,
) -> tuple[float, float, float, float, float, bool]:
    """The best V for P and Q = Y (x) A, 2x2 each; ``theta`` < 0 is relative to the largest entry of Q.

    The null forms of Q factor: (y11 +- 2 y12 + y22)(a11 +- 2 a12 + a22) / 8, with y_plus and y_minus given.
    """
    size_a, size_y = max(abs(a11), abs(a22), abs(a12)), max(abs(y11), abs(y22), abs(y12))
    size_p = max(abs(p11), abs(p12), abs(p21), abs(p22))
    a_plus = clip_null(a11 + 2.0 * a12 + a22, 16.0 * EPS * size_a)
    a_minus = clip_null(a11 - 2.0 * a12 + a22, 16.0 * EPS * size_a)
    absolute = theta if theta >= 0.0 else -theta * size_a * size_y
    cross = y12 * a12
    return solve_forms(
        p11 + p22,
        p21 - p12,
        p11 - p22,
        p21 + p12,
        y11 * a11 + y22 * a22 + 2.0 * cross,
        (y11 - y22) * a12 - y12 * (a11 - a22),
        y11 * a11 - y22 * a22,
        (y11 + y22) * a12 + y12 * (a11 + a22),
        y11 * a22 + y22 * a11 - 2.0 * cross,
        y11 * a11 + y22 * a22 - 2.0 * cross,
        (y11 - y22) * a12 + y12 * (a11 - a22),
        y11 * a22 + y22 * a11 + 2.0 * cross,
        0.125 * y_plus * a_plus,
        0.125 * y_minus * a_minus,
        0.125 * y_plus * a_minus,
        0.125 * y_minus * a_plus,
        size_p,
        size_a * size_y,
        0.0,
        absolute,
        opposite,
        all_components,
    )


@compiled
def _slopes(A: np.ndarray, C: np.ndarray, X: np.ndarray, Y: np.ndarray, i: int, j: int) -> Four:
    """The block (i, j) of P = A Y + C X^T."""
    p11, p12, p21, p22 = cross_products(A, Y, i, j)
    if C.shape[1] > 0:
        c11, c12, c21, c22 = cross_products(C, X, i, j)
        p11, p12, p21, p22 = p11 + c11, p12 + c12, p21 + c21, p22 + c22
    return p11, p12, p21, p22


@compiled
def sweep_quadratic(
    A: np.ndarray,
    C: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    has_d: bool,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
    stop_unbounded: bool,
    concave: bool,
) -> tuple[int, float]:
    """Pair steps on rows of X for f = 1/2 tr(X^T A X D) + <C, X>, keeping Y = X D X^T: O(n) each.

    C has no columns where it is zero. X and Y are changed in place. A ``concave`` f is majorised by its linear part:
    Q = 0, and theta alone bounds the step (relative: the size of Q). Returns the number of pairs done (negative, minus
    one, if it stopped at an unbounded one) and the total decrease.
    """
    total = 0.0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        p11, p12, p21, p22 = _slopes(A, C, X, Y, i, j)
        y11, y12, y22 = Y[i, i], Y[i, j], Y[j, j]
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            y_plus, y_minus = null_lengths(X, i, j)
        a11, a12, a22, weight = A[i, i], A[i, j], A[j, j], theta
        if concave:
            size = max(abs(a11), abs(a22), abs(a12)) * max(abs(y11), abs(y22), abs(y12))
            a11, a12, a22, weight = 0.0, 0.0, 0.0, theta if theta >= 0.0 else size
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            p11, p12, p21, p22, y11, y12, y22, y_plus, y_minus, a11, a12, a22,
            weight, signs[i] != signs[j], all_components,
        )  # fmt: skip
        if unbounded and stop_unbounded:
            return -t - 1, total
        if concave:
            plus, minus = null_lengths(X, i, j)
            if (v11 * v11 + v12 * v12) * 0.5 * (plus + minus) > RUNAWAY:
                return -t - 1, total
        if decrease > 0.0:
            total += decrease
            apply_pair(X, i, j, v11, v12, v21, v22)
            _conjugate(Y, i, j, v11, v12, v21, v22)
    return pairs.shape[0], total


@compiled
def sweep_block(
    A: np.ndarray,
    R: np.ndarray,
    U: np.ndarray,
    Y: np.ndarray,
    rows: np.ndarray,
    has_d: bool,
    signs: np.ndarray,
    pairs: np.ndarray,
    first: int,
    theta: float,
    all_components: bool,
    stop_unbounded: bool,
) -> tuple[int, float, int]:
    """Pair steps on a few rows Z = U Z_0 of X for f(U) = 1/2 tr(U^T A U Y_0) + <R, U>, keeping Y = U Y_0 U^T.

    Steps as in `sweep_quadratic`, from pair ``first`` on; U and Y are changed in place. The rows are those of Z up to
    an isometry from the right, kept as well, or have no columns: then it stops where D = I and a null length must be
    formed from rows. Returns the number of pairs done, the decrease, and how it ended.
    """
    total = 0.0
    for t in range(first, pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        y11, y12, y22 = Y[i, i], Y[i, j], Y[j, j]
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if not has_d and min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            if rows.shape[1] == 0:
                return t, total, NEEDS_ROWS
            y_plus, y_minus = null_lengths(rows, i, j)
        p11, p12, p21, p22 = _slopes(A, R, U, Y, i, j)
        v11, v12, v21, v22, decrease, unbounded = kronecker_step(
            p11, p12, p21, p22, y11, y12, y22, y_plus, y_minus, A[i, i], A[i, j], A[j, j],
            theta, signs[i] != signs[j], all_components,
        )  # fmt: skip
        if unbounded and stop_unbounded:
            return t, total, UNBOUNDED
        if decrease > 0.0:
            total += decrease
            apply_pair(U, i, j, v11, v12, v21, v22)
            _conjugate(Y, i, j, v11, v12, v21, v22)
            if rows.shape[1] > 0:
                apply_pair(rows, i, j, v11, v12, v21, v22)
    return pairs.shape[0], total, FINISHED


@compiled
def sweep_trace(
    W: np.ndarray,
    F: np.ndarray,
    X: np.ndarray,
    signs: np.ndarray,
    pairs: np.ndarray,
    rounding: float,
    stop_unbounded: bool,
) -> int:
    """J-Jacobi rotations that diagonalise X^T A X, applied to the columns of X, which are the rows given: O(n) each.

    Every w_ij that is met becomes zero. Opposite signs: tanh 2 mu = -2 w_ij / (w_ii + w_jj), the minimiser of the trace
    in that plane; equal signs: tan 2 phi = 2 w_ij / (w_jj - w_ii), which leaves the trace as it is and makes
    convergence quadratic. Returns the number of pairs done, negative and minus one if it stopped at an unbounded one.

    Where A = F^T F, the rows of F X are given (else F has no columns): products and null lengths are then those of
    rows, no plane is unbounded, and W is not used. Otherwise W = X^T A X is, and is kept. ``rounding`` is that of the
    squares a row of F X, or an entry of W, is made of, relative to the largest row of X: what is below says nothing.
    """
    one_sided = F.shape[1] > 0
    largest = _largest_row(X)
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        if one_sided:
            a, c, _, b = cross_products(F, F, i, j)
        else:
            a, c, b = W[i, i], W[i, j], W[j, j]
        if c == 0.0 or (one_sided and a + b <= rounding * largest):
            continue
        if signs[i] == signs[j]:
            ratio = 0.5 * (b - a) / c
            tangent = np.copysign(1.0, ratio) / (abs(ratio) + np.hypot(1.0, ratio))
            cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
            v11, v12, v21, v22 = cosine, -tangent * cosine, tangent * cosine, cosine
        else:
            plus, minus, gap = a + b + 2.0 * c, a + b - 2.0 * c, -4.0 * c
            least = min(plus, minus)
            if not least > NEAR_NULL * abs(a + b):
                x_plus, x_minus = null_lengths(X, i, j)
                if one_sided:
                    plus, minus = _attained_lengths(F, i, j)
                    gap = minus - plus
                    u2 = np.sqrt(minus / plus)
                    if 0.5 * (u2 * x_plus + x_minus / u2) > RUNAWAY:
                        continue
                elif least < -rounding * max(largest, x_plus + x_minus) and stop_unbounded:
                    return -t - 1
                elif least <= rounding * max(largest, x_plus + x_minus):
                    continue
            root_plus, root_minus = np.sqrt(plus), np.sqrt(minus)
            product, total = np.sqrt(root_plus * root_minus), root_plus + root_minus
            cosh, sinh = 0.5 * total / product, 0.5 * gap / (total * product)
            v11, v12, v21, v22 = cosh, sinh, sinh, cosh
        apply_pair(X, i, j, v11, v12, v21, v22)
        if one_sided:
            apply_pair(F, i, j, v11, v12, v21, v22)
        else:
            _conjugate(W, i, j, v11, v12, v21, v22)
            W[i, j] = W[j, i] = 0.0
    return len(pairs)


@compiled
def _largest_row(X: np.ndarray) -> float:
    """The largest ||x_i||^2."""
    largest = 0.0
    for i in range(X.shape[0]):
        largest = max(largest, np.sum(X[i] * X[i]))
    return largest


@compiled
def _attained_lengths(F: np.ndarray, i: int, j: int) -> tuple[float, float]:
    """`null_lengths` with a proximal weight, so that the infimum is attained."""
    plus, minus = null_lengths(F, i, j)
    weight = RELATIVE_THETA * (plus + minus)
    return plus + weight, minus + weight


@compiled
def _conjugate(
    Y: np.ndarray, i: int, j: int, v11: float, v12: float, v21: float, v22: float
) -> None:
    """Y <- V Y V^T on rows and columns (i, j) of a symmetric Y."""
    apply_pair(Y, i, j, v11, v12, v21, v22)
    a, b, c, d = Y[i, i], Y[i, j], Y[j, i], Y[j, j]
    for row in range(Y.shape[0]):
        Y[row, i] = Y[i, row]
        Y[row, j] = Y[j, row]
    Y[i, i], Y[j, j] = a * v11 + b * v12, c * v21 + d * v22
    Y[i, j] = Y[j, i] = 0.5 * ((a * v21 + b * v22) + (c * v11 + d * v12))


@compiled
def sweep_majoriser(
    X: np.ndarray,
    centre: np.ndarray,
    L: float,
    signs: np.ndarray,
    pairs: np.ndarray,
    theta: float,
    all_components: bool,
) -> float:
    """Pair steps on rows of X for L/2 ||X - centre||^2, the majoriser of an L-smooth f: the total decrease.

    With centre = X_t - G / L this is <X - X_t, G> + L/2 ||X - X_t||^2 up to a constant; its pairs are uncoupled.
    """
    total = 0.0
    for t in range(pairs.shape[0]):
        i, j = pairs[t, 0], pairs[t, 1]
        y11, y12, _, y22 = cross_products(X, X, i, j)
        c11, c12, c21, c22 = cross_products(centre, X, i, j)
        y_plus, y_minus = y11 + 2.0 * y12 + y22, y11 - 2.0 * y12 + y22
        if min(y_plus, y_minus) < NEAR_NULL * (y11 + y22):
            y_plus, y_minus = null_lengths(X, i, j)
        v11, v12, v21, v22, decrease, _ = kronecker_step(
            L * (y11 - c11), L * (y12 - c12), L * (y12 - c21), L * (y22 - c22),
            y11, y12, y22, y_plus, y_minus, L, 0.0, L, theta, signs[i] != signs[j], all_components,
        )  # fmt: skip
        if decrease > 0.0:
            total += decrease
            apply_pair(X, i, j, v11, v12, v21, v22)
    return total


@compiled
def sweep_batch(
    X: np.ndarray,
    centre: np.ndarray,
    L: float,
    signs: np.ndarray,
    pairs: np.ndarray,
    all_components: bool,
) -> None:
    """`sweep_majoriser` on every matrix of X (b, n, n), in place; one that is at its centre already rests."""
    for k in range(X.shape[0]):
        if not np.array_equal(X[k], centre[k]):
            sweep_majoriser(X[k], centre[k], L, signs, pairs, 0.0, all_components)
