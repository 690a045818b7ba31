"""Newton's method for f = 1/2 tr(X^T A X D) + <C, X> on O(p, q), compiled, for one problem or many.

Steps are X <- X cay(J Z) with Z skew. (They are the steps X <- cay(J S) X of the other methods with
S = J X J Z J X^T J, so Newton's method is the same in both.) With B = J X^T A X J, the gradient
g = skew(J X^T G) and the multiplier M = sym(J X^T G), the Hessian of Z -> f(X cay(J Z)) at 0 is

    Z -> skew(B Z D - J Z M).

It does not grow with ||X||. For few rows it is factored; beyond that, the system is solved by
conjugate gradients in an eigenbasis of B, where the first part is nearly diagonal. Decreases of f
are computed as <G + G', X - X'> / 2, so that they are accurate long after f itself no longer
changes.

The first call compiles, and takes longer for every line here, for every function that another one
calls, and for every kind of argument: so all arrays are contiguous, and helpers are few.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jorth._numba import compiler
from jorth.solvers.riemannian.line_search import LARGEST_SLOPE, LONGEST, NEWTON_ARMIJO, TRIALS

UNDECIDED, NEEDS_BASIS, UNFINISHED, CONVERGED, MAX_ITERATIONS, STALLED, FAR_OUT, NON_FINITE = range(
    -3, 5
)
"""How a problem ended. NEEDS_BASIS asks for an eigenbasis at X, after which it goes on."""
BASIS_OF = 10
"""The place in S of the point to which the basis belongs."""
DENSE = 10
"""The largest n whose Hessian is formed and factored."""
WRITTEN_OUT = 14
"""The largest n for which loops are faster than products by BLAS."""
EPS = 2.0**-52
PATIENCE = 20
"""Iterations without a smaller gradient norm after which a problem has stalled."""

summing = compiler(fastmath={"reassoc", "contract"}, nogil=True, internal=True)
compiled = compiler(fastmath={"contract"}, nogil=True)
part = compiler(fastmath={"contract"}, nogil=True, internal=True)


@part
def multiply(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """out <- a b."""
    n = len(a)
    if n > WRITTEN_OUT:
        np.dot(a, b, out)
        return
    for i in range(n):
        for j in range(n):
            out[i, j] = a[i, 0] * b[0, j]
        for k in range(1, n):
            for j in range(n):
                out[i, j] += a[i, k] * b[k, j]


@part
def combine(x: float, a: np.ndarray, y: float, b: np.ndarray, out: np.ndarray) -> None:
    """out <- x a + y b."""
    for i in range(len(a)):
        for j in range(len(a)):
            out[i, j] = x * a[i, j] + y * b[i, j]


@part
def transpose(a: np.ndarray, out: np.ndarray) -> None:
    """out <- a^T."""
    for i in range(len(a)):
        for j in range(len(a)):
            out[j, i] = a[i, j]


@summing
def inner(a: np.ndarray, b: np.ndarray) -> float:
    """Return <a, b>_F."""
    total = 0.0
    for i in range(len(a)):
        for j in range(len(a)):
            total += a[i, j] * b[i, j]
    return total


@part
def split(a: np.ndarray, s: np.ndarray, skew: np.ndarray, symmetric: np.ndarray) -> float:
    """Find the skew and the symmetric part of J a; return the norm of the skew part."""
    total = 0.0
    for i in range(len(a)):
        for j in range(i + 1):
            lower, upper = 0.5 * s[i] * a[i, j], 0.5 * s[j] * a[j, i]
            symmetric[i, j] = symmetric[j, i] = lower + upper
            skew[i, j], skew[j, i] = lower - upper, upper - lower
            total += (lower - upper) ** 2
    return math.sqrt(2.0 * total)


# Many arguments, as a tuple of arrays takes longer to compile.
@part
def look(
    A: np.ndarray,
    C: np.ndarray,
    D: np.ndarray,
    s: np.ndarray,
    right: bool,
    X: np.ndarray,
    XT: np.ndarray,
    G: np.ndarray,
    g: np.ndarray,
    M: np.ndarray,
    B: np.ndarray,
    P: np.ndarray,
    Q: np.ndarray,
) -> tuple[float, float]:
    """Find the derivatives at X; return f and ||skew(J G X^T)||_F."""
    multiply(A, X, Q)
    transpose(X, XT)
    multiply(XT, Q, P)
    for i in range(len(s)):
        for j in range(len(s)):
            B[i, j] = 0.5 * s[i] * s[j] * (P[i, j] + P[j, i])
    if right:
        multiply(Q, D, G)
    else:
        combine(1.0, Q, 0.0, Q, G)
    value = 0.5 * inner(G, X) + inner(C, X)
    multiply(G, XT, P)
    multiply(C, XT, Q)
    combine(1.0, P, 1.0, Q, P)
    norm = split(P, s, g, M)
    combine(1.0, G, 1.0, C, G)
    multiply(XT, G, P)
    split(P, s, g, M)
    return value, norm


# Fill, factor and solve in one: they share the loop over shifts, and H.
@summing
def factored_direction(
    D: np.ndarray,
    s: np.ndarray,
    right: bool,
    trace: bool,
    damping: float,
    g: np.ndarray,
    M: np.ndarray,
    B: np.ndarray,
    Z: np.ndarray,
    H: np.ndarray,
) -> None:
    """Z <- -H^-1 g; where H is not definite without M, and if need be with a shift.

    The row of (k, m) of H, k < m, holds the coefficients of the entry (P_km - P_mk) / 2 of the
    Hessian, and the last row is g: the Cholesky factorisation is then the forward substitution too.
    A trace does not change under rotations among equal signs: their slopes are zero and their
    curvatures of the size of ||g||^2, of either sign. A large weight holds them, as a step might
    go far along them and spoil the quadratic end.
    """
    n, d, of_B = len(s), H.shape[1], 0.0 if right else 1.0  # skew(B Z D) for D = I
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
                        value = 0.0
                        if right:
                            value = B[k, i] * D[m, j] - B[k, j] * D[m, i]
                            value += B[m, j] * D[k, i] - B[m, i] * D[k, j]
                        if i == k:
                            value += of_B * B[m, j] - weight * s[k] * M[m, j]
                        elif j == k:
                            value -= of_B * B[m, i] - weight * s[k] * M[m, i]
                        if j == m:
                            value += of_B * B[k, i] - weight * s[m] * M[k, i]
                        H[row, column] = 0.5 * value
                        column += 1
                largest = max(largest, abs(H[row, row]))
                H[row, row] += shift
                if trace and s[k] == s[m]:
                    H[row, row] += 1e16
                H[d, row] = -g[k, m]
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
        combine(-1.0, g, 0.0, g, Z)
        return
    for k in range(d - 1, -1, -1):
        H[d, k] /= H[k, k]
        for c in range(k):
            H[d, c] -= H[k, c] * H[d, k]
    row = 0
    for i in range(n):
        Z[i, i] = 0.0
        for j in range(i + 1, n):
            Z[i, j], Z[j, i] = H[d, row], -H[d, row]
            row += 1


# Conjugate gradients from top to bottom, with as many arrays as they have.
@summing
def iterative_direction(
    D: np.ndarray,
    s: np.ndarray,
    right: bool,
    damping: float,
    g: np.ndarray,
    M: np.ndarray,
    B: np.ndarray,
    Z: np.ndarray,
    P: np.ndarray,
    Q: np.ndarray,
    S: np.ndarray,
) -> None:
    """Z <- -H^-1 g by preconditioned conjugate gradients up to the first negative curvature.

    In the basis U the weights of the preconditioner are the diagonal of Z -> skew(B Z D), made
    positive. The norm of Z is at most sqrt(n): more would only be cut as a whole before the pole,
    and directions of negative curvature are followed as far as this.
    """
    n = len(s)
    U, UT, B_U, M_U, J_U, D_U, r, weights, p, Hp = (
        S[0],
        S[1],
        S[2],
        S[3],
        S[4],
        S[5],
        S[6],
        S[7],
        S[8],
        S[9],
    )
    for i in range(n):
        for j in range(n):
            P[i, j] = s[i] * U[i, j]
    multiply(UT, P, J_U)
    multiply(B, U, P)
    multiply(UT, P, B_U)
    multiply(M, U, P)
    multiply(UT, P, M_U)
    multiply(g, U, P)
    multiply(UT, P, r)
    if right:
        multiply(D, U, P)
        multiply(UT, P, D_U)
    else:
        combine(1.0, D, 0.0, D, D_U)
    largest = 0.0
    for i in range(n):
        for j in range(n):
            weights[i, j] = abs(0.5 * (B_U[i, i] * D_U[j, j] + B_U[j, j] * D_U[i, i]))
            largest = max(largest, weights[i, j])
    for i in range(n):
        for j in range(n):  # none may vanish
            weights[i, j] = max(weights[i, j], 1e-8 * largest) if largest > 0.0 else 1.0
    size = math.sqrt(inner(B, B) * (inner(D, D) if right else 1.0))
    relative = math.sqrt(inner(g, g)) / size if size > 0.0 else 1.0
    before = first = 0.0
    combine(0.0, g, 0.0, g, Z)
    combine(0.0, g, 0.0, g, p)
    for _ in range(500):
        weight = 0.0
        for i in range(n):
            for j in range(n):
                P[i, j] = r[i, j] / weights[i, j]
                weight += r[i, j] * P[i, j]
        if before == 0.0:
            first = before = weight
        elif not weight > min(0.1, relative) ** 2 * first:
            break
        combine(weight / before, p, -1.0, P, p)
        before = weight
        multiply(J_U, p, Q)
        multiply(Q, M_U, Hp)
        multiply(B_U, p, Q)
        if right:
            multiply(Q, D_U, P)
            combine(1.0, P, 0.0, P, Q)
        for i in range(n):
            for j in range(i + 1):
                entry = 0.5 * (Q[i, j] - Hp[i, j] - Q[j, i] + Hp[j, i])
                Hp[i, j] = entry + damping * weights[i, j] * p[i, j]
                Hp[j, i] = -Hp[i, j]
        curvature = inner(p, Hp)
        a, b, c = inner(p, p), inner(Z, p), inner(Z, Z) - n
        reach = 0.0  # the t >= 0 with ||Z + t p||_F^2 = n
        if a > 0.0 and c < 0.0:
            root = math.sqrt(b * b - a * c)
            reach = -c / (b + root) if b > 0.0 else (root - b) / a
        length = weight / curvature if curvature > 0.0 else math.inf
        combine(1.0, Z, min(length, reach), p, Z)
        if not length < reach:
            break
        combine(1.0, r, length, Hp, r)
    multiply(Z, UT, P)
    multiply(U, P, Z)


@part
def cayley_step(
    X: np.ndarray,
    Z: np.ndarray,
    s: np.ndarray,
    t: float,
    R: np.ndarray,
    Q: np.ndarray,
    step: np.ndarray,
) -> None:
    """step <- X (cay(t J Z) - I) = X (I - E / 2)^-1 E for E = t J Z, by elimination in R."""
    n = len(s)
    for i in range(n):
        for j in range(n):
            R[i, n + j] = t * s[i] * Z[i, j]
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
            Q[i, j] = R[i, n + j]
    multiply(X, Q, step)


@part
def longest_step(Z: np.ndarray, s: np.ndarray, P: np.ndarray, Q: np.ndarray) -> float:
    """Return the t up to 1 with which t Z keeps away from the pole of the Cayley transform.

    The norm of the boost part of Z is at most ||.||_F, and if that is large ||.^8||_F^(1/8).
    """
    for i in range(len(s)):
        for j in range(len(s)):
            P[i, j] = Z[i, j] if s[i] != s[j] else 0.0
    size = math.sqrt(0.5 * inner(P, P))
    if not size > LONGEST:
        return 1.0
    combine(1.0 / size, P, 0.0, P, Q)
    multiply(Q, Q, P)
    multiply(P, P, Q)
    multiply(Q, Q, P)
    size *= min(1.0, math.pow(inner(P, P), 0.0625))
    return min(1.0, LONGEST / size)


@part
def measure(
    X: np.ndarray, XT: np.ndarray, s: np.ndarray, P: np.ndarray, Q: np.ndarray
) -> tuple[float, float]:
    """Return max |X^T J X - J| / max(1, ||X||_2^2) and ||X||_2 to one per cent, by (X^T X)^64."""
    n = len(s)
    multiply(XT, X, P)
    logarithm, share = 0.0, 1.0
    for _ in range(7):
        size = math.sqrt(inner(P, P))
        logarithm += share * math.log(size)
        combine(1.0 / size, P, 0.0, P, Q)
        multiply(Q, Q, P)
        share *= 0.5
    norm = math.exp(0.5 * (logarithm - share * math.log(n) / 2.0))
    for i in range(n):
        for j in range(n):
            P[i, j] = s[i] * X[i, j]
    multiply(XT, P, Q)
    worst = 0.0
    for i in range(n):
        for j in range(n):
            worst = max(worst, abs(Q[i, j] - (s[i] if i == j else 0.0)))
    return worst / max(1.0, norm * norm), norm


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
    value: np.ndarray
    """(B,), that of f; NaN at first."""
    norm: np.ndarray
    """(B,), ||skew(J G X^T)||_F."""
    iterations: np.ndarray
    status: np.ndarray


class Rule(NamedTuple):
    """When a problem ends."""

    target: np.ndarray
    """(B,), ||skew(J G X^T)||_F that is small enough."""
    least_steps: int
    """At least so many are taken."""
    far: float
    """||X||_F^2 from which on f must not fall any further."""
    max_iterations: int
    stop: np.ndarray
    """(1,); another thread ends all problems where they are by setting it."""


# A problem from its start to its end in one function: every further one takes time to compile.
@compiled
def minimize_range(
    problems: Quadratics,
    first: int,
    last: int,
    rule: Rule,
    rows: np.ndarray,
    W: np.ndarray,
    R: np.ndarray,
    H: Any,
    S: Any,
) -> None:
    """Minimise the problems from ``first`` to ``last`` - 1, until one needs a basis.

    H is None where conjugate gradients find the directions and S where factors do, so that only one
    of them is compiled. A row of ``rows``, which may be empty, takes the decrease of f in a step,
    and then the gradient norm, the violation and ||X||_2 after it.
    """
    s, n = problems.signs, len(problems.signs)
    linear, right = problems.C.shape[2] > 0, problems.D.shape[1] > 0
    A, C, D, X, G, XT, g, M, B, Z = W[0], W[1], W[2], W[3], W[4], W[5], W[6], W[7], W[8], W[9]
    X_new, G_new, step, P, Q = W[10], W[11], W[12], W[13], W[14]
    for b in range(first, last):
        own_A, own_C = b if len(problems.A) > 1 else 0, b if len(problems.C) > 1 else 0
        for i in range(n):
            for j in range(n):
                X[i, j], A[i, j] = problems.X[b, i, j], problems.A[own_A, i, j]
                C[i, j] = problems.C[own_C, i, j] if linear else 0.0
                D[i, j] = problems.D[i, j] if right else (1.0 if i == j else 0.0)
        value, norm = look(A, C, D, s, right, X, XT, G, g, M, B, P, Q)
        steps = problems.iterations[b]
        before, least, patience = problems.value[b], math.inf, PATIENCE
        far = max(rule.far, 100.0 * inner(X, X))
        while True:
            patience = PATIENCE if norm < least else patience - 1
            least = min(least, norm)
            if not math.isfinite(value + norm):
                ending = NON_FINITE
            elif norm <= rule.target[b] and steps >= rule.least_steps:
                ending = CONVERGED
            elif steps == rule.max_iterations:
                ending = MAX_ITERATIONS
            elif rule.stop[0] != 0:
                ending = UNFINISHED
            elif inner(X, X) > far and value < before:
                ending = FAR_OUT
            elif patience == 0 and value >= before:
                ending = STALLED
            else:
                ending = UNDECIDED
            if ending != UNDECIDED:
                break
            of_g, of_D = math.sqrt(inner(g, g)), math.sqrt(inner(D, D)) if right else 1.0
            rounding = EPS * (math.sqrt(inner(M, M)) + math.sqrt(inner(B, B)) * of_D)  # that of g
            # a share of skew(B Z D), lest rounding decide how far a step goes where f is constant
            damping = min(1e-2, n * rounding / of_g)
            if S is not None:
                combine(1.0, X, -1.0, S[BASIS_OF], P)
                if not inner(P, P) <= 0.01 * inner(X, X):
                    ending = NEEDS_BASIS
                    break
                iterative_direction(D, s, right, damping, g, M, B, Z, P, Q, S)
            if H is not None:
                factored_direction(D, s, right, not (linear or right), damping, g, M, B, Z, H)
            if not inner(g, Z) < 0.0:
                combine(-1.0, g, 0.0, g, Z)
            ending = STALLED
            t = longest_step(Z, s, P, Q)
            level = 100.0 * EPS * math.sqrt(inner(G, G))
            slope = inner(g, Z)
            for _ in range(TRIALS if of_g > rounding else 0):
                cayley_step(X, Z, s, t, R, Q, step)
                combine(1.0, X, 1.0, step, X_new)
                new_value, new_norm = look(A, C, D, s, right, X_new, XT, G_new, g, M, B, P, Q)
                change = 0.5 * (inner(G, step) + inner(G_new, step))
                if abs(t * slope) < level * math.sqrt(inner(step, step)):
                    accepted = abs(inner(g, Z)) <= LARGEST_SLOPE * abs(slope)
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
            combine(1.0, X_new, 0.0, X, X)
            combine(1.0, G_new, 0.0, G, G)
            before, value, norm = value, new_value, new_norm
            steps += 1
            if steps <= len(rows):
                row = rows[steps - 1]
                row[0], row[1] = -change, norm
                row[2], row[3] = measure(X, XT, s, P, Q)
        problems.value[b] = before if ending == NEEDS_BASIS else value
        problems.norm[b], problems.status[b], problems.iterations[b] = norm, ending, steps
        for i in range(n):
            for j in range(n):
                problems.X[b, i, j] = X[i, j]


# -- called from Python


class Workspace:
    """The arrays W, H and S of `minimize_range` for matrices (n, n), for one thread."""

    def __init__(self, n: int) -> None:
        d = n * (n - 1) // 2
        self.W = np.empty((15, n, n))
        self.R = np.empty((n, 2 * n))
        self.H = np.empty((d + 1, d)) if n <= DENSE else None
        self.S = None if n <= DENSE else np.full((11, n, n), np.nan)

    def renew_basis(self, problems: Quadratics, b: int, X: np.ndarray) -> None:
        """Find the eigenbasis of B at X; the identity if B is not finite."""
        S, s = self.S, problems.signs
        assert S is not None
        A = problems.A[b if len(problems.A) > 1 else 0]
        B = s[:, None] * (X.T @ (A @ X)) * s
        S[BASIS_OF] = X
        S[0] = np.linalg.eigh((B + B.T) / 2)[1] if np.isfinite(B).all() else np.eye(len(B))
        S[1] = S[0].T


def minimize_quadratics(
    problems: Quadratics, first: int, last: int, rule: Rule, rows: np.ndarray, space: Workspace
) -> None:
    """Minimise the problems from ``first`` to ``last`` - 1 one after the other."""
    arrays = (space.W, space.R, space.H, space.S)
    if space.S is None:
        minimize_range(problems, first, last, rule, rows, *arrays)
        return
    for b in range(first, last):
        if b > first:
            space.S[BASIS_OF] = np.nan
        minimize_range(problems, b, b + 1, rule, rows, *arrays)
        while problems.status[b] == NEEDS_BASIS:
            space.renew_basis(problems, b, problems.X[b])
            minimize_range(problems, b, b + 1, rule, rows, *arrays)


def scaled_quadratics(
    A: np.ndarray, C: np.ndarray, D: np.ndarray, signs: np.ndarray, X: np.ndarray
) -> tuple[Quadratics, np.ndarray]:
    """Return the problems divided by powers of two (B or 1,), and these.

    No product of their entries over- or underflows if X is of moderate size.
    """
    of_D = (float(power_of_two(D[None])[0]) if D.size else 0.0) or 1.0
    scale = power_of_two(A) * of_D
    if C.size:
        scale = np.maximum(scale, power_of_two(C))
    scale[~((scale > 0) & (scale < np.inf))] = 1.0
    divisor = scale[:, None, None]
    count = len(X)
    problems = Quadratics(
        np.ascontiguousarray(A / (divisor / of_D)),
        np.ascontiguousarray(C / divisor),
        np.ascontiguousarray(D / of_D),
        np.ascontiguousarray(signs, np.float64),
        np.array(X, np.float64, order="C"),
        value=np.full(count, np.nan),
        norm=np.full(count, np.nan),
        iterations=np.zeros(count, np.int64),
        status=np.full(count, UNFINISHED, np.int64),
    )
    return problems, scale


def power_of_two(matrices: np.ndarray) -> np.ndarray:
    """Return (B,): the power of two next to the largest entry of each; 0 for zero, inf or NaN."""
    largest = abs(matrices).max((1, 2), initial=0.0)
    size = np.ldexp(1.0, np.frexp(largest)[1].clip(-1000, 1000))
    return np.where((largest > 0) & (largest < np.inf), size, 0.0)
