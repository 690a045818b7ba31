"""Independent oracles for the plane problem: companion eigenvalues, dense grids, mpmath, values in
long double. And the engines, as functions of arrays with the same arguments."""

import inspect

import mpmath
import numpy as np
import torch

from jorth.plane import _numba, roots, solve_plane
from jorth.plane._numba import compiled, kronecker_step

LONG = np.longdouble


def lightcone_by_torch(A, B, C, D, positive=False):
    """u and the flag unbounded, of arrays."""
    a, b, c, d = (torch.from_numpy(np.array(t, dtype=float)) for t in (A, B, C, D))
    return tuple(t.numpy() for t in roots.lightcone(a, b, c, d, positive))


def lightcone_by_numba(A, B, C, D, positive=False):
    cases = zip(A, B, C, D, strict=True)
    answers = [_numba.lightcone(a, b, c, d, positive) for a, b, c, d in cases]
    return np.array([u for u, _ in answers]), np.array([flag for _, flag in answers])


def circle_by_torch(*coefficients):
    tensors = (torch.from_numpy(np.array(t, dtype=float)) for t in coefficients)
    return tuple(t.numpy() for t in roots.circle(*tensors))


def circle_by_numba(*coefficients):
    return np.array([_numba.circle(*case) for case in zip(*coefficients, strict=True)]).T


def kronecker(Y, A):
    return np.einsum("kac,kbd->kabcd", Y, A).reshape(-1, 4, 4)


def step_by_torch(P, Y, A, signs, *, theta=0.0, components="all"):
    """V, decrease and unbounded of the steps for P and Q = Y (x) A."""
    return solve_plane(P, kronecker(Y, A), signs, theta=theta, components=components)


def step_by_numba(P, Y, A, signs, *, theta=0.0, components="all"):
    return _steps(P, Y, A, signs[:, 0] != signs[:, 1], theta, components == "all")


@compiled
def _steps(P, Y, A, opposite, theta, all_components):
    count = P.shape[0]
    V, decrease, unbounded = np.empty((count, 2, 2)), np.empty(count), np.empty(count, np.bool_)
    for t in range(count):
        p, y, a = P[t], Y[t], A[t]
        plus, minus = y[0, 0] + 2 * y[0, 1] + y[1, 1], y[0, 0] - 2 * y[0, 1] + y[1, 1]
        step = kronecker_step(
            (p[0, 0], p[0, 1], p[1, 0], p[1, 1]), (y[0, 0], y[0, 1], y[1, 1], plus, minus),
            (a[0, 0], a[0, 1], a[1, 1]), theta, opposite[t], all_components,
        )  # fmt: skip
        V[t, 0, 0], V[t, 0, 1], V[t, 1, 0], V[t, 1, 1], decrease[t], unbounded[t] = step
    return V, decrease, unbounded


LIGHTCONES = {"torch": lightcone_by_torch, "numba": lightcone_by_numba}
CIRCLES = {"torch": circle_by_torch, "numba": circle_by_numba}
STEPS = {"torch": step_by_torch, "numba": step_by_numba}


def lightcone_terms(A, B, C, D, u):
    """The four terms of F in long double, whose range holds all of 1e-600 .. 1e600."""
    A, B, C, D, u = (np.asarray(value, dtype=LONG) for value in (A, B, C, D, u))
    return A * u, B / u, C * u * u, D / u / u


def lightcone_value(A, B, C, D, u):
    return sum(lightcone_terms(A, B, C, D, u))


def lightcone_scale(A, B, C, D, u):
    return sum(np.abs(term) for term in lightcone_terms(A, B, C, D, u))


def companion_candidates(A, B, C, D):
    """Real parts of the roots of 2 v^4 + al v^3 - be v - 2 (u = r v) by companion eigenvalues,
    and balances of terms.

    Shape (k, candidates), long double. Any real u is a candidate, so an inaccurate root only
    weakens the reference; the balances keep it strong where the coefficients differ by hundreds of
    orders of magnitude.
    """
    A, B, C, D = (np.asarray(value, dtype=LONG) for value in (A, B, C, D))
    r = np.sqrt(np.sqrt(D / C))
    al, be = A * r / np.sqrt(C * D), B / r / np.sqrt(C * D)
    matrix = np.zeros((len(A), 4, 4))
    matrix[:, 0, 0], matrix[:, 0, 2], matrix[:, 0, 3] = -al / 2, be / 2, 1
    matrix[:, 1, 0] = matrix[:, 2, 1] = matrix[:, 3, 2] = 1
    v = np.linalg.eigvals(matrix).real.astype(LONG)
    for _ in range(2):  # polish, where Newton is defined
        p = ((2 * v + al[:, None]) * v * v - be[:, None]) * v - 2
        slope = (8 * v + 3 * al[:, None]) * v * v - be[:, None]
        v = v - np.where(slope != 0, p / np.where(slope != 0, slope, 1), 0)
    balances = np.stack(
        [
            -A / (2 * C),
            -2 * D / B,
            np.sqrt(np.abs(B / A)),
            -np.sqrt(np.abs(B / A)),
            np.cbrt(B / (2 * C)),
            np.cbrt(-2 * D / A),
        ],
        axis=1,
    )
    candidates = np.concatenate([r[:, None] * v, balances, r[:, None], -r[:, None]], axis=1)
    return np.where(candidates == 0, r[:, None], candidates)


