"""Objectives, minimize, procrustes, criticality, stopping and the solver classes:
right calls and their answers."""

from __future__ import annotations

import numpy as np
import torch

import jorth
from jorth import Signature, Status, stopping
from tests.fuzz.calls import Call
from tests.fuzz.mutations import As
from tests.fuzz.oracles import (
    as_tensor,
    close,
    exact,
    feasible,
    rough,
    same_kind,
    signs,
    size,
    turned,
)


def own_signature(n):
    """Signs in turn."""
    return Signature.of([1, -1] * (n // 2) + [1] * (n % 2))


SIG = own_signature(4)
N = SIG.n
STEPS = 2
"""Iterations of every run."""


# -- right arguments


def definite(rng):
    M = rng.standard_normal((N, N))
    return M @ M.T + np.eye(N)


def rows(rng, m=7):
    return rng.standard_normal((m, N))


def quadratic(A):
    """1/2 tr(X^T A X) as a function of a tensor."""
    matrix = torch.from_numpy(A)
    return lambda X: (X * (matrix.to(X) @ X)).sum() / 2


def weighted(X, batch):
    """A function of any batch: what it raises would be its own fault."""
    rows = batch[0] if isinstance(batch, tuple) else batch
    return X.square().sum() * (1 + rows.to(X).abs().mean())


def start(rng):
    return jorth.random_point(SIG, cond=2.0, seed=rng)


def solved(objective, **options):
    """A short run; of an objective that goes with another signature or a thin X, with these."""
    n, k = objective.shape()
    if k is not None and k > n:
        return None  # there is no X of that shape
    own = dict(signature=SIG if n is None else own_signature(n), max_iterations=STEPS)
    if k is not None and k < n:
        own["x0"] = torch.eye(n, k).to(objective.data())
    return jorth.minimize(objective, **own | options)


# -- right answers


def check_result(result, given):
    """The point is feasible and what is said about it is so, whatever came of the run."""
    if result is None:
        return
    if isinstance(result, jorth.BatchResult):
        check_batch(result)
        return
    x, x0 = exact(result.x), given.get("x0")
    signature = given.get("signature") or own_signature(len(x))
    gram = np.diag(signs(signature))[: x.shape[1], : x.shape[1]]
    if x0 is not None:
        gram = turned(exact(x0)) @ (signs(signature)[:, None] * exact(x0))
    feasible(result.x, signature, gram)
    assert result.residual <= 1e-6
    assert result.success == (result.status is Status.CONVERGED)
    if result.status is not Status.NON_FINITE:
        assert np.isfinite(result.value), "a value that is not finite"
        assert np.isfinite(result.gradient_norm), "a gradient that is not finite"


def check_batch(result):
    """The same of every problem of a batch."""
    for one in result:
        feasible(one.x, result.signature, np.diag(signs(result.signature)))
        if one.status is not Status.NON_FINITE:
            assert np.isfinite(one.value), "a value that is not finite"


def check_same_value(value_of):
    """`check_result`, and the value is that of the point, recomputed in long double."""

    def check(result, given):
        check_result(result, given)
        if isinstance(result, jorth.Result) and result.status is not Status.NON_FINITE:
            value, scale = value_of(exact(result.x), given)
            close(result.value, value, scale, 10 * rough(result.x))

    return check


def quadratic_value(x, given):
    A = exact(given["A"])
    D = np.eye(x.shape[1]) if given.get("D") is None else exact(given["D"])
    C = np.zeros_like(x) if given.get("C") is None else exact(given["C"])
    value = (x * (A @ x @ D)).sum() / 2 + (C * x).sum()
    return value, N**2 * (size(A) * size(D) * size(x) ** 2 + size(C) * size(x))


def eigenvalue_value(x, given):
    A = exact(given["data"]).T @ exact(given["data"]) if given["A"] is None else exact(given["A"])
    value = (x * (A @ x)).sum()
    return value if given["sense"] == "min" else -value, N**2 * size(A) * size(x) ** 2


def procrustes_value(x, given):
    S, T = exact(_dense(given["source"])), exact(given["target"])
    value = ((S @ x - T) ** 2).sum() / (2 * len(T))
    return value, N * (size(S) * size(x) + size(T)) ** 2


def _dense(matrix):
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix


def check_gradient(result, given):
    same_kind(result, given["X"])
    x, g, s = exact(given["X"]), exact(given["G"]), signs(given["signature"])
    M = s[:, None] * (g @ turned(x))
    wanted = s[:, None] * ((M - turned(M)) / 2 @ x)
    close(result, wanted, N**2 * size(g) * size(x) ** 2, rough(result))


def check_multiplier(result, given):
    same_kind(result, given["X"])
    x, g, s = exact(given["X"]), exact(given["G"]), signs(given["signature"])
    M = s[:, None] * (turned(x) @ g)
    close(result, (M + turned(M)) / 2, N * size(g) * size(x), rough(result))


def check_stationarity(result, given):
    pairs = given["signature"].n * (given["signature"].n - 1) // 2
    assert result.pairs == (pairs if given["pairs"] is None else given["pairs"])
    assert result.value >= 0, "NaN"  # infinite where a plane has no minimiser, as documented
    assert result.standard_error >= 0, "NaN"


def check_hessian(result, given):
    assert result.kind in ("minimum", "degenerate", "saddle", "not critical")
    assert result.direction.shape == np.shape(given["X"])
    for name in ("smallest", "error", "tolerance", "rounding", "gradient_norm", "scale"):
        assert not np.isnan(getattr(result, name)), "NaN"
    assert 0 <= result.rounding <= result.tolerance
    assert str(result)


def at(rng):
    as_torch = bool(rng.integers(2))
    X, G = start(rng), rng.standard_normal((N, N))
    if as_torch:
        return dict(X=torch.from_numpy(X), G=torch.from_numpy(G), signature=SIG)
    return dict(X=X, G=G, signature=SIG)


def stationarity(rng):
    return dict(
        objective=As("function", jorth.Quadratic(definite(rng))),
        X=start(rng),
        signature=SIG,
        theta=1e-5,
        pairs=As("count", 3),
        curvature=As("number", None),
        seed=0,
    )


def hessian(rng):
    quadratic = jorth.Quadratic(definite(rng), rng.standard_normal((N, N)))
    return dict(objective=As("function", quadratic), X=start(rng), signature=SIG, max_products=100)


# -- the calls


def run(name, function, arguments, check=check_result):
    """A call that gives a `Result`: the status says whether value and gradient are finite."""
    return Call(f"jorth.{name}", function, arguments, check, non_finite=True)


def at_point(objective):
    """A short run of an objective made from the arguments."""
    return lambda **given: solved(objective(**given))


def by_solver(solver):
    """A short run on a finite sum with a solver made from the arguments."""
    data = np.random.default_rng(0).standard_normal((9, N))
    target = np.random.default_rng(1).standard_normal((9, N))
    return lambda **given: solved(jorth.Procrustes(data, target), method=solver(**given))


def by_criterion(criterion):
    """A short run with a stopping criterion made from the arguments."""
    A = definite(np.random.default_rng(0))
    return lambda **given: solved(jorth.Quadratic(A), stop=criterion(**given), max_iterations=12)


OPTIONS = dict(
    max_iterations=STEPS,
    max_time=As("number", 5.0),
    max_evaluations=As("count", 30),
    gradient_tolerance=1e-6,
    stop=As("other", None),
    seed=0,
    callback=As("function", None),
    progress=False,
    checkpoint=As("path", None),
    checkpoint_interval=10.0,
    on_unbounded="stop",
)

METHODS = (
    "gs-jobcd",
    "j-jobcd",
    "accelerated-gs-jobcd",
    "accelerated-j-jobcd",
    "umcm",
    "admm",
    "csdm",
    "exponential",
    "riemannian-cg",
    "riemannian-lbfgs",
    "riemannian-newton",
)


def minimize_arguments(rng):
    objective = jorth.Quadratic(definite(rng))
    method = METHODS[rng.integers(len(METHODS))]
    return (
        dict(objective=As("function", objective), x0=start(rng), signature=SIG, method=method)
        | OPTIONS
    )


def procrustes_arguments(rng):
    own = dict(
        source=rows(rng),
        target=rows(rng),
        signature=SIG,
        x0=As("array", start(rng)),
        components="all",
        starts=1,
    )
    return own | dict(
        method="riemannian-lbfgs", gradient_tolerance=As("number", 1e-6), max_iterations=STEPS
    )


def probe_arguments(rng):
    X = rows(rng)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    return dict(
        data=X,
        distances=distances,
        signature=SIG,
        alpha=1.0,
        order="transform-lift",
        scale=1.0,
        ridge=0.01,
        zero_rows="error",
    )


def probed(**given):
    found = jorth.StructuralProbe(**given)
    return jorth.minimize(
        found, max_iterations=STEPS, method="riemannian-lbfgs", x0=random_start(found)
    )


def random_start(objective):
    point = jorth.random_point(objective.signature, cond=1.1, seed=0)
    return torch.from_numpy(point).to(objective.data())


def plain(A):
    """The value and the gradient of a quadratic as NumPy functions."""
    return dict(value=lambda X: float((X * (A @ X)).sum() / 2), gradient=lambda X: A @ X)


SOLVERS = {
    jorth.GaussSeidel: dict(
        side="left",
        components="start",
        order="sweep",
        theta=As("number", 1e-3),
        curvature=As("number", "auto"),
        block_size=As("count", "auto"),
    ),
    jorth.Jacobi: dict(
        side="auto",
        components="start",
        matching="random",
        rounds_per_gradient=As("count", 2),
        theta=As("number", 1e-3),
        curvature=As("number", "auto"),
        angle=0.04,
        majoriser="rows",
    ),
    jorth.AcceleratedGaussSeidel: dict(
        components="start",
        theta=As("number", 1e-3),
        curvature=As("number", "auto"),
        memory=3,
        frame="balanced",
        block_size=As("count", "auto"),
    ),
    jorth.AcceleratedJacobi: dict(
        components="start",
        theta=As("number", 1e-3),
        curvature=As("number", "auto"),
        memory=3,
        frame="balanced",
    ),
    jorth.VarianceReduced: dict(
        side="auto",
        batch=As("count", 5),
        difference_batch=As("count", 2),
        probability=As("number", 0.5),
        safety=2.0,
        angle=0.02,
    ),
    jorth.UMCM: dict(beta=As("number", 1.0)),
    jorth.ADMM: dict(penalty=As("number", 1.0)),
    jorth.CSDM: dict(
        optimizer="adam", learning_rate=As("number", 0.01), memory=5, rebase=As("count", 2)
    ),
    jorth.Exponential: dict(
        optimizer="adam", learning_rate=As("number", 0.01), memory=5, rebase=As("count", 2)
    ),
    jorth.RiemannianSD: dict(preconditioner="auto"),
    jorth.RiemannianCG: dict(preconditioner="auto"),
    jorth.RiemannianLBFGS: dict(preconditioner="auto", memory=As("count", 3)),
    jorth.RiemannianNewton: dict(preconditioner="auto"),
}

CRITERIA = {
    stopping.GradientNorm: dict(tolerance=0.1),
    stopping.RelativeGradient: dict(tolerance=0.1),
    stopping.RelativeDecrease: dict(tolerance=0.1, window=2),
    stopping.BlockStationary: dict(tolerance=0.1, every=2, pairs=As("count", 3)),
    stopping.ValueBelow: dict(target=3.0),
    stopping.NormAbove: dict(limit=5.0),
    stopping.MaxIterations: dict(limit=3),
}


CALLS = [
    run(
        "Quadratic",
        at_point(jorth.Quadratic),
        lambda rng: dict(A=as_tensor(definite(rng), rng), C=rows(rng, N), D=definite(rng)),
        check_same_value(quadratic_value),
    ),
    run(
        "HyperbolicEigenvalue",
        at_point(jorth.HyperbolicEigenvalue),
        lambda rng: dict(A=definite(rng), data=As("array", None), sense="min"),
        check_same_value(eigenvalue_value),
    ),
    run(
        "HyperbolicEigenvalue data",
        at_point(jorth.HyperbolicEigenvalue),
        lambda rng: dict(A=As("array", None), data=as_tensor(rows(rng), rng), sense="min"),
        check_result,
    ),
    run(
        "Procrustes",
        at_point(jorth.Procrustes),
        lambda rng: dict(source=rows(rng), target=as_tensor(rows(rng), rng)),
        check_same_value(procrustes_value),
    ),
    run(
        "FiniteSum",
        at_point(jorth.FiniteSum),
        lambda rng: dict(fn=As("function", weighted), data=as_tensor(rows(rng), rng)),
    ),
    run("Objective", at_point(jorth.Objective), lambda rng: plain(definite(rng))),
    run("StructuralProbe", probed, probe_arguments),
    run("minimize", jorth.minimize, minimize_arguments),
    run(
        "minimize function",
        jorth.minimize,
        lambda rng: dict(
            objective=quadratic(definite(rng)),
            x0=start(rng),
            signature=SIG,
            method="j-jobcd",
            max_iterations=STEPS,
        ),
    ),
    run("procrustes", jorth.procrustes, procrustes_arguments, check_same_value(procrustes_value)),
    Call("jorth.riemannian_gradient", jorth.riemannian_gradient, at, check_gradient),
    Call("jorth.multiplier", jorth.multiplier, at, check_multiplier),
    Call(
        "jorth.block_stationarity",
        jorth.block_stationarity,
        stationarity,
        check_stationarity,
        non_finite=True,
    ),
    Call(
        "jorth.block_stationarity with the gradient",
        jorth.block_stationarity,
        lambda rng: dict(**stationarity(rng), gradient=rng.standard_normal((N, N))),
        check_stationarity,
        non_finite=True,
    ),
    Call("jorth.hessian_check", jorth.hessian_check, hessian, check_hessian, non_finite=True),
    *(
        Call(
            f"jorth.{solver.__name__}",
            by_solver(solver),
            lambda rng, own=options: dict(own),
            check_result,
            non_finite=True,
        )
        for solver, options in SOLVERS.items()
    ),
    *(
        Call(
            f"jorth.stopping.{kind.__name__}",
            by_criterion(kind),
            lambda rng, own=options: dict(own),
            check_result,
            non_finite=True,
        )
        for kind, options in CRITERIA.items()
    ),
]


WITHOUT = {
    "jorth.BatchResult": "a result; minimize and procrustes make it",
    "jorth.BlockStationarity": "a result; block_stationarity makes it",
    "jorth.CheckpointMismatch": "an error class",
    "jorth.HessianCheck": "a result; hessian_check makes it",
    "jorth.RankLost": "an error class",
    "jorth.Result": "a result; minimize makes it",
    "jorth.Status": "the statuses; minimize gives them",
    "jorth.Sharded": "needs several processes; tests/ranks starts them",
    "jorth.stopping.Criterion": "a base class",
}
