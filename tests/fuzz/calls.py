"""Every public function with right arguments; whoever adds or removes a name does so here."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jorth
from jorth import Signature, kge, nn, optim, plane, ultrahyperbolic
from tests.fuzz.values import As

Arguments = dict[str, Any]
SIG = Signature.of([1, -1, 1, 1, -1])
N = SIG.n
THIN = Signature.of([-1, 1, 1])
LORENTZ = Signature(4, 1)
J = np.diag(SIG.signs.astype(float))
STEPS = 2  # iterations of every run
NONE = As("other", None)
DTYPE, DEVICE = As("other", torch.float64), As("other", "cpu")


@dataclass(frozen=True)
class Call:
    """A public function and right arguments for it, from a generator of random numbers."""

    name: str  # as it is imported; after a blank, which of several calls of it
    arguments: Callable[[np.random.Generator], Arguments]
    own: Callable[..., Any] | None = None  # takes the arguments instead of the function itself
    changes: tuple[str, ...] = ()  # arguments that are changed in place
    non_finite: bool = False  # NaN and infinity may pass, as documented
    raises: tuple[type[Exception], ...] = ()  # documented beside ValueError and TypeError

    @property
    def public_name(self) -> str:
        return self.name.split(" ")[0]

    def function(self, **given: Any) -> Any:
        if self.own is not None:
            return self.own(**given)
        module, _, name = self.public_name.rpartition(".")
        return getattr(importlib.import_module(module), name)(**given)


# -- right arguments


def point(rng, **options):
    return jorth.random_point(SIG, cond=3.0, seed=rng, **options)


def near_one(rng, *batch):
    M = rng.standard_normal((*batch, N, N))
    return jorth.exp(0.1 * J @ (M - np.swapaxes(M, -1, -2)), SIG)


def skew(rng):
    M = 0.3 * rng.standard_normal((N, N))
    return M - M.T


def definite(rng, n=N):
    M = rng.standard_normal((n, n))
    return M @ M.T + np.eye(n)


def tall(rng):
    """A with A^T J A positive definite: large at the positive signs."""
    A = 0.3 * rng.standard_normal((N, 2))
    A[SIG.positive[:2]] += 3 * np.eye(2)
    return A


def planes(rng):
    M = rng.standard_normal((2, 4, 4))
    Q = M @ np.swapaxes(M, -1, -2) + np.eye(4)
    return dict(P=rng.standard_normal((2, 2, 2)), Q=Q, signs=np.array([[1.0, 1.0], [1.0, -1.0]]))


def row_planes(rng):
    M = rng.standard_normal((2, 2, 2))
    return dict(
        G=rng.standard_normal((2, 2, N)),
        Z=rng.standard_normal((2, 2, N)),
        A=M @ np.swapaxes(M, -1, -2) + np.eye(2),
        D=definite(rng),
        signs=np.array([[1.0, 1.0], [1.0, -1.0]]),
    )


def pairs_of(rng):
    V = plane.solve_plane(**planes(rng)).V
    return dict(X=rng.standard_normal((N, N)), pairs=np.array([[0, 3], [4, 2]]), V=V)


def sheet(rng, alpha=1.0):
    """Points joined by geodesics, with timelike sums."""
    t = np.eye(N)[SIG.negative[0]]
    x = alpha * (t + 0.2 * rng.uniform(-1, 1, (3, N)))
    return ultrahyperbolic.lift(x, SIG, alpha=alpha)


def lorentz(rng, *shape):
    """Points of one sheet, as a tensor."""
    x = 0.4 * rng.standard_normal((*shape, N))
    x[..., -1] = 1
    return torch.from_numpy(ultrahyperbolic.lift(x, LORENTZ))


def rows(rng, m=7, n=N):
    return rng.standard_normal((m, n))


def tensor(array):
    return torch.from_numpy(array)


def weight(rng, **options):
    return torch.nn.Parameter(point(rng, dtype=torch.float64, **options))


def linear(rng):
    layer = torch.nn.Linear(N, N, bias=False, dtype=torch.float64)
    layer.weight.data = point(rng, dtype=torch.float64)
    return layer


def _folder() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="jorth-fuzz-")
    atexit.register(folder.cleanup)
    path = Path(folder.name)
    np.savez(path / "cifar.npz", X=np.arange(1.0, 31.0).reshape(6, 5))
    graph = "\n".join(f"e{k}\tnext\te{k + 1}" for k in range(30))
    for part in ("train", "test"):
        (path / f"{part}.txt").write_text(graph)
    (path / "settings.toml").write_text('epochs = 3\nmethod = "csdm"\n')
    kge.save_model(path / "model", kge.NamedModel(model(), GRAPH.entities, GRAPH.relations))
    return path


def model():
    return kge.UltraE(len(GRAPH.entities), len(GRAPH.relations), signature=Signature(2, 2), seed=2)


def named():
    return kge.NamedModel(model(), GRAPH.entities, GRAPH.relations)


def triples(rng):
    return GRAPH.train[torch.from_numpy(rng.integers(len(GRAPH.train), size=4))]


# -- uses: what the arguments are for


def solved(objective, **options):
    """Make a short run, with another signature or a thin X where the objective wants it."""
    n, k = objective.shape()
    if k is not None and k > n:
        return None
    own = SIG if n in (None, N) else Signature.of([1, -1] * (n // 2) + [1] * (n % 2))
    settings = dict(signature=own, max_iterations=STEPS, method="gs-jobcd") | options
    if (probe := getattr(objective, "signature", None)) is not None:
        settings |= dict(signature=probe, method="riemannian-lbfgs")
        start = torch.from_numpy(jorth.random_point(probe, cond=1.1, seed=0))
        settings["x0"] = start.to(objective.data())
    elif k is not None and k < n:
        settings["x0"] = torch.eye(n, k).to(objective.data())
    return jorth.minimize(objective, **settings)


def objective(name):
    return lambda **given: solved(getattr(jorth, name)(**given), method="auto")


def solver(name):
    rng = np.random.default_rng(0)
    data, target = rows(rng), rows(rng)
    return lambda **given: solved(
        jorth.Procrustes(data, target), method=getattr(jorth, name)(**given)
    )


def criterion(name):
    A = definite(np.random.default_rng(0))
    return lambda **given: solved(
        jorth.Quadratic(A), stop=getattr(jorth.stopping, name)(**given), max_iterations=12
    )


def weighted(X, batch):
    batch = batch[0] if isinstance(batch, tuple) else batch
    return X.square().sum() * (1 + batch.to(X).abs().mean())


def stepped(kind):
    def use(params, **options):
        optimizer = getattr(optim, kind)([params], **options)

        def closure():
            params.grad = torch.arange(1.0, params.numel() + 1).sin().reshape_as(params).to(params)
            return torch.zeros(())

        for _ in range(STEPS):
            optimizer.step(closure)
        return params.detach().clone()

    return use


def filled(tensor, **given):
    nn.init.j_orthogonal_(tensor, **given)
    return tensor.detach().clone()


def parametrised(kind, module, name, signature):
    getattr(nn, kind)(module, name, signature)
    return getattr(module, name).detach()


def declared(module, name, signature):
    nn.declare(module, name, signature)
    return [group["signature"].n for group in optim.split_parameters(module).j_orthogonal]


def layer(kind):
    """The parameters of a new layer."""
    return lambda **given: [p.detach() for p in getattr(nn, kind)(**given).parameters()]


def forward(kind, *options, **given):
    own = getattr(nn, kind)(*options, dtype=torch.float64, **given)
    return lambda **inputs: own(**inputs).detach()


def through(kind, signature, X):
    parametrization = getattr(nn, kind)(signature)
    parts = parametrization.right_inverse(X)
    return parametrization(*(parts if isinstance(parts, tuple) else (parts,))).detach()


def averaged(model, **given):
    found = optim.AveragedModel(model, **given)
    found.update_parameters(model)
    return found.module.weight.detach()


def estimator(name):
    def use(X, y=None, **options):
        found = getattr(jorth.estimators, name)(**options).fit(X, y)
        return found.transform(X)

    return use


def manifold(adapter, method, *options):
    def use(**given):
        module = importlib.import_module(f"jorth.adapters.{adapter}")
        return getattr(module.JOrthogonal(SIG), method)(*options, **given)

    return use


def trained(triples, config, **given):
    found = kge.train(triples, config, **given)
    return found.model.points.detach()


def adapted(adapter, **given):
    module = importlib.import_module(f"jorth.adapters.{adapter}")
    return module.JOrthogonal(**given).dim


def keras(name, **given):
    module = importlib.import_module("jorth.adapters.pykeen")
    if name == "UltraE":
        given |= dict(triples_factory=factory(), random_seed=0)
        return module.UltraE(**given).score_hrt(GRAPH.train[:4]).detach()
    return module.JOrthogonalRepresentation(**given)().detach()


def factory():
    from pykeen.triples import TriplesFactory

    names = ({name: k for k, name in enumerate(part)} for part in (GRAPH.entities, GRAPH.relations))
    return TriplesFactory(GRAPH.train, *names)


GRAPH = kge.hierarchy_with_cycles(branching=3, depth=2)
FOLDER = _folder()
QUICK = kge.Config(p=2, q=2, epochs=2, batch_size=64, negatives=3, method="j-jobcd")
METHODS = [
    "gs-jobcd",
    "j-jobcd",
    "umcm",
    "admm",
    "csdm",
    "exponential",
    "riemannian-cg",
    "riemannian-lbfgs",
    "riemannian-newton",
]
RUN = dict(
    max_iterations=STEPS,
    max_time=As("number", 5.0),
    max_evaluations=As("count", 30),
    gradient_tolerance=1e-6,
    stop=NONE,
    seed=0,
    callback=As("function", None),
    progress=False,
    checkpoint=As("path", None),
    checkpoint_interval=10.0,
    on_unbounded="stop",
)
STEP = dict(
    lr=0.1,
    momentum=0.5,
    decay=0.9,
    eps=1e-8,
    gain_rate=0.1,
    max_angle=0.4,
    max_norm=As("number", 1e3),
    matching="tournament",
    rounds_per_gradient=As("count", 2),
    maximize=False,
    seed=3,
)
JOBCD = dict(components="start", theta=As("number", 1e-3), curvature=As("number", "auto"))
RATE = dict(optimizer="adam", learning_rate=As("number", 0.01), memory=5, rebase=As("count", 2))
SOLVERS: dict[str, Arguments] = {
    "GaussSeidel": JOBCD | dict(side="left", order="sweep", accelerate=True),
    "Jacobi": JOBCD
    | dict(side="auto", rounds_per_gradient=As("count", 2), angle=0.04)
    | dict(majoriser="rows"),
    "VarianceReduced": dict(side="auto", batch=As("count", 5), difference_batch=As("count", 2))
    | dict(probability=As("number", 0.5), safety=2.0, angle=0.02),
    "UMCM": dict(beta=As("number", 1.0)),
    "ADMM": dict(penalty=As("number", 1.0)),
    "CSDM": RATE,
    "Exponential": RATE,
    "RiemannianSD": dict(preconditioner="auto"),
    "RiemannianCG": dict(preconditioner="auto"),
    "RiemannianLBFGS": dict(preconditioner="auto", memory=As("count", 3)),
    "RiemannianNewton": dict(preconditioner="auto"),
}
CRITERIA: dict[str, Arguments] = {
    "GradientNorm": dict(tolerance=0.1),
    "RelativeGradient": dict(tolerance=0.1),
    "RelativeDecrease": dict(tolerance=0.1, window=2),
    "BlockStationary": dict(tolerance=0.1, every=2, pairs=As("count", 3)),
    "ValueBelow": dict(target=3.0),
    "NormAbove": dict(limit=5.0),
    "MaxIterations": dict(limit=3),
}
SETTINGS = dict(
    p=2, q=2, alpha=1.0, delta=5.0, reciprocal=False, spread=0.05, dtype="float64",
    device="cpu", method="j-jobcd", relation_lr=0.01, lr=0.01, schedule="linear", warmup=0,
    final_rate=0.1, epochs=2, max_time=As("number", 20.0), batch_size=16, loss="softmax",
    negatives=As("count", 3), sides="both", regularisation=0.01,
    evaluate_every=2, patience=1, seed=0, smoothing=0.1, reverse_weight=0.0,
)  # fmt: skip


def right(**arguments):
    """Right arguments; those that are made by a function of this file get the generator."""

    def make(rng):
        return {
            name: value(rng) if getattr(value, "__module__", "") == __name__ else value
            for name, value in arguments.items()
        }

    return make


def on(kind: str, *parts: str) -> list[Call]:
    """Calls of functions of X and a signature."""
    return [Call(f"jorth.{name}", right(**{kind: point, "signature": SIG})) for name in parts]


def _points(name: str, *others: str, **more: Any) -> Call:
    """A call of the ultrahyperbolic room: points, vectors, signature and radius."""
    made = {other: sheet if other in "xy" else partial(rows, m=3) for other in others}
    return Call(
        f"jorth.ultrahyperbolic.{name}",
        lambda rng: {key: make(rng) for key, make in made.items()} | dict(signature=SIG) | more,
    )


CALLS: list[Call] = [
    Call("jorth.Signature", right(p=2, q=3)),
    Call("jorth.Signature of", right(signs=As("array", [1.0, -1.0])), Signature.of),
    Call("jorth.Signature lorentz", right(n=4, time="first"), Signature.lorentz),
    *on("X", "inverse", "component", "exchange", "polish", "cs_decomposition"),
    *on("A", "polar"),
    Call("jorth.residual", right(X=point, signature=SIG), non_finite=True),
    Call("jorth.exp", lambda rng: dict(K=J @ skew(rng), signature=SIG)),
    Call("jorth.cayley", lambda rng: dict(K=0.3 * J @ skew(rng), signature=SIG)),
    Call("jorth.log", right(X=near_one, signature=SIG)),
    Call("jorth.distance", right(X=near_one, Y=near_one, signature=SIG)),
    Call(
        "jorth.transport",
        lambda rng: (lambda X: dict(X=X, Y=near_one(rng), V=X @ J @ skew(rng), signature=SIG))(
            near_one(rng)
        ),
    ),
    Call(
        "jorth.mean",
        lambda rng: dict(Xs=near_one(rng, 3), signature=SIG, weights=rng.uniform(0.5, 1, 3)),
    ),
    Call(
        "jorth.random_point",
        right(
            signature=SIG, cond=10.0, component=(1, -1), batch=(2,), seed=3, dtype=NONE, device=NONE
        ),
    ),
    Call("jorth.random_point thin", right(signature=SIG, columns=(2, 1), seed=3)),
    Call("jorth.riemannian_gradient", right(X=point, G=skew, signature=SIG)),
    # linear algebra
    Call(
        "jorth.CS",
        lambda rng: dict(vars(jorth.cs_decomposition(point(rng), SIG))),
        lambda **given: jorth.CS(**given).compose(),
    ),
    Call(
        "jorth.HSVD",
        lambda rng: dict(vars(jorth.hsvd(rows(rng), SIG))),
        lambda **given: jorth.HSVD(**given).compose(),
    ),
    Call("jorth.hsvd", right(G=rows, signature=SIG, tolerance=As("number", None))),
    Call("jorth.hyperbolic_qr", right(A=tall, signature=SIG)),
    Call(
        "jorth.cholesky_update",
        lambda rng: (
            dict(R=np.triu(rows(rng, N)) + 5 * np.eye(N), add=rows(rng, 3), drop=0.3 * rows(rng, 2))
            | dict(lower=False)
        ),
    ),
    Call(
        "jorth.indefinite_lstsq",
        lambda rng: dict(A=tall(rng), b=rows(rng, N, 1)[:, 0]) | dict(signature=SIG),
    ),
    Call("jorth.eigh", right(A=definite, signature=SIG, shift=As("number", None))),
    # planes
    Call(
        "jorth.solve_plane", lambda rng: planes(rng) | dict(theta=0.1, components="all", check=True)
    ),
    Call("jorth.plane.solve_rows", lambda rng: row_planes(rng) | dict(theta=0.1, components="all")),
    Call("jorth.plane.apply_rows", pairs_of, changes=("X",), non_finite=True),
    Call("jorth.plane.apply_columns", pairs_of, changes=("X",), non_finite=True),
    Call("jorth.plane.random_matching", right(n=7, seed=1)),
    Call("jorth.plane.random_pairs", right(n=5, count=4, seed=1)),
    Call("jorth.plane.all_pairs", right(n=6, seed=1)),
    Call("jorth.plane.tournament", right(n=5, seed=1)),
    Call("jorth.plane.greedy_matching", right(weights=skew, seed=1)),
    # points
    Call("jorth.ultrahyperbolic.lift", right(x=rows, signature=SIG, alpha=1.5)),
    _points("inner", "x", "y"),
    _points("membership", "x", alpha=1.0),
    _points("distance", "x", "y", alpha=1.0),
    _points("exp", "x", "v", alpha=1.0),
    _points("log", "x", "y", alpha=1.0),
    _points("transport", "x", "y", "v", alpha=1.0),
    _points("project_tangent", "x", "v", alpha=1.0),
    *(
        Call(
            f"jorth.ultrahyperbolic.{name}",
            lambda rng: (
                dict(points=sheet(rng), signature=SIG, weights=rng.uniform(0.5, 1, 3))
                | dict(alpha=1.0)
            ),
        )
        for name in ("frechet_mean", "centroid")
    ),
    Call(
        "jorth.ultrahyperbolic.origin", right(signature=SIG, alpha=1.5, dtype=DTYPE, device=DEVICE)
    ),
    # objectives and solvers
    Call("jorth.Quadratic", right(A=definite, C=skew, D=definite), objective("Quadratic")),
    Call(
        "jorth.HyperbolicEigenvalue",
        right(A=definite, sense="min"),
        objective("HyperbolicEigenvalue"),
    ),
    Call("jorth.Procrustes", right(source=rows, target=rows), objective("Procrustes")),
    Call(
        "jorth.FiniteSum",
        right(fn=As("function", weighted), data=rows),
        objective("FiniteSum"),
        non_finite=True,
    ),
    Call(
        "jorth.Objective",
        lambda rng: (
            lambda A: dict(
                value=As("function", lambda X: float((X * (A @ X)).sum() / 2)),
                gradient=As("function", lambda X: A @ X),
            )
        )(definite(rng)),
        objective("Objective"),
        non_finite=True,
    ),
    Call(
        "jorth.StructuralProbe",
        lambda rng: (
            (lambda X: dict(data=X, distances=np.linalg.norm(X[:, None] - X, axis=2)))(rows(rng))
            | dict(signature=SIG, alpha=1.0, scale=1.0, ridge=0.01, zero_rows="error")
        ),
        objective("StructuralProbe"),
        non_finite=True,
    ),
    Call(
        "jorth.minimize",
        lambda rng: (
            dict(objective=As("function", jorth.Quadratic(definite(rng))), x0=point(rng))
            | dict(signature=SIG, method=METHODS[rng.integers(len(METHODS))])
            | RUN
        ),
        non_finite=True,
    ),
    Call(
        "jorth.procrustes",
        lambda rng: (
            dict(source=rows(rng), target=rows(rng), signature=SIG, components="all")
            | dict(gradient_tolerance=As("number", 1e-6), max_iterations=STEPS)
        ),
        non_finite=True,
    ),
    Call(
        "jorth.block_stationarity",
        lambda rng: (
            dict(objective=As("function", jorth.Quadratic(definite(rng))), X=point(rng))
            | dict(signature=SIG, theta=1e-5, pairs=As("count", 3), seed=0)
        ),
        non_finite=True,
    ),
    Call(
        "jorth.as_printed",
        right(method="gs-jobcd", theta=1e-5, Q="exact", sigma=As("number", 2.0)),
        lambda **given: solved(
            jorth.Quadratic(definite(np.random.default_rng(0))), method=jorth.as_printed(**given)
        ),
    ),
    Call(
        "jorth.hessian_check",
        lambda rng: (
            dict(objective=As("function", jorth.Quadratic(definite(rng))), X=point(rng))
            | dict(signature=SIG, max_products=100)
        ),
        non_finite=True,
    ),
    *(
        Call(f"jorth.{name}", right(**options), solver(name), non_finite=True)
        for name, options in SOLVERS.items()
    ),
    Call(
        "jorth.as_printed",
        right(method="j-jobcd", theta=1e-3, Q="scalar", sigma=As("number", 3.0)),
        solver("as_printed"),
        non_finite=True,
    ),
    *(
        Call(f"jorth.stopping.{name}", right(**options), criterion(name), non_finite=True)
        for name, options in CRITERIA.items()
    ),
    # torch
    Call(
        "jorth.optim.JOBCD",
        right(params=weight, signature=SIG, **STEP),
        stepped("JOBCD"),
        changes=("params",),
    ),
    Call(
        "jorth.optim.VRJOBCD",
        right(params=weight, signature=SIG, probability=0.5, **STEP),
        stepped("VRJOBCD"),
        changes=("params",),
    ),
    Call(
        "jorth.optim.split_parameters",
        lambda rng: dict(model=As("other", linear(rng))),
        lambda model: len(optim.split_parameters(model).others),
    ),
    Call(
        "jorth.optim.AveragedModel",
        lambda rng: dict(model=As("other", linear(rng)), device=NONE, use_buffers=True),
        averaged,
    ),
    Call(
        "jorth.nn.init.j_orthogonal_",
        right(
            tensor=lambda rng: torch.zeros(2, N, N, dtype=torch.float64),
            **dict(signature=SIG, cond=4.0, component=(1, 1), seed=3),
        ),
        filled,
        changes=("tensor",),
    ),
    Call(
        "jorth.nn.declare",
        lambda rng: dict(module=As("other", linear(rng)), name="weight", signature=SIG),
        declared,
        changes=("module",),
    ),
    *(
        Call(
            f"jorth.nn.{name}",
            lambda rng: dict(module=As("other", linear(rng)), name="weight", signature=SIG),
            partial(parametrised, name),
            changes=("module",),
        )
        for name in ("cs_parametrization", "exponential_parametrization")
    ),
    *(
        Call(
            f"jorth.nn.{name}",
            lambda rng: dict(signature=SIG, X=tensor(point(rng))),
            partial(through, name),
        )
        for name in ("CSParametrization", "ExponentialParametrization")
    ),
    *(
        Call(
            f"jorth.nn.{name}", right(signature=SIG, **own, dtype=DTYPE, device=DEVICE), layer(name)
        )
        for name, own in {
            "JOrthogonalLinear": dict(bias=True, batch=(2,), cond=4.0, seed=3),
            "LorentzLinear": dict(learn_radius=True, alpha=1.5, cond=4.0, seed=3),
            "LorentzAttention": dict(heads=2, alpha=1.5, seed=3),
            "LorentzCentroid": dict(points=As("count", 3), alpha=1.5),
            "HyperbolicMLR": dict(classes=3, alpha=1.5, seed=3),
            "LorentzResidual": dict(module=As("other", torch.nn.Tanh()), gate=0.5, alpha=1.5),
        }.items()
    ),
    *(
        Call(f"jorth.nn.{name} forward", lambda rng: dict(x=lorentz(rng, 3)), use, non_finite=True)
        for name, use in {
            "JOrthogonalLinear": forward("JOrthogonalLinear", SIG),
            "LorentzCentroid": forward("LorentzCentroid", LORENTZ),
            "LorentzAttention": forward("LorentzAttention", LORENTZ, 2),
            "HyperbolicMLR": forward("HyperbolicMLR", LORENTZ, 3),
            "LorentzResidual": forward("LorentzResidual", torch.nn.Tanh(), LORENTZ, gate=0.5),
        }.items()
    ),
    Call(
        "jorth.adapters.pymanopt.JOrthogonal",
        right(signature=SIG, cond=10.0, component=(1, 1), seed=3),
        partial(adapted, "pymanopt"),
    ),
    *(
        Call(
            f"jorth.adapters.pymanopt.JOrthogonal {method}",
            lambda rng: dict(point=point(rng), tangent_vector=skew(rng)),
            manifold("pymanopt", method),
            non_finite=True,  # pymanopt's solvers pass NaN where they start at an optimum
        )
        for method in ("exp", "retraction", "embedding")
    ),
    *(
        Call(
            f"jorth.adapters.geoopt.JOrthogonal {method}",
            lambda rng: dict(x=tensor(point(rng)), u=tensor(skew(rng))),
            manifold("geoopt", method),
            non_finite=method in ("egrad2rgrad", "proju"),
        )
        for method in ("retr", "expmap", "egrad2rgrad", "proju")
    ),
    # scikit-learn
    Call(
        "jorth.estimators.HyperbolicPCA",
        right(
            X=lambda rng: rows(rng, 8, 3),
            n_components=As("count", 2),
            **dict(input="euclidean", output="tangent", time="first", scale=1.0),
        ),
        estimator("HyperbolicPCA"),
    ),
    Call(
        "jorth.estimators.LorentzAligner",
        lambda rng: (
            (lambda X: dict(X=X, y=X @ point(rng)))(rows(rng, 9))
            | dict(signature=SIG, time="first", components="all")
            | dict(gradient_tolerance=As("number", 1e-6), max_iterations=As("count", 50))
        ),
        estimator("LorentzAligner"),
    ),
    Call(
        "jorth.estimators.StructuralProbeEmbedding",
        lambda rng: (
            (lambda y: dict(X=rows(rng, 8) + 0.5, y=np.abs(y[:, None] - y)))(rng.standard_normal(8))
            | dict(signature=SIG, time="first", alpha=1.0, scale=0.5, ridge=0.1, zero_rows="base")
            | dict(n_init=1, max_iterations=As("count", 5), max_time=As("number", 5.0))
            | dict(gradient_tolerance=1e-6, random_state=0)
        ),
        estimator("StructuralProbeEmbedding"),
    ),
    # data
    Call("jorth.datasets.positive_definite", right(n=4, cond=100.0, seed=1)),
    Call(
        "jorth.datasets.planted_procrustes",
        right(m=9, signature=SIG, source_condition=4.0, point_condition=5.0, noise=0.1, seed=1),
    ),
    Call("jorth.datasets.digits_trace", right(signature=Signature(40, 24), ridge=0.05)),
    Call(
        "jorth.datasets.load",
        right(name="cifar", m=4, n=3, subset="random", seed=1, sparse=False, folder=FOLDER),
        raises=(FileNotFoundError,),
    ),
    # knowledge graphs
    Call(
        "jorth.kge.UltraE",
        right(
            entities=5,
            relations=2,
            signature=SIG,
            alpha=1.0,
            delta=5.0,
            reciprocal=False,
            spread=0.05,
            rotate=True,
            reverse_weight=0.0,
            seed=1,
            dtype=DTYPE,
            device=DEVICE,
        ),
        lambda **given: kge.UltraE(**given).points.detach(),
    ),
    Call(
        "jorth.kge.UltraE forward",
        right(triples=triples),
        lambda triples: model()(triples).detach(),
    ),
    Call(
        "jorth.kge.evaluate",
        right(triples=triples, known=triples, exclude_anchor=False, batch_size=As("count", 3)),
        lambda **given: kge.evaluate(model(), **given).ranks("tail", "pessimistic"),
    ),
    Call(
        "jorth.kge.Ranking metrics",
        right(side="head", ties="realistic"),
        lambda **given: kge.evaluate(model(), GRAPH.valid, GRAPH.known).metrics(**given),
    ),
    Call(
        "jorth.kge.predict",
        right(head=GRAPH.entities[3], relation=GRAPH.relations[0], k=4, known=NONE),
        lambda **given: kge.predict(named(), **given),
    ),
    Call(
        "jorth.kge.nearest",
        right(entity=GRAPH.entities[3], k=4),
        lambda **given: kge.nearest(named(), **given),
    ),
    Call(
        "jorth.kge.explain",
        right(relation=GRAPH.relations[0]),
        lambda relation: kge.explain(named(), relation),
    ),
    Call(
        "jorth.kge.depths",
        right(relation=GRAPH.relations[0]),
        lambda relation: kge.depths(GRAPH, relation),
    ),
    Call(
        "jorth.kge.project_to_disc",
        right(signature=Signature(2, 2), alpha=1.0, seed=1),
        lambda **given: kge.project_to_disc(kge.UltraE(6, 1, **given)).points,
        non_finite=True,
    ),
    Call("jorth.kge.hold_out", right(train=lambda rng: GRAPH.train.clone(), share=0.1, seed=1)),
    Call(
        "jorth.kge.hierarchy_with_cycles",
        right(branching=3, depth=2, share=0.1, seed=1),
        lambda **given: kge.hierarchy_with_cycles(**given).train,
    ),
    Call("jorth.kge.load_triples", right(path=FOLDER, seed=1), raises=(FileNotFoundError,)),
    Call(
        "jorth.kge.load_model",
        right(folder=FOLDER / "model", device=NONE),
        raises=(FileNotFoundError,),
    ),
    Call(
        "jorth.kge.read_config",
        right(path=FOLDER / "settings.toml", changes=As("other", {})),
        raises=(FileNotFoundError,),
    ),
    Call("jorth.kge.Config", right(**SETTINGS), lambda **given: kge.Config(**given).rate(0.5)),
    Call(
        "jorth.kge.train",
        right(
            triples=As("other", GRAPH),
            config=As("other", QUICK),
            callback=As("function", lambda row: False),
            checkpoint=As("path", None),
        ),
        trained,
        raises=(RuntimeError,),
    ),
]

if importlib.util.find_spec("pykeen"):
    CALLS += [
        Call(
            "jorth.adapters.pykeen.UltraE",
            right(signature=Signature(2, 2), alpha=1.0, delta=5.0, spread=0.05, seed=1),
            partial(keras, "UltraE"),
        ),
        Call(
            "jorth.adapters.pykeen.JOrthogonalRepresentation",
            lambda rng: dict(max_id=2, signature=SIG, base=tensor(point(rng, batch=(2,)))),
            partial(keras, "JOrthogonalRepresentation"),
        ),
    ]

WITHOUT = {
    "a result, a record or an error": "jorth.PlaneSolution jorth.plane.PlaneSolution "
    "jorth.PolishError jorth.OtherTimeWarning jorth.BatchResult jorth.BlockStationarity "
    "jorth.CheckpointMismatch jorth.HessianCheck jorth.RankLost jorth.Result jorth.Status "
    "jorth.datasets.DataSet jorth.datasets.REGISTRY "
    "jorth.datasets.PlantedProcrustes jorth.datasets.TraceProblem jorth.optim.Split "
    "jorth.kge.NamedModel jorth.kge.Answer jorth.kge.Disc jorth.kge.Explanation "
    "jorth.kge.Neighbour jorth.kge.Training jorth.kge.Triples",
    "another name of jorth.solve_plane": "jorth.plane.solve_plane",
    "takes no arguments": "jorth.datasets.digits",
    "needs a server or several processes": "jorth.datasets.fetch jorth.Sharded",
    "a base class or a module": "jorth.stopping.Criterion jorth.nn.init",
    "writes files; tests/kge has its cases": "jorth.kge.draw_entities jorth.kge.draw_relations "
    "jorth.kge.save_model",
}