def best_lightcone(A, B, C, D, positive=False):
    """The least value over the candidates, in long double."""
    u = companion_candidates(A, B, C, D)
    A, B, C, D = (np.asarray(t)[:, None] for t in (A, B, C, D))
    value = lightcone_value(A, B, C, D, u)
    if positive:
        value = np.where(u > 0, value, np.inf)
    return value.min(axis=1)


def polynomial_roots(coefficients):
    """The roots by mpmath, highest power first;
    from version 1.4 on it asks for the lowest first."""
    options = dict(maxsteps=500, extraprec=400)
    if "asc" in inspect.signature(mpmath.polyroots).parameters:
        return mpmath.polyroots(coefficients[::-1], asc=True, **options)
    return mpmath.polyroots(coefficients, **options)


def mpmath_lightcone(A, B, C, D, positive=False, digits=60):
    """(best u, gap to the second best minimum, relative curvature) from the exact doubles,
    by mpmath's polyroots."""
    with mpmath.workdps(digits):
        A, B, C, D = map(mpmath.mpf, (A, B, C, D))
        roots = polynomial_roots([2 * C, A, 0, -B, -2 * D])
        real = [
            root.real
            for root in roots
            if abs(root.imag) < mpmath.mpf(10) ** (-digits // 2) * abs(root)
        ]
        real = [root for root in real if root > 0 or not positive]

        def value(u):
            return A * u + B / u + C * u * u + D / u / u

        def scale(u):
            return abs(A * u) + abs(B / u) + C * u * u + D / u / u

        ordered = sorted(real, key=value)
        best = ordered[0]
        curvature = (2 * B / best + 2 * C * best**2 + 6 * D / best**2) / scale(best)
        gap = (value(ordered[1]) - value(best)) / scale(best) if len(ordered) > 1 else mpmath.inf
        return best, float(gap), float(curvature)


def grid_circle(a, b, c, d, e, points=720):
    """The least value on a grid of angles, polished by Newton in long double. Shapes (k,)."""
    a, b, c, d, e = (np.asarray(value, dtype=LONG)[:, None] for value in (a, b, c, d, e))

    def value(t):
        x, y = np.cos(t), np.sin(t)
        return a * x + b * y + c * x * x + d * x * y + e * y * y

    t = np.linspace(-np.pi, np.pi, points, dtype=LONG)[None, :]
    t = np.take_along_axis(
        np.broadcast_to(t, (len(a), points)), value(t).argmin(axis=1)[:, None], axis=1
    )
    best = value(t)
    for _ in range(6):
        x, y = np.cos(t), np.sin(t)
        slope = b * x - a * y + d * (x * x - y * y) - 2 * (c - e) * x * y
        curvature = -a * x - b * y - 2 * (c - e) * (x * x - y * y) - 4 * d * x * y
        t = t - np.where(curvature > 0, slope / np.where(curvature > 0, curvature, 1), 0)
        best = np.minimum(best, value(t))
    return best[:, 0]


def surrogate(V, P, Q):
    """<V - I, P> + 1/2 ||V - I||^2_Q in long double,
    for V (..., 2, 2), P (..., 2, 2), Q (..., 4, 4)."""
    V, P, Q = (np.asarray(value, dtype=LONG) for value in (V, P, Q))
    step = V - np.eye(2)
    vector = step.swapaxes(-1, -2).reshape(*step.shape[:-2], 4)
    return (step * P).sum(axis=(-2, -1)) + 0.5 * np.einsum(
        "...a,...ab,...b->...", vector, Q, vector
    )


def family(name, x, y):
    """V of the four families, from their definition as matrices."""
    boost = np.stack([x, y, y, x], axis=-1).reshape(*x.shape, 2, 2)
    if name == "boost":
        return boost
    if name == "flip":
        return np.diag([-1, 1]) @ boost
    rotation = np.stack([x, -y, y, x], axis=-1).reshape(*x.shape, 2, 2)
    return rotation if name == "rotation" else rotation @ np.diag([1, -1])


def best_plane(P, Q, opposite, components, points=2001):
    """The least surrogate over all families: fine grids in the parameter,
    each refined around its best.

    P (k, 2, 2), Q (k, 4, 4), opposite (k,): knows nothing of light cones or secular equations.
    """
    result = np.empty(len(P), dtype=LONG)
    for t in range(len(P)):
        names = ("boost", "flip") if opposite[t] else ("rotation", "reflection")
        best = LONG(0)  # V = I
        for name in names if components == "all" else names[:1]:
            for sign in (1, -1) if opposite[t] and components == "all" else (1,):
                best = min(best, _search(name, sign, P[t], Q[t], opposite[t], points))
        result[t] = best
    return result


def _search(name, sign, P, Q, opposite, points):
    reach = LONG(8 if opposite else np.pi)

    def value(t):
        x, y = (np.cosh(t), np.sinh(t)) if opposite else (np.cos(t), np.sin(t))
        return surrogate(sign * family(name, x, y), P, Q)

    grid = np.linspace(-reach, reach, points, dtype=LONG)
    step = grid[1] - grid[0]
    centre = grid[value(grid).argmin()]
    for _ in range(8):  # shrink the window 100-fold each time
        window = np.linspace(centre - step, centre + step, 201, dtype=LONG)
        centre = window[value(window).argmin()]
        step = window[1] - window[0]
    return value(np.array([centre], dtype=LONG))[0]
