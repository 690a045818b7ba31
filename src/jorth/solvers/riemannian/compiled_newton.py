"""Newton's method for f = 1/2 tr(X^T A X D) + <C, X> on O(p, q), compiled.

Steps are X <- X cay(J Z) with Z skew, in the coordinates of the right. (They are the steps
X <- cay(J S) X with S = J X J Z J X^T J, so Newton's method is the same in both.) With
B = J X^T A X J, the gradient g = skew(J X^T G) and the multiplier M = sym(J X^T G), the Hessian of
Z -> f(X cay(J Z)) at 0 is

    Z -> skew(B Z D - J Z M).

It does not grow with ||X||, and D = I leaves skew(Z B - J Z M), one coefficient per pair of rows.
Up to `DENSE` rows it is factored; beyond that, the system is solved by conjugate gradients in an
eigenbasis of B, where the first part is nearly diagonal. Decreases of f are computed as
<G + A dX D / 2, dX>, so that they are accurate long after f itself no longer changes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jorth.group._numba import diagonal, point_norms
from jorth.solvers.riemannian.compiled_algebra import (
    add,
    assign,
    cholesky,
    cholesky_solve,
    compiled,
    congruence,
    inner,
    multiply,
    norm,
    solve,
)
from jorth.solvers.riemannian.line_search import LARGEST_SLOPE, LONGEST, TRIALS

MOVED, STALLED, NON_FINITE = 0, 1, 2
"""How a step ended."""
DENSE = 10
"""The largest n whose Hessian is formed and factored."""
STALE = 0.1
"""The relative change of X after which the eigenbasis of B is computed again."""
INEXACT = 0.1
"""The largest relative residual of conjugate gradients."""
INNER_STEPS = 500
FLAT = 1e-8
"""A weight of the preconditioner below this share of the largest is raised to it."""
ARMIJO = 0.1
"""The share of the expected decrease that is asked for: 0.5 would be that of an exact model."""
LARGEST_DAMPING = 1e-2
"""Of the curvature, near the rounding of g."""
SHIFTS = 8
RADIUS = 1.0
"""The largest ||Z||_F of a direction by conjugate gradients, over sqrt(n): more would only be cut
as a whole before the pole, and directions of negative curvature are followed as far as this."""
FAR = 1e6
"""||X||_2 beyond which every step is looked at, since X may diverge."""
EPS = float(np.finfo(np.float64).eps)


class Form(NamedTuple):
    """f = 1/2 tr(X^T A X D) + <C, X>; C has no columns if it is zero, and D none if it is I."""

    A: np.ndarray
    C: np.ndarray
    D: np.ndarray
    signs: np.ndarray
    """(n,) of float64."""


class Work(NamedTuple):
    """Arrays for one problem: what is known at X, and scratch."""

    G: np.ndarray
    AX: np.ndarray
    g: np.ndarray
    M: np.ndarray
    B: np.ndarray
    Z: np.ndarray
    step: np.ndarray
    change: np.ndarray
    scratch: np.ndarray
    other: np.ndarray
    H: np.ndarray
    """The Hessian (d, d), d = n (n - 1) / 2, if it is factored."""
    x: np.ndarray
    U: np.ndarray
    """The eigenbasis of an earlier B, and the arrays (6, n, n) of conjugate gradients, if not."""
    cg: np.ndarray


@compiled
def workspace(n: int) -> Work:
    """Arrays for matrices (n, n), not initialised."""
    d = n * (n - 1) // 2 if n <= DENSE else 0
    k = n if n > DENSE else 0
    m = np.empty((10, n, n))
    return Work(
        m[0],
        m[1],
        m[2],
        m[3],
        m[4],
        m[5],
        m[6],
        m[7],
        m[8],
        m[9],
        np.empty((d, d)),
        np.empty(d),
        np.empty((k, k)),
        np.empty((9, k, k)),
    )


# -- what is known at X


@compiled
def evaluate(form: Form, X: np.ndarray, work: Work) -> None:
    """A X and G = A X D + C."""
    multiply(form.A, X, work.AX)
    if form.D.shape[1] > 0:
        multiply(work.AX, form.D, work.G)
    else:
        assign(1.0, work.AX, work.G)
    if form.C.shape[1] > 0:
        add(1.0, form.C, work.G)


@compiled
def prepare(form: Form, X: np.ndarray, work: Work) -> None:
    """g, M and B from A X and G."""
    n, s = len(X), form.signs
    multiply(X.T, work.G, work.scratch)
    _split(work.scratch, s, work.g, work.M)
    multiply(X.T, work.AX, work.B)
    for i in range(n):
        for j in range(i + 1):
            value = 0.5 * s[i] * s[j] * (work.B[i, j] + work.B[j, i])
            work.B[i, j] = value
            work.B[j, i] = value


@compiled
def _split(N: np.ndarray, s: np.ndarray, skew: np.ndarray, symmetric: np.ndarray) -> None:
    """The skew and the symmetric part of J N."""
    for i in range(len(N)):
        for j in range(i + 1):
            upper, lower = s[j] * N[j, i], s[i] * N[i, j]
            skew[i, j] = 0.5 * (lower - upper)
            skew[j, i] = -skew[i, j]
            symmetric[i, j] = 0.5 * (lower + upper)
            symmetric[j, i] = symmetric[i, j]


@compiled
def _damping(form: Form, work: Work) -> float:
    """The rounding of g relative to g: the share of skew(B Z D) that is added to the Hessian.

    If f does not change along some directions, rounding must not decide how far a step goes there.
    """
    size, rounding = norm(work.g), len(form.signs) * _rounding(form, work)
    return rounding / size if rounding < LARGEST_DAMPING * size else LARGEST_DAMPING


@compiled
def _rounding(form: Form, work: Work) -> float:
    """The rounding error of g."""
    return EPS * (norm(work.B) * (norm(form.D) if form.D.shape[1] > 0 else 1.0) + norm(work.M))


@compiled
def renew_basis(work: Work) -> None:
    """U from the eigenvectors of B."""
    assign(1.0, np.linalg.eigh(work.B)[1], work.U)


# -- the direction, by factoring the Hessian


@compiled
def _fill_hessian(form: Form, work: Work, weight: float) -> None:
    """The lower triangle of the Hessian over the pairs i < j; M is multiplied by ``weight``.

    Row (k, l) holds the coefficients of (P_kl - P_lk) / 2 with P = Z B - J Z M.
    """
    n, s, B, M, H = len(form.signs), form.signs, work.B, work.M, work.H
    has_d = form.D.shape[1] > 0
    for row in range(len(H)):
        for column in range(row + 1):
            H[row, column] = 0.0
    row = 0
    for k in range(n):
        for m in range(k + 1, n):
            for end, other, sign in ((k, m, 0.5), (m, k, -0.5)):
                turn = weight * s[end]
                for j in range(n):
                    if j == end:
                        continue
                    first, last = min(j, end), max(j, end)
                    column = first * (2 * n - first - 1) // 2 + last - first - 1
                    if column <= row:
                        value = -turn * M[j, other] if has_d else B[j, other] - turn * M[j, other]
                        H[row, column] += sign * value if j > end else -sign * value
            row += 1
    if has_d:
        _add_two_sided(B, form.D, H)


@compiled
def _add_two_sided(B: np.ndarray, D: np.ndarray, H: np.ndarray) -> None:
    """Add skew(B Z D) to the lower triangle of the Hessian."""
    n = len(B)
    row = 0
    for k in range(n):
        for m in range(k + 1, n):
            column = 0
            for i in range(k + 1):
                for j in range(i + 1, n if i < k else m + 1):
                    direct = B[k, i] * D[m, j] - B[k, j] * D[m, i]
                    H[row, column] += 0.5 * (direct - B[m, i] * D[k, j] + B[m, j] * D[k, i])
                    column += 1
            row += 1


@compiled
def _hold_rotations(signs: np.ndarray, H: np.ndarray) -> None:
    """Take rotations among equal signs out of H: tr(X^T A X) does not change under them.

    Their slopes are zero and their curvatures of the size of ||g||^2, of either sign, so that a
    step might go far along them and spoil the quadratic end.
    """
    n = len(signs)
    largest = 0.0
    for k in range(len(H)):
        largest = max(largest, abs(H[k, k]))
    row = 0
    for i in range(n):
        for j in range(i + 1, n):
            if signs[i] == signs[j]:
                for column in range(row):
                    H[row, column] = 0.0
                for below in range(row + 1, len(H)):
                    H[below, row] = 0.0
                H[row, row] = largest
            row += 1


@compiled
def _factored_direction(form: Form, work: Work) -> None:
    """Z = -H^-1 g; where H is not definite without M, and if need be with a shift."""
    n, H, x = len(form.signs), work.H, work.x
    weight = 1.0 / (1.0 + _damping(form, work))
    for attempt in range(SHIFTS):
        _fill_hessian(form, work, 0.0 if attempt == 1 else weight)
        if form.C.shape[1] == 0 and form.D.shape[1] == 0:
            _hold_rotations(form.signs, H)
        size = 0.0
        for k in range(len(H)):
            size = max(size, abs(H[k, k]))
        shift = 0.0 if attempt < 2 else 10.0 ** (attempt - 4) * size
        for k in range(len(H)):
            H[k, k] += shift
        if cholesky(H):
            break
    else:
        assign(-1.0, work.g, work.Z)
        return
    row = 0
    for i in range(n):
        for j in range(i + 1, n):
            x[row] = -work.g[i, j]
            row += 1
    cholesky_solve(H, x)
    row = 0
    for i in range(n):
        work.Z[i, i] = 0.0
        for j in range(i + 1, n):
            work.Z[i, j] = x[row]
            work.Z[j, i] = -x[row]
            row += 1


# -- the direction, by conjugate gradients


@compiled
def _weights(B: np.ndarray, D: np.ndarray, out: np.ndarray) -> None:
    """The diagonal of Z -> skew(B Z D), which is (B_ii D_jj + B_jj D_ii) / 2, made positive."""
    n = len(B)
    largest = 0.0
    for i in range(n):
        for j in range(n):
            d_i, d_j = (D[i, i], D[j, j]) if D.shape[1] > 0 else (1.0, 1.0)
            out[i, j] = abs(0.5 * (B[i, i] * d_j + B[j, j] * d_i))
            largest = max(largest, out[i, j])
    if not largest > 0.0:
        largest = 1.0 / FLAT
    for i in range(n):
        for j in range(n):
            out[i, j] = max(out[i, j], FLAT * largest)


@compiled
def _hessian_product(form: Form, work: Work, Z: np.ndarray, out: np.ndarray) -> None:
    """skew(B Z D - N Z M) in the basis U, where N = U^T J U."""
    B, M, N, D = work.cg[0], work.cg[1], work.cg[2], work.cg[3]
    n = len(Z)
    multiply(B, Z, work.scratch)
    if form.D.shape[1] > 0:
        assign(1.0, work.scratch, work.other)
        multiply(work.other, D, work.scratch)
    multiply(N, Z, work.other)
    multiply(work.other, M, work.step)
    for i in range(n):
        for j in range(i + 1):
            lower = work.scratch[i, j] - work.step[i, j]
            out[i, j] = 0.5 * (lower - work.scratch[j, i] + work.step[j, i])
            out[j, i] = -out[i, j]


@compiled
def _change_basis(form: Form, work: Work) -> None:
    """B, M, J, D and g in the basis U, and the weights of the preconditioner, into work.cg."""
    U, cg, between, has_d = work.U, work.cg, work.scratch, form.D.shape[1] > 0
    congruence(U, work.B, between, cg[0])
    congruence(U, work.M, between, cg[1])
    for i in range(len(U)):
        between[i] = form.signs[i] * U[i]
    multiply(U.T, between, cg[2])
    if has_d:
        congruence(U, form.D, between, cg[3])
    congruence(U, work.g, between, cg[4])
    _weights(cg[0], cg[3] if has_d else form.D, cg[5])


@compiled
def _weighted_square(r: np.ndarray, weights: np.ndarray) -> float:
    """<r, r / weights>."""
    total = 0.0
    for i in range(len(r)):
        for j in range(len(r)):
            total += r[i, j] * r[i, j] / weights[i, j]
    return total


@compiled
def _redirect(r: np.ndarray, weights: np.ndarray, factor: float, p: np.ndarray) -> float:
    """p <- factor p - r / weights; returns <r, r / weights>."""
    for i in range(len(r)):
        for j in range(len(r)):
            kept = factor * p[i, j] if factor != 0.0 else 0.0
            p[i, j] = kept - r[i, j] / weights[i, j]
    return _weighted_square(r, weights)


@compiled
def _damped(damping: float, weights: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
    """q <- q + damping weights p; returns <p, q>."""
    for i in range(len(p)):
        for j in range(len(p)):
            q[i, j] += damping * weights[i, j] * p[i, j]
    return inner(p, q)


@compiled
def _to_boundary(Z: np.ndarray, p: np.ndarray) -> float:
    """The t >= 0 with ||Z + t p||_F = `RADIUS`, for Z within it."""
    a, b, c = inner(p, p), inner(Z, p), inner(Z, Z) - RADIUS**2 * len(Z)
    if not (a > 0.0 and c < 0.0):
        return 0.0
    root = math.sqrt(b * b - a * c)
    return -c / (b + root) if b > 0.0 else (root - b) / a


@compiled
def _iterative_direction(form: Form, work: Work) -> None:
    """Z = -H^-1 g by preconditioned conjugate gradients up to the first negative curvature."""
    _change_basis(form, work)
    r, weights, Z, p, q = work.cg[4], work.cg[5], work.cg[6], work.cg[7], work.cg[8]
    size = norm(work.B) * (norm(form.D) if form.D.shape[1] > 0 else 1.0)
    relative = norm(work.g) / size if size > 0.0 else 1.0
    damping = _damping(form, work)
    wanted = min(INEXACT, relative) ** 2
    product = _redirect(r, weights, 0.0, p)
    assign(0.0, p, Z)
    first = product
    for _ in range(INNER_STEPS):
        _hessian_product(form, work, p, q)
        curvature = _damped(damping, weights, p, q)
        reach = _to_boundary(Z, p)
        length = product / curvature if curvature > 0.0 else math.inf
        if not length < reach:
            add(reach, p, Z)
            break
        add(length, p, Z)
        add(length, q, r)
        before, product = product, _weighted_square(r, weights)
        if not product > wanted * first:
            break
        _redirect(r, weights, product / before, p)
    congruence(work.U.T, Z, work.scratch, work.Z)


# -- the step


@compiled
def _boost_bound(form: Form, work: Work) -> float:
    """A bound on the norm of the boost part of Z: ||.||_F if that will do, else ||.^8||_F^(1/8)."""
    n, s, power, square = len(form.signs), form.signs, work.scratch, work.other
    for i in range(n):
        for j in range(n):
            power[i, j] = work.Z[i, j] if s[i] != s[j] else 0.0
    size = norm(power) / math.sqrt(2.0)
    if not size > LONGEST:
        return size
    for i in range(n):
        for j in range(n):
            power[i, j] /= size
    for _ in range(3):
        multiply(power, power, square)
        assign(1.0, square, power)
    return min(size, size * math.sqrt(math.sqrt(math.sqrt(norm(power)))))


@compiled
def _move(form: Form, X: np.ndarray, work: Work, t: float) -> float:
    """dX = X (cay(t J Z) - I) and A dX D; returns the change of f."""
    n, s, shifted, E = len(X), form.signs, work.scratch, work.other
    for i in range(n):
        for j in range(n):
            E[i, j] = t * s[i] * work.Z[i, j]
            shifted[i, j] = (1.0 if i == j else 0.0) - 0.5 * E[i, j]
    solve(shifted, E)
    multiply(X, E, work.step)
    multiply(form.A, work.step, work.change)
    if form.D.shape[1] > 0:
        assign(1.0, work.change, work.scratch)
        multiply(work.scratch, form.D, work.change)
    return inner(work.G, work.step) + 0.5 * inner(work.change, work.step)


@compiled
def _new_slope(form: Form, X: np.ndarray, work: Work) -> float:
    """<g, Z> at X + dX."""
    X_new, G_new, product = work.scratch, work.other, work.AX
    assign(1.0, X, X_new)
    add(1.0, work.step, X_new)
    assign(1.0, work.G, G_new)
    add(1.0, work.change, G_new)
    multiply(X_new.T, G_new, product)
    total = 0.0
    for i in range(len(X)):
        for j in range(len(X)):
            total += form.signs[i] * product[i, j] * work.Z[i, j]
    return total


@compiled
def all_finite(a: np.ndarray) -> bool:
    """Whether no entry is NaN or infinite, nor so large that their sum is."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += abs(a[i, j])
    return math.isfinite(total)


