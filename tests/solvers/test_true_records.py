"""What random runs say of themselves, against plain NumPy in extended precision: value, gradient
norm, residual, component, status, counts. A run belongs to each number."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Status
from jorth.solvers import METHODS

RUNS, QUICK, PART = 500, 150, 50
"""Of the 500 runs the first 150 belong to the ordinary suite."""
WIDE = np.longdouble
SLACK = 300
"""Roundings of the norms that are summed: n k + m + 2 n is at most 110 here."""
THIN = [name for name, solver in METHODS.items() if solver.thin and name != "auto"]
MONOTONE = ("gs-jobcd", "riemannian-sd", "riemannian-cg", "riemannian-lbfgs")
LEAVES = ("umcm", "admm")
COORDINATES = {"components": ["start", "start", "all"], "theta": [None, None, 1e-3]}
OPTIONS = {
    "gs-jobcd": COORDINATES | {"side": ["left", "right"], "order": ["sweep", "random", "cyclic"]},
    "j-jobcd": COORDINATES | {"side": ["left", "right"], "rounds_per_gradient": [None, 1, 3]},
    "vr-j-jobcd": COORDINATES | {"probability": [None, 0.5, 1.0], "difference_batch": [None, 1]},
    "csdm": {"optimizer": ["lbfgs", "adam"]},
    "exponential": {"optimizer": ["lbfgs", "adam"]},
}
PHI = {
    # for NumPy and torch: phi, phi'; |phi''| is at most 1
    "square": (lambda z: z**2 / 2, lambda z: z),
    "huber": (lambda z: (1 + z**2) ** 0.5, lambda z: z / (1 + z**2) ** 0.5),
}


def wide(X):
    return np.asarray(X.detach().numpy() if isinstance(X, torch.Tensor) else X, dtype=WIDE)


def norm(M):
    return float(np.sqrt((wide(M) ** 2).sum()))


def norm2(X):
    return float(np.linalg.norm(wide(X).astype(float), 2))


class QuadraticFunction:
    """f(X) = 1/2 tr(X^T A X D) + <C, X>, and the sizes of the terms of f and of its gradient."""

    def __init__(self, A, C, D):
        self.A, self.C, self.D = wide(A), wide(C), wide(D)

    def value(self, X):
        return ((self.A @ X @ self.D / 2 + self.C) * X).sum()

    def gradient(self, X):
        return self.A @ X @ self.D + self.C

    def sizes(self, X):
        slope = norm(self.A) * norm(self.D) * norm(X) + norm(self.C)
        return slope * norm(X), slope


class RowsFunction:
    """f(X) = 1/m sum phi(S X - T) over all m k entries."""

    def __init__(self, S, T, phi):
        self.S, self.T, (self.phi, self.slope) = wide(S), wide(T), PHI[phi]

    def value(self, X):
        return self.phi(self.S @ X - self.T).sum() / len(self.S)

    def gradient(self, X):
        return self.S.T @ self.slope(self.S @ X - self.T) / len(self.S)

    def sizes(self, X):
        Z = norm(self.S) * norm(X) + norm(self.T) + self.T.size
        return Z**2 / len(self.S), norm(self.S) * Z / len(self.S)


def symmetric(rng, n, kind):
    M = rng.standard_normal((n, n))
    if kind == "indefinite":
        return (M + M.T) / 2
    M = M if kind == "definite" else M[:, : max(1, n // 2)]
    return M @ M.T / n + (0.2 * np.eye(n) if kind == "definite" else 0.0)


def random_problem(rng, n, k, dtype, summed):
    """Return an objective, the same as plain formulas, and whether it is bounded below."""
    kind = rng.choice(["procrustes", "sum"] if summed else ["quadratic", "procrustes", "function"])
    if kind == "quadratic":
        shapes = [rng.choice(["definite", "semidefinite", "indefinite"]) for _ in range(2)]
        A, D = symmetric(rng, n, shapes[0]).astype(dtype), np.eye(k, dtype=dtype)
        C = rng.standard_normal((n, k)).astype(dtype) * (rng.random() < 0.7)
        bounded = shapes[0] == "definite" or (shapes[0] == "semidefinite" and not C.any())
        parts = [A, C if C.any() else None, None]
        if rng.random() < 0.4:
            parts[2] = D = symmetric(rng, k, shapes[1]).astype(dtype)
            bounded &= shapes[1] == "definite"
        return jorth.Quadratic(*parts), QuadraticFunction(A, C, D), bounded, 0
    m = int(rng.integers(1, 3 * n + 3))
    S, T = rng.standard_normal((m, n)).astype(dtype), rng.standard_normal((m, k)).astype(dtype)
    phi = "square" if kind == "procrustes" else str(rng.choice(list(PHI)))
    rows, of = (torch.from_numpy(S), torch.from_numpy(T)), PHI[phi][0]
    if kind == "procrustes":
        objective = jorth.Procrustes(S, T)
    elif kind == "sum":
        objective = jorth.FiniteSum(lambda X, b: of(b[0] @ X - b[1]).sum() / len(b[0]), rows)
    else:
        objective = jorth.solvers.problem.as_objective(
            lambda X: of(rows[0] @ X - rows[1]).sum() / m
        )
    return objective, RowsFunction(S, T, phi), True, 0 if kind == "function" else m


def faults_of(number):
    """Run the problem of a number, and return what is untrue in its record."""
    rng = np.random.default_rng([number, 2026])
    n = int(rng.integers(1, 9))
    signs = rng.choice([1, -1], n) if rng.random() < 0.8 else np.full(n, rng.choice([1, -1]))
    sig, dtype = jorth.Signature.of(signs), np.float32 if rng.random() < 0.2 else np.float64
    unit, name = np.finfo(dtype).eps / 2, str(rng.choice(list(METHODS)))
    k = int(rng.integers(1, n)) if name in THIN and rng.random() < 0.25 and n > 1 else n
    objective, f, bounded, samples = random_problem(rng, n, k, dtype, name == "vr-j-jobcd")
    bounded |= abs(signs.sum()) == n
    drawn = OPTIONS.get(name, {})
    options = {key: choices[rng.integers(len(choices))] for key, choices in drawn.items()}
    if k < n:
        options.pop("side", None)
    cond = float(rng.choice([1.0, 3.0, 30.0] + [1e4, 1e8] * (dtype is np.float64)))
    part = tuple(int(rng.choice([1, -1])) if (signs == s).any() else 1 for s in (1, -1))
    x0 = jorth.random_point(sig, cond=cond, component=part, seed=rng, dtype=dtype)
    x0 = np.ascontiguousarray(x0[:, np.sort(rng.permutation(n)[:k])])
    few = name in ("gs-jobcd", "csdm", "exponential")
    most = int(rng.choice([0, 1, 3, 10, 20 if few else 150]))
    tolerance = float(rng.choice([0.0, 1e-6, 1e-3]))
    limits = {"max_iterations": most, "gradient_tolerance": tolerance}
    if rng.random() < 0.2:
        limits["max_evaluations"] = int(rng.integers(0, 12))
    if rng.random() < 0.05:
        limits["max_time"] = 0.0
    if rng.random() < 0.1:
        limits["callback"] = lambda X, row: row["iteration"] >= 2
    if rng.random() < 0.15:
        limits["on_unbounded"] = "continue"
    calls, evaluate = [], objective.value_and_gradient

    def counted(X):
        calls.append(X.shape)
        return evaluate(X)

    objective.value_and_gradient = counted
    start = x0.copy() if rng.random() < 0.7 else torch.from_numpy(x0.copy())
    result = jorth.minimize(
        objective, start, signature=sig, method=name, seed=number, **options, **limits
    )
    faults = []

    def expect(truth, what, *detail):
        if not truth:
            faults.append(f"{number} {name} {what}: {detail} {result.message}")

    # what was given is as it was, and x is of its kind
    X, first, history = wide(result.x), wide(x0), result.history
    expect((wide(start) == first).all(), "x0 was changed")
    expect(type(result.x) is type(start) and result.x.dtype == start.dtype, "kind of x")
    expect(X.shape == x0.shape and np.isfinite(X).all(), "x", X.shape)
    no_digits = norm2(X) >= unit**-0.5
    if name != "admm" and options.get("components") != "all" and k == n and not no_digits:
        expect(jorth.component(x0, sig) == jorth.component(result.x, sig), "component")

    # figures
    s, (value_size, slope_size) = wide(signs)[:, None], f.sizes(X)
    M = s * (f.gradient(X) @ X.T)
    value, slope = float(f.value(X)), norm(M - M.T) / 2
    expect(abs(value - result.value) <= SLACK * unit * value_size, "value", value, result.value)
    allowed = SLACK * unit * slope_size * norm(X)
    expect(abs(slope - result.gradient_norm) <= allowed, "slope", slope, result.gradient_norm)
    gram = first.T @ (s * first) if k < n else np.diag(wide(signs))
    residual = float(abs(X.T @ (s * X) - gram).max()) / max(1.0, norm2(X)) ** 2
    of_start = norm2(first) ** 2 / max(1.0, norm2(X)) ** 2 if k < n else 0.0
    allowed = (n + 10) * unit * (1 + of_start) + 0.03 * residual
    expect(abs(residual - result.residual) <= allowed, "residual", residual, result.residual)
    said = result.residual <= 1e3 * n * unit or "polish x" in result.message
    expect(said, "a large residual goes unsaid", result.residual)

    # the history, and the limits
    ends = [name for name in history if name.endswith("evaluations")]
    for column in ("time", "iteration", "pair_updates", *ends):
        expect((np.diff(history[column]) >= 0).all(), f"{column} falls")
    if "x is that of iteration" not in result.message:
        last = [history[column][-1] for column in ("value", "gradient_norm")]
        expect(last == [result.value, result.gradient_norm], "last row", last)
        if name not in LEAVES:
            expect(abs(history["norm"][-1] - norm2(X)) <= 0.01 * norm2(X), "norm")
    expect(history["iteration"][-1] == result.iterations <= most, "iterations")
    if name in MONOTONE:
        slack = SLACK * unit * (f.sizes(first)[0] + value_size)
        expect(result.value <= f.value(first) + slack, "f has risen", float(f.value(first)))
    count = result.evaluations
    spent = (count.sample_gradient / samples if samples else count.gradient) + count.hessian
    expect(spent <= limits.get("max_evaluations", np.inf) + (2 if samples else 1), "spent", spent)
    if "newton" not in result.method and name != "auto":
        expect(count.gradient == len(calls), "count", count, len(calls))

    # the status
    status = result.status
    truths = {
        Status.CONVERGED: result.gradient_norm <= tolerance * result.gradient_scale,
        Status.MAX_ITERATIONS: result.iterations == most,
        Status.MAX_EVALUATIONS: spent >= limits.get("max_evaluations", np.inf),
        Status.MAX_TIME: "max_time" in limits,
        Status.INTERRUPTED: "callback" in limits and result.iterations >= 2,
        Status.NON_FINITE: not bounded,
    }
    if status is Status.UNBOUNDED:
        lower = result.value < np.nanmin(history["value"][:-1], initial=np.inf)
        falls = (no_digits and lower) or falls_for_ever(f, X, signs, k == n)
        expect(not bounded and falls, "UNBOUNDED")
    expect(truths.get(status, True), "status", result.gradient_norm, result.gradient_scale)
    return faults


def falls_for_ever(f, X, signs, square):
    """Check that f falls far along a boost of two rows or columns of opposite signs, by 2^200."""
    bar = f.value(X) - 1e6 * (1 + abs(f.value(X)))
    for side in ("left", "right")[: 1 + square]:
        for i, j in zip(*np.nonzero(signs[:, None] > signs), strict=True):
            for u in (WIDE(2) ** -200, WIDE(2) ** 200, -(WIDE(2) ** -200), -(WIDE(2) ** 200)):
                Y = (X if side == "left" else X.T).copy()
                plus, minus = Y[i] + Y[j], Y[i] - Y[j]
                Y[i], Y[j] = (u * plus + minus / u) / 2, (u * plus - minus / u) / 2
                if f.value(Y if side == "left" else Y.T) < bar:
                    return True
    return False


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=pytest.mark.slow if first >= QUICK else ())
        for first in range(0, RUNS, PART)
    ],
)
def test_random_runs_say_what_is_true(first):
    faults = [fault for number in range(first, first + PART) for fault in faults_of(number)]
    assert not faults, "\n".join(faults)
