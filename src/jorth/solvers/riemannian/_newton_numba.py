"""Newton's method for f = 1/2 tr(X^T A X D) + <C, X> on O(p, q), compiled, for one problem or many.

Steps are X <- X cay(J Z) with Z skew, equal to the steps X <- cay(J S) X of the other methods with
S = J X J Z J X^T J. With B = J X^T A X J, the gradient g = skew(J X^T G) and the multiplier M =
sym(J X^T G), the Hessian of Z -> f(X cay(J Z)) at 0 is

    Z -> skew(B Z D - J Z M).

It does not grow with ||X||. For few rows it is factored; beyond that, the system is solved by
conjugate gradients in an eigenbasis of B. Decreases of f are computed as <G + G', X - X'> / 2, so
that they stay accurate when f itself no longer changes.

All matrices of a problem are in one array W (., n, n), as every array that is passed on lengthens
compilation. V is W as rows of n^2 entries.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dsyevr

from jorth._numba import compiler
from jorth.solvers.riemannian.line_search import LARGEST_SLOPE, LONGEST, NEWTON_ARMIJO, TRIALS

UNDECIDED, NEEDS_BASIS, UNFINISHED, CONVERGED, MAX_ITERATIONS, STALLED, FAR_OUT, NON_FINITE = range(
    -3, 5
)
"""How a problem ended. NEEDS_BASIS asks for an eigenbasis at X, after which it goes on."""
PLACES: Any = np.arange(25)  # for every Python int numba compiles anew
A, C, D, X, G, XT, SKEW, M, B, Z, X_NEW, G_NEW, STEP, P, Q = PLACES[:15]
"""The places of matrices in W; SKEW is g, and P and Q are temporary."""
U, UT, B_U, M_U, J_U, D_U, RESIDUAL, WEIGHTS, PATH, H_PATH = PLACES[15:]
"""Those of the basis, of matrices in it, and of what conjugate gradients work on."""
DENSE = 10
"""The largest n whose Hessian is formed and factored: 1.4 times faster for a batch of n = 8."""
WRITTEN_OUT = 14
"""The largest n for which loops are faster than products by BLAS."""
EPS = 2.0**-52
FAR = 2 / EPS
"""||X||_F^2 from which on f must not fall any further, as feasibility has no digits left."""
PATIENCE = 20
"""Iterations without a smaller gradient norm after which a problem has stalled."""

summing = compiler(fastmath={"reassoc", "contract"}, nogil=True, internal=True)
compiled = compiler(fastmath={"contract"}, nogil=True)
part = compiler(fastmath={"contract"}, nogil=True, internal=True)


@part
def multiply(W: np.ndarray, a: int, b: int, out: int) -> None:
    """W[out] <- W[a] W[b]."""
    n = W.shape[1]
    if n > WRITTEN_OUT:
        np.dot(W[a], W[b], W[out])
        return
    for i in range(n):
        for j in range(n):
            W[out, i, j] = W[a, i, 0] * W[b, 0, j]
        for k in range(1, n):
            for j in range(n):
                W[out, i, j] += W[a, i, k] * W[b, k, j]


@part
def combine(V: np.ndarray, x: float, a: int, y: float, b: int, out: int) -> None:
    """V[out] <- x V[a] + y V[b]."""
    for k in range(V.shape[1]):
        V[out, k] = x * V[a, k] + y * V[b, k]


@summing
def inner(V: np.ndarray, a: int, b: int) -> float:
    """Return <V[a], V[b]>."""
    total = 0.0
    for k in range(V.shape[1]):
        total += V[a, k] * V[b, k]
    return total


@part
def split(W: np.ndarray, s: np.ndarray) -> float:
    """Find the skew and the symmetric part of J P; return the norm of the skew part."""
    total = 0.0
    for i in range(len(s)):
        for j in range(i + 1):
            lower, upper = 0.5 * s[i] * W[P, i, j], 0.5 * s[j] * W[P, j, i]
            W[M, i, j] = W[M, j, i] = lower + upper
            W[SKEW, i, j], W[SKEW, j, i] = lower - upper, upper - lower
            total += (lower - upper) ** 2
    return math.sqrt(2.0 * total)


@part
def differentiate(
    W: np.ndarray, V: np.ndarray, s: np.ndarray, right: bool, x: int, gradient: int
) -> tuple[float, float]:
    """Find the derivatives at W[x]; return f and ||skew(J G X^T)||_F."""
    n = len(s)
    for i in range(n):
        for j in range(n):
            W[XT, j, i] = W[x, i, j]
    multiply(W, A, x, Q)
    multiply(W, XT, Q, P)
    for i in range(n):
        for j in range(n):
            W[B, i, j] = 0.5 * s[i] * s[j] * (W[P, i, j] + W[P, j, i])
    if right:
        multiply(W, Q, D, gradient)
    else:
        combine(V, 1.0, Q, 0.0, Q, gradient)
    value = 0.5 * inner(V, gradient, x) + inner(V, C, x)
    combine(V, 1.0, gradient, 1.0, C, gradient)
    multiply(W, gradient, XT, P)
    norm = split(W, s)
    multiply(W, XT, gradient, P)
    split(W, s)
    return value, norm


@part
def rotate(W: np.ndarray, a: int, out: int) -> None:
    """W[out] <- U^T W[a] U."""
    multiply(W, a, U, Q)
    multiply(W, UT, Q, out)


# Fill, factor and solve in one: they share the loop over shifts, and H.
@summing
def factored_direction(
    W: np.ndarray, V: np.ndarray, s: np.ndarray, trace: bool, damping: float, H: np.ndarray
) -> None:
    """Z <- -H^-1 g; where H is not definite without M, and if need be with a shift.

    The row of (k, m) of H, k < m, holds the coefficients of (P_km - P_mk) / 2, and the last row is
    g: the Cholesky factorisation is then the forward substitution too. A large weight holds
    rotations among equal signs, under which a trace does not change.
    """
    n, d = len(s), H.shape[1]
    largest = 0.0
    for attempt in range(8):
        weight = 0.0 if attempt == 1 else 1.0 / (1.0 + damping)
        shift = 0.0 if attempt < 2 else 10.0 ** (attempt - 4) * largest
        largest, row = 0.0, 0
        for k in range(n):
            for m in range(k + 1, n):
                column = 0
                for i in range(k + 1):
                    for j in range(i + 1, n if i < k else m + 1):
                        # large terms of B and M cancel for large X, and must meet first
                        low, high = W[B, k, i] * W[D, m, j], W[B, m, j] * W[D, k, i]
                        mixed = W[B, m, i] * W[D, k, j]
                        if i == k:
                            high -= weight * s[k] * W[M, m, j]
                        elif j == k:
                            mixed -= weight * s[k] * W[M, m, i]
                        if j == m:
                            low -= weight * s[m] * W[M, k, i]
                        H[row, column] = 0.5 * (low + high - mixed - W[B, k, j] * W[D, m, i])
                        column += 1
                largest = max(largest, abs(H[row, row]))
                H[row, row] += shift
                if trace and s[k] == s[m]:
                    H[row, row] += 1e16
                H[d, row] = -W[SKEW, k, m]
                row += 1
        definite = True
        for k in range(d + 1):
            for j in range(min(k + 1, d)):
                total = H[k, j]
                for c in range(j):
                    total -= H[k, c] * H[j, c]
                if j < k:
                    H[k, j] = total / H[j, j]
                elif total > 1e-14 * largest:
                    H[k, k] = math.sqrt(total)
                else:
                    definite = False
                    break
            if not definite:
                break
        if definite:
            break
    else:
        combine(V, -1.0, SKEW, 0.0, SKEW, Z)
        return
    for k in range(d - 1, -1, -1):
        H[d, k] /= H[k, k]
        for c in range(k):
            H[d, c] -= H[k, c] * H[d, k]
    row = 0
    for i in range(n):
        W[Z, i, i] = 0.0
        for j in range(i + 1, n):
            W[Z, i, j], W[Z, j, i] = H[d, row], -H[d, row]
            row += 1


# Conjugate gradients from top to bottom.
@summing
def iterative_direction(
    W: np.ndarray, V: np.ndarray, s: np.ndarray, right: bool, damping: float
) -> None:
    """Z <- -H^-1 g by preconditioned conjugate gradients up to the first negative curvature.

    In the basis U the weights of the preconditioner are the diagonal of Z -> skew(B Z D), made
    positive. The norm of Z is at most sqrt(n): more would only be cut as a whole before the pole,
    and directions of negative curvature are followed as far as this.
    """
    n = len(s)
    for i in range(n):
        for j in range(n):
            W[UT, j, i] = W[U, i, j]
            W[P, i, j] = s[i] * W[U, i, j]
    multiply(W, UT, P, J_U)
    rotate(W, B, B_U)
    rotate(W, M, M_U)
    rotate(W, D, D_U)
    rotate(W, SKEW, RESIDUAL)
    largest = 0.0
    for i in range(n):
        for j in range(n):
            weight = abs(0.5 * (W[B_U, i, i] * W[D_U, j, j] + W[B_U, j, j] * W[D_U, i, i]))
            W[WEIGHTS, i, j] = weight
            largest = max(largest, weight)
    for k in range(n * n):  # none may vanish
        V[WEIGHTS, k] = max(V[WEIGHTS, k], 1e-8 * largest) if largest > 0.0 else 1.0
    size = math.sqrt(inner(V, B, B) * (inner(V, D, D) if right else 1.0))
    relative = math.sqrt(inner(V, SKEW, SKEW)) / size if size > 0.0 else 1.0
    before = first = 0.0
    for k in range(n * n):
        V[Z, k] = V[PATH, k] = 0.0
    for _ in range(500):
        weight = 0.0
        for k in range(n * n):
            V[P, k] = V[RESIDUAL, k] / V[WEIGHTS, k]
            weight += V[RESIDUAL, k] * V[P, k]
        if before == 0.0:
            first = before = weight
        elif not weight > min(0.1, relative) ** 2 * first:
            break
        combine(V, weight / before, PATH, -1.0, P, PATH)
        before = weight
        multiply(W, J_U, PATH, Q)
        multiply(W, Q, M_U, H_PATH)
        multiply(W, B_U, PATH, Q)
        of_B = Q
        if right:
            multiply(W, Q, D_U, P)
            of_B = P
        for i in range(n):
            for j in range(i + 1):
                entry = W[of_B, i, j] - W[H_PATH, i, j] - W[of_B, j, i] + W[H_PATH, j, i]
                W[H_PATH, i, j] = 0.5 * entry + damping * W[WEIGHTS, i, j] * W[PATH, i, j]
                W[H_PATH, j, i] = -W[H_PATH, i, j]
        curvature = inner(V, PATH, H_PATH)
        a, b, c = inner(V, PATH, PATH), inner(V, Z, PATH), inner(V, Z, Z) - n
        reach = 0.0  # the t >= 0 with ||Z + t p||_F^2 = n
        if a > 0.0 and c < 0.0:
            root = math.sqrt(b * b - a * c)
            reach = -c / (b + root) if b > 0.0 else (root - b) / a
        length = weight / curvature if curvature > 0.0 else math.inf
        combine(V, 1.0, Z, min(length, reach), PATH, Z)
        if not length < reach:
            break
        combine(V, 1.0, RESIDUAL, length, H_PATH, RESIDUAL)
    multiply(W, Z, UT, P)
    multiply(W, U, P, Z)


@part
def cayley_step(W: np.ndarray, R: np.ndarray, s: np.ndarray, t: float) -> None:
    """STEP <- X (cay(t J Z) - I) = X (I - E / 2)^-1 E for E = t J Z, by elimination in R."""
    n = len(s)
    for i in range(n):
        for j in range(n):
            R[i, n + j] = t * s[i] * W[Z, i, j]
            R[i, j] = (1.0 if i == j else 0.0) - 0.5 * R[i, n + j]
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(R[i, k]) > abs(R[pivot, k]):
                pivot = i
        inverse = 1.0 / R[pivot, k]
        for j in range(k, 2 * n):
            row = R[pivot, j]
            R[pivot, j] = R[k, j]
            R[k, j] = inverse * row
        for i in range(n):
            factor = R[i, k]
            if i != k:
                for j in range(k + 1, 2 * n):
                    R[i, j] -= factor * R[k, j]
    for i in range(n):
        for j in range(n):
            W[Q, i, j] = R[i, n + j]
    multiply(W, X, Q, STEP)


@part
def longest_step(W: np.ndarray, V: np.ndarray, s: np.ndarray) -> float:
    """Return the t up to 1 with which t Z keeps away from the pole of cay; see `boost_norm`."""
    for i in range(len(s)):
        for j in range(len(s)):
            W[P, i, j] = W[Z, i, j] if s[i] != s[j] else 0.0
    size = math.sqrt(0.5 * inner(V, P, P))
    if not size > LONGEST:
        return 1.0
    combine(V, 1.0 / size, P, 0.0, P, Q)
    multiply(W, Q, Q, P)
    multiply(W, P, P, Q)
    multiply(W, Q, Q, P)
    size *= min(1.0, math.pow(inner(V, P, P), 0.0625))
    return min(1.0, LONGEST / size)


class Quadratics(NamedTuple):
    """Problems and their answers; X, the starts, becomes the points. A and C may be shared."""

    A: np.ndarray
    """(B, n, n) or (1, n, n)."""
    C: np.ndarray
    """(B, n, n) or (1, n, n), or (1, n, 0) if it is zero."""
    D: np.ndarray
    """(n, n), or (n, 0) if it is I."""
    signs: np.ndarray
    X: np.ndarray
    bases: np.ndarray | None
    """(2, B, n, n), eigenbases of B and the points to which they belong, NaN at first; None where
    the Hessian is factored."""
    value: np.ndarray
    """(B,), that of f; NaN at first."""
    norm: np.ndarray
    """(B,), ||skew(J G X^T)||_F."""
    iterations: np.ndarray
    status: np.ndarray


class Rule(NamedTuple):
    """When a problem ends."""

    target: np.ndarray
    """(B,), ||skew(J G X^T)||_F that is small enough; negative where none is."""
    max_iterations: int
    stop: np.ndarray
    """(1,); another thread ends all problems where they are by setting it."""


class Workspace(NamedTuple):
    """The arrays of one thread."""

    W: np.ndarray
    V: np.ndarray
    R: np.ndarray
    """(n, 2 n)."""
    H: np.ndarray | None
    """(d + 1, d) with d = n (n - 1) / 2, or None."""

    @classmethod
    def of(cls, n: int) -> Workspace:
        """Return the arrays for matrices (n, n)."""
        d, dense = n * (n - 1) // 2, n <= DENSE
        W = np.empty((U if dense else H_PATH + 1, n, n))
        V, H = W.reshape(len(W), n * n), np.empty((d + 1, d)) if dense else None
        return cls(W, V, np.empty((n, 2 * n)), H)


# A problem from its start to its end in one function: every further one takes time to compile.
@compiled
def minimize_range(
    problems: Quadratics,
    first: int,
    last: int,
    rule: Rule,
    W: np.ndarray,
    V: np.ndarray,
    R: np.ndarray,
    H: Any,
    bases: Any,
) -> None:
    """Minimise the problems from ``first`` to ``last`` - 1; one that needs a basis waits for it."""
    s, n = problems.signs, len(problems.signs)
    linear, right = problems.C.shape[2] > 0, problems.D.shape[1] > 0
    for b in range(first, last):
        own_A, own_C = b if len(problems.A) > 1 else 0, b if len(problems.C) > 1 else 0
        for i in range(n):
            for j in range(n):
                W[X, i, j], W[A, i, j] = problems.X[b, i, j], problems.A[own_A, i, j]
                W[C, i, j] = problems.C[own_C, i, j] if linear else 0.0
                W[D, i, j] = problems.D[i, j] if right else (1.0 if i == j else 0.0)
                if bases is not None:
                    W[U, i, j] = bases[0, b, i, j]
        value, norm = differentiate(W, V, s, right, X, G)
        done = problems.iterations[b]
        before, least, patience = problems.value[b], math.inf, PATIENCE
        far = max(FAR, 100.0 * inner(V, X, X))
        while True:
            patience = PATIENCE if norm < least else patience - 1
            least = min(least, norm)
            if not math.isfinite(value + norm):
                ending = NON_FINITE
            elif norm <= rule.target[b]:
                ending = CONVERGED
            elif done == rule.max_iterations:
                ending = MAX_ITERATIONS
            elif rule.stop[0] != 0:
                ending = UNFINISHED
            elif inner(V, X, X) > far and value < before:
                ending = FAR_OUT
            elif patience == 0 and value >= before:
                ending = STALLED
            else:
                ending = UNDECIDED
            if ending != UNDECIDED:
                break
            of_g = math.sqrt(inner(V, SKEW, SKEW))
            of_D = math.sqrt(inner(V, D, D)) if right else 1.0
            rounding = EPS * (math.sqrt(inner(V, M, M)) + math.sqrt(inner(V, B, B)) * of_D)  # of g
            # a share of skew(B Z D), lest rounding decide how far a step goes where f is constant
            damping = min(1e-2, n * rounding / of_g)
            if bases is not None:
                apart = 0.0
                for i in range(n):
                    for j in range(n):
                        apart += (W[X, i, j] - bases[1, b, i, j]) ** 2
                if not apart <= 0.01 * inner(V, X, X):
                    ending = NEEDS_BASIS
                    break
                iterative_direction(W, V, s, right, damping)
            if H is not None:
                factored_direction(W, V, s, not (linear or right), damping, H)
            if not inner(V, SKEW, Z) < 0.0:
                combine(V, -1.0, SKEW, 0.0, SKEW, Z)
            ending = STALLED
            t = longest_step(W, V, s)
            level = 100.0 * EPS * math.sqrt(inner(V, G, G))
            slope = inner(V, SKEW, Z)
            for _ in range(TRIALS if of_g > rounding else 0):
                cayley_step(W, R, s, t)
                combine(V, 1.0, X, 1.0, STEP, X_NEW)
                new_value, new_norm = differentiate(W, V, s, right, X_NEW, G_NEW)
                change = 0.5 * (inner(V, G, STEP) + inner(V, G_NEW, STEP))
                if abs(t * slope) < level * math.sqrt(inner(V, STEP, STEP)):
                    accepted = abs(inner(V, SKEW, Z)) <= LARGEST_SLOPE * abs(slope)
                else:
                    accepted = change <= NEWTON_ARMIJO * t * slope
                if accepted:
                    ending = CONVERGED
                    break
                excess = change - t * slope
                best = -0.5 * slope * t * t / excess if excess > 0.0 else 0.5 * t
                t = min(max(best, 0.1 * t), 0.5 * t)
            if ending == STALLED:
                break
            combine(V, 1.0, X_NEW, 0.0, X, X)
            combine(V, 1.0, G_NEW, 0.0, G, G)
            before, value, norm = value, new_value, new_norm
            done += 1
        problems.value[b] = before if ending == NEEDS_BASIS else value
        problems.norm[b], problems.status[b], problems.iterations[b] = norm, ending, done
        for i in range(n):
            for j in range(n):
                problems.X[b, i, j] = W[X, i, j]


# -- called from Python


def renew_bases(problems: Quadratics, which: slice, X: np.ndarray) -> None:
    """Find eigenbases of B at the points X, any where B is not finite; nothing if none is used."""
    if problems.bases is None:
        return
    s, A = problems.signs, problems.A[which] if len(problems.A) > 1 else problems.A
    matrix = s[:, None] * (X.swapaxes(1, 2) @ (A @ X)) * s
    matrix[~np.isfinite(matrix).all((1, 2))] = 0.0
    for basis, one in zip(
        problems.bases[0, which], (matrix + matrix.swapaxes(1, 2)) / 2, strict=True
    ):
        basis[:] = dsyevr(one)[1]  # wakes no threads, as `numpy.linalg.eigh` does from n = 32 on
    problems.bases[1, which] = X


def minimize_quadratics(
    problems: Quadratics, first: int, last: int, rule: Rule, space: Workspace
) -> None:
    """Minimise the problems from ``first`` to ``last`` - 1 one after the other."""
    arrays = (rule, *space, problems.bases)
    if problems.bases is not None and np.isnan(problems.bases[1, first:last]).any():
        renew_bases(problems, slice(first, last), problems.X[first:last])
    minimize_range(problems, first, last, *arrays)
    for b in range(first, last):
        while problems.status[b] == NEEDS_BASIS:
            renew_bases(problems, slice(b, b + 1), problems.X[b : b + 1])
            minimize_range(problems, b, b + 1, *arrays)


def quadratics(
    A: np.ndarray, C: np.ndarray, D: np.ndarray, signs: np.ndarray, X: np.ndarray
) -> Quadratics:
    """Return the problems before they are solved; X is copied."""
    count = len(X)
    return Quadratics(
        np.ascontiguousarray(A),
        np.ascontiguousarray(C),
        np.ascontiguousarray(D),
        np.ascontiguousarray(signs, np.float64),
        np.array(X, np.float64, order="C"),
        bases=None if X.shape[1] <= DENSE else np.full((2, *X.shape), np.nan),
        value=np.full(count, np.nan),
        norm=np.full(count, np.nan),
        iterations=np.zeros(count, np.int64),
        status=np.full(count, UNFINISHED, np.int64),
    )
