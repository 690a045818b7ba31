"""Random problems, methods, options, starts and limits for `jorth.minimize`,
each from one number."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
import torch

import jorth
from jorth.solvers import METHODS
from tests.solvers.recomputed import QuadraticFunction, RowsFunction

THIN = [name for name, solver in METHODS.items() if solver.thin and name != "auto"]


@dataclass
class Calls:
    """What a counting wrapper has seen of an objective."""

    value: int = 0
    gradient: int = 0
    sample_gradient: int = 0
    not_finite: bool = False
    inside: bool = False


@dataclass
class RandomRun:
    """All arguments of a run, what is known of its objective,
    and the calls that were made to it."""

    objective: Any
    function: Any
    signs: np.ndarray
    x0: Any
    dtype: type
    bounded: bool
    samples: int
    method: Any
    arguments: dict
    name: str
    calls: Calls
    data: list
    keeps_component: bool
    sides: tuple
    known: dict = field(default_factory=dict)


def counting(objective, calls):
    """The same objective, of a class of its own that counts the calls from outside."""

    def counted(name, add):
        inner = getattr(type(objective), name)

        def method(self, *args):
            if calls.inside:
                return inner(self, *args)
            calls.inside = True
            try:
                found = inner(self, *args)
            finally:
                calls.inside = False
            add(args)
            parts = found if isinstance(found, tuple) else (found,)
            calls.not_finite |= not all(bool(torch.isfinite(part).all()) for part in parts)
            return found

        return method

    def add_both(args):
        calls.value += 1
        calls.gradient += 1
        calls.sample_gradient += objective.samples

    def add_value(args):
        calls.value += 1

    def add_samples(args, points):
        calls.sample_gradient += points * len(args[-1])

    methods = {
        "value_and_gradient": counted("value_and_gradient", add_both),
        "value": counted("value", add_value),
        "sample_gradient": counted("sample_gradient", lambda args: add_samples(args, 1)),
        "sample_difference": counted("sample_difference", lambda args: add_samples(args, 2)),
    }
    objective.__class__ = type("Counted", (type(objective),), methods)
    return objective


def counting_function(function, calls):
    """A torch function of X that counts: with a graph it is asked for a gradient too."""

    def counted(X):
        calls.value += 1
        calls.gradient += int(X.requires_grad)
        value = function(X)
        calls.not_finite |= not bool(torch.isfinite(value))
        return value

    return counted


def random_run(number):
    """The run of that number."""
    rng = np.random.default_rng([number, 2024])
    n = int(rng.integers(1, 9))
    signs = rng.choice([1, -1], n) if rng.random() < 0.8 else np.full(n, rng.choice([1, -1]))
    dtype = np.float32 if rng.random() < 0.2 else np.float64
    name = str(rng.choice(list(METHODS)))
    thin = name in THIN and rng.random() < 0.25 and n > 1
    k = int(rng.integers(1, n)) if thin else n
    summed = name == "vr-j-jobcd"
    calls = Calls()
    problem = _problem(rng, n, k, dtype, summed, calls)
    solver = _solver(rng, name, thin, problem)
    stays = solver.name != "admm" and getattr(solver, "components", "start") == "start"
    run = RandomRun(
        signs=signs, x0=_start(rng, signs, k, dtype, problem), dtype=dtype, method=solver,
        arguments={}, name=name, calls=calls, keeps_component=stays and not thin,
        sides=("left",) if thin else ("left", "right"), **problem,
    )  # fmt: skip
    run.bounded = run.bounded or abs(int(signs.sum())) == n
    run.arguments = _limits(rng, run)
    return run


def _start(rng, signs, k, dtype, problem):
    n = len(signs)
    states_its_dtype = getattr(problem["objective"], "data", lambda: None)() is not None
    if k == n and rng.random() < 0.3 and (states_its_dtype or dtype is np.float64):
        return None
    sig = jorth.Signature.of(signs)
    conditions = [1.0, 3.0, 30.0, 1e4, 1e8] if dtype is np.float64 else [1.0, 3.0, 30.0]
    cond = float(rng.choice(conditions))
    part = tuple(int(rng.choice([1, -1])) if (signs == s).any() else 1 for s in (1, -1))
    X = jorth.random_point(sig, cond=cond, component=part, seed=rng, dtype=dtype)
    X = np.ascontiguousarray(X[:, np.sort(rng.permutation(n)[:k])])
    return torch.from_numpy(X) if rng.random() < 0.3 else X


def _symmetric(rng, n, kind):
    M = rng.standard_normal((n, n))
    if kind == "definite":
        return M @ M.T / n + 0.2 * np.eye(n)
    if kind == "semidefinite":
        return M[:, : max(1, n // 2)] @ M[:, : max(1, n // 2)].T
    return (M + M.T) / 2


def _sparse_sometimes(rng, M):
    return scipy.sparse.csr_matrix(M) if rng.random() < 0.3 and M.dtype == np.float64 else M


def _problem(rng, n, k, dtype, summed, calls):
    """An objective, the same as plain formulas,
    whether it is bounded below on all of O(p, q), its data."""
    kinds = ["procrustes", "finite sum"] if summed else ["quadratic"] * 3 + [
        "eigenvalue", "eigenvalue data", "eigenvalue data", "procrustes", "finite sum",
        "autograd", "numpy", "barrier",
    ]  # fmt: skip
    kind = str(rng.choice(kinds))
    if kind.startswith("eigenvalue"):
        return _eigenvalue(rng, n, dtype, kind, calls)
    if kind == "quadratic" or (kind in ("autograd", "numpy") and rng.random() < 0.3):
        return _quadratic(rng, n, k, dtype, kind, calls)
    return _rows(rng, n, k, dtype, kind, calls)


def _eigenvalue(rng, n, dtype, kind, calls):
    sense = "max" if rng.random() < 0.2 else "min"
    factor = 2 if sense == "min" else -2
    if kind == "eigenvalue":
        data = _symmetric(rng, n, "definite").astype(dtype)
        data = (data + data.T) / 2
        objective = jorth.HyperbolicEigenvalue(A=data, sense=sense)
        function = QuadraticFunction(factor * data.astype(np.longdouble))
    else:
        data = rng.standard_normal((int(rng.integers(1, 2 * n + 2)), n)).astype(dtype)
        if rng.random() < 0.5:  # whole planes of the light cone on which f vanishes
            data = rng.integers(-1, 2, (int(rng.integers(1, 3)), n)).astype(dtype)
        exact = data.astype(np.longdouble)
        size = 2 * abs(exact).T @ abs(exact)
        function = QuadraticFunction(factor * exact.T @ exact, size_of_A=size, terms=len(data))
        objective = jorth.HyperbolicEigenvalue(data=_sparse_sometimes(rng, data), sense=sense)
    return dict(
        objective=counting(objective, calls), function=function, bounded=sense == "min", samples=0,
        data=[data],
    )  # fmt: skip


def _quadratic(rng, n, k, dtype, kind, calls):
    shape = str(rng.choice(["definite", "semidefinite", "indefinite"]))
    A = _symmetric(rng, n, shape).astype(dtype)
    A = (A + A.T) / 2
    C = rng.standard_normal((n, k)).astype(dtype) if rng.random() < 0.7 else None
    D = None
    definite_D = bool(rng.random() < 0.6)
    if rng.random() < 0.4:
        D = _symmetric(rng, k, "definite" if definite_D else "indefinite").astype(dtype)
        D = (D + D.T) / 2
    bounded = shape == "definite" or (shape == "semidefinite" and C is None)
    bounded = bounded and (D is None or definite_D)
    function = QuadraticFunction(A, C, D)
    if kind == "quadratic":
        objective = counting(jorth.Quadratic(A, C, D), calls)
    elif kind == "numpy":
        objective = counting(_numpy_objective(function), calls)
    else:
        tensors = [None if M is None else torch.from_numpy(M) for M in (A, C, D)]

        def value(X, A=tensors[0], C=tensors[1], D=tensors[2]):
            AX = A @ X if D is None else A @ X @ D
            return (X * AX).sum() / 2 + (0.0 if C is None else (C * X).sum())

        objective = counting_function(value, calls)
    data = [M for M in (A, C, D) if M is not None]
    return dict(objective=objective, function=function, bounded=bounded, samples=0, data=data)


def _numpy_objective(function):
    def plain(X):
        return np.asarray(X, dtype=np.longdouble)

    return jorth.Objective(
        value=lambda X: float(function.value(plain(X))),
        gradient=lambda X: np.asarray(function.gradient(plain(X)), dtype=X.dtype),
    )


TORCH = {
    "square": lambda z: z**2 / 2,
    "quartic": lambda z: z**4 / 4,
    "huber": lambda z: torch.sqrt(1 + z**2),
    "barrier": lambda z: z**2 / 2 - torch.log(9 - z**2),
}


def _rows(rng, n, k, dtype, kind, calls):
    m = int(rng.integers(1, 3 * n + 3))
    S, T = rng.standard_normal((m, n)).astype(dtype), rng.standard_normal((m, k)).astype(dtype)
    scalar = str(rng.choice(["square", "quartic", "huber"]))
    if kind == "procrustes":
        scalar = "square"
    if kind == "barrier":  # entries of X itself, within bounds
        scalar, m = "barrier", n
        S, T = np.eye(n, dtype=dtype), np.zeros((n, k), dtype=dtype)
    function = RowsFunction(S, T, scalar, compressed=kind == "procrustes")
    phi = TORCH[scalar]
    if kind == "procrustes":
        objective = counting(jorth.Procrustes(_sparse_sometimes(rng, S), T), calls)
    elif kind == "finite sum":
        objective = counting(
            jorth.FiniteSum(lambda X, b: phi(b[0] @ X - b[1]).sum() / len(b[0]), (S, T)), calls
        )
    elif kind == "numpy":
        objective = counting(_numpy_objective(function), calls)
    else:
        tensors = torch.from_numpy(S), torch.from_numpy(T)
        objective = counting_function(lambda X: phi(tensors[0] @ X - tensors[1]).sum() / m, calls)
    samples = m if kind in ("procrustes", "finite sum") else 0
    return dict(objective=objective, function=function, bounded=True, samples=samples, data=[S, T])


def _solver(rng, name, thin, problem):
    draw = {key: choices[int(rng.integers(len(choices)))] for key, choices in OPTIONS[name].items()}
    draw = {key: value for key, value in draw.items() if value is not None}
    if thin and draw.get("side") == "right":
        draw["side"] = "left"
    other = draw.get("side") == "right" or draw.get("order", "sweep") != "sweep"
    if other or "rounds_per_gradient" in draw or draw.get("curvature") == "per-plane":
        draw.pop("accelerate", None)
    if name == "vr-j-jobcd" and rng.random() < 0.3:
        draw["batch"] = int(rng.integers(1, problem["samples"] + 1))
    return METHODS[name](**draw)


COORDINATES = {"components": ["start", "start", "all"], "theta": [None, None, 1e-3]}
OPTIONS: dict[str, dict[str, list]] = {
    "auto": {},
    "gs-jobcd": COORDINATES
    | {
        "side": ["left", "right"],
        "order": ["sweep", "sweep", "random", "cyclic"],
        "accelerate": [False, True],
    },
    "j-jobcd": COORDINATES
    | {
        "side": ["auto", "left", "right"],
        "accelerate": [False, True],
        "rounds_per_gradient": [None, 1, 3],
        "curvature": ["auto", "auto", "auto", "per-plane"],
    },
    "vr-j-jobcd": COORDINATES
    | {
        "side": ["auto", "left", "right"],
        "probability": [None, None, 0.5, 1.0],
        "difference_batch": [None, 1],
    },
    "umcm": {},
    "admm": {},
    "csdm": {"optimizer": ["lbfgs", "adam"]},
    "exponential": {"optimizer": ["lbfgs", "adam"]},
} | {f"riemannian-{name}": {} for name in ("sd", "cg", "lbfgs", "newton")}


def _limits(rng, run):
    """Iterations always; evaluations, tolerances, a criterion, a callback sometimes."""
    dear = run.name == "gs-jobcd" and getattr(run.objective, "quadratic", lambda: None)() is None
    few = dear or run.name in ("csdm", "exponential")
    arguments = {
        "max_iterations": int(rng.choice([0, 1, 3, 10, 20 if few else 150, 40 if few else 300])),
        "seed": int(rng.integers(1000)),
    }
    arguments["gradient_tolerance"] = float(rng.choice([0.0, 1e-6, 1e-6, 1e-3]))
    if rng.random() < 0.2:
        arguments["max_evaluations"] = int(rng.integers(0, 12))
    if rng.random() < 0.05:
        arguments["max_time"] = 0.0
    if rng.random() < 0.15:
        arguments["on_unbounded"] = "continue"
    chance = rng.random()
    if chance < 0.05:
        run.known["target"] = float(rng.normal())
        arguments["stop"] = jorth.stopping.ValueBelow(run.known["target"])
    elif chance < 0.1:
        run.known["decrease"] = 1e-3
        arguments["stop"] = jorth.stopping.RelativeDecrease(1e-3, window=2)
    elif chance < 0.13:
        run.known["norm"] = 20.0
        arguments["stop"] = jorth.stopping.NormAbove(20.0)
    if rng.random() < 0.05:
        run.known["callback"] = 2
        arguments["callback"] = lambda X, row: row["iteration"] >= 2
    return arguments