@compiled
def search(form: Form, X: np.ndarray, work: Work) -> tuple[int, int]:
    """Backtrack along Z and move X; returns how the step ended, and the number of trials."""
    slope = inner(work.g, work.Z)
    if not slope < 0.0 or norm(work.g) <= _rounding(form, work):
        return (STALLED if math.isfinite(slope) else NON_FINITE), 0
    t = min(1.0, LONGEST / max(_boost_bound(form, work), 1e-300))
    rounding = EPS * norm(work.G)
    for trial in range(1, TRIALS + 1):
        decrease = _move(form, X, work, t)
        flat = abs(t * slope) < 100.0 * rounding * norm(work.step)
        if flat:
            accepted = abs(_new_slope(form, X, work)) <= LARGEST_SLOPE * abs(slope)
        else:
            accepted = decrease <= ARMIJO * t * slope
        if accepted:
            add(1.0, work.step, X)
            return MOVED, trial
        excess = decrease - t * slope
        best = -0.5 * slope * t * t / excess if excess > 0.0 else 0.5 * t
        t = min(max(best, 0.1 * t), 0.5 * t)
    return STALLED, TRIALS


@compiled
def direct(form: Form, work: Work, basis: np.ndarray | None) -> None:
    """The direction Z from what is known at X; without a basis by factoring the Hessian."""
    if basis is None or len(form.signs) <= DENSE:
        _factored_direction(form, work)
    else:
        _iterative_direction(form, work)
    if not inner(work.g, work.Z) < 0.0:
        assign(-1.0, work.g, work.Z)


@compiled
def newton_steps(
    form: Form,
    X: np.ndarray,
    basis: np.ndarray | None,
    basis_of: np.ndarray | None,
    enough: tuple[float, float],
    rows: np.ndarray,
) -> tuple[int, int]:
    """Steps from X, in place, until it is enough or ``rows`` is full.

    A gradient norm or a decrease of f is enough. The basis for conjugate gradients and the point it
    belongs to are renewed on the way; they are None for n up to `DENSE`, so that only the code for
    factors is compiled. For each step a row takes the decrease of f, and then the
    gradient norm, the violation and ||X||_2 after it. Returns the number of steps, and how the last
    one ended.
    """
    n = len(X)
    work = workspace(n)
    target, fall = enough
    gram = diagonal(form.signs)
    before, slopes = np.empty((n, n)), np.empty((n, n))
    if basis is not None:
        assign(1.0, basis, work.U)
    evaluate(form, X, work)
    for done in range(len(rows)):
        prepare(form, X, work)
        if not all_finite(work.B) or not all_finite(work.M):
            return done, NON_FINITE
        if basis is not None and basis_of is not None:
            _renew_if_moved(X, work, basis, basis_of)
        direct(form, work, basis)
        assign(1.0, X, before)
        assign(1.0, work.G, slopes)
        ending, _ = search(form, X, work)
        if ending != MOVED:
            return done, ending
        evaluate(form, X, work)
        decrease = 0.0  # <(G + G') / 2, X - X'> is exact for a quadratic
        for i in range(n):
            for j in range(n):
                decrease += 0.5 * (slopes[i, j] + work.G[i, j]) * (before[i, j] - X[i, j])
        size, violation, slope = point_norms(X, work.G, form.signs, gram)
        rows[done, 0], rows[done, 1], rows[done, 2], rows[done, 3] = (
            decrease,
            slope,
            violation,
            size,
        )
        fall -= decrease
        if not (slope > target and fall > 0.0 and size < FAR):
            return done + 1, MOVED
    return len(rows), MOVED


@compiled
def _renew_if_moved(X: np.ndarray, work: Work, basis: np.ndarray, basis_of: np.ndarray) -> None:
    """The basis at X, if X is far from where it was computed."""
    if moved(X, basis_of):
        assign(1.0, X, basis_of)
        renew_basis(work)
        assign(1.0, work.U, basis)


@compiled
def moved(X: np.ndarray, basis_of: np.ndarray) -> bool:
    """Whether X is far from the point of the basis, or that point is unknown (NaN)."""
    distance = 0.0
    for i in range(len(X)):
        for j in range(len(X)):
            distance += (X[i, j] - basis_of[i, j]) ** 2
    return not distance <= STALE**2 * inner(X, X)


@compiled
def eigenbasis(form: Form, X: np.ndarray) -> np.ndarray:
    """The eigenbasis of B at X for `newton_steps`; n is above `DENSE`."""
    work = workspace(len(X))
    multiply(form.A, X, work.AX)
    assign(0.0, work.AX, work.G)
    prepare(form, X, work)
    if all_finite(work.B):
        renew_basis(work)
    else:
        for i in range(len(X)):
            for j in range(len(X)):
                work.U[i, j] = 1.0 if i == j else 0.0
    return work.U
