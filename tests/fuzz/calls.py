"""Every public function with right arguments, made from its signature.

An argument has its own maker in `OWN`, or the one of its name in `ARGUMENTS`, or its default. Names
that are called in another way, or not here, have a reason in `WITHOUT`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

import jorth
from jorth import Signature, nn, ultrahyperbolic
from tests.fuzz.values import As
from tests.public import public_names

Arguments = dict[str, Any]
SIG = Signature.of([1, -1, 1, 1, -1])
LORENTZ = Signature.of([-1, 1, 1, 1, 1])
N = SIG.n
J = np.diag(SIG.signs.astype(float))
STEPS = 2  # iterations of every run


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
        return (self.own or imported(self.public_name))(**given)


def imported(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


# -- right arguments


def point(rng):
    return jorth.random_point(SIG, cond=3.0, seed=rng)


def near_one(rng, *batch):
    M = rng.standard_normal((*batch, N, N))
    return jorth.exp(0.1 * J @ (M - np.swapaxes(M, -1, -2)), SIG)


def skew(rng):
    M = 0.3 * rng.standard_normal((N, N))
    return M - M.T


def lie(rng):
    """An element of the Lie algebra."""
    return J @ skew(rng)


def definite(rng, n=N, batch=()):
    M = rng.standard_normal((*batch, n, n))
    return M @ np.swapaxes(M, -1, -2) + np.eye(n)


def tall(rng):
    """A with A^T J A positive definite: large at the positive signs."""
    A = 0.3 * rng.standard_normal((N, 2))
    A[SIG.positive[:2]] += 3 * np.eye(2)
    return A


def rows(rng, *shape):
    return rng.standard_normal(shape or (7, N))


def sheet(rng):
    """Points joined by geodesics, with timelike sums."""
    x = np.eye(N)[SIG.negative[0]] + 0.2 * rng.uniform(-1, 1, (3, N))
    return ultrahyperbolic.lift(x, SIG)


def linear(rng):
    layer = torch.nn.Linear(N, N, bias=False, dtype=torch.float64)
    layer.weight.data = torch.from_numpy(point(rng))
    return As("other", layer)


def quadratic(rng):
    return As("function", jorth.Quadratic(definite(rng)))


def fixed(value):
    return lambda rng: value


SIGNS = fixed(np.array([[1.0, 1.0], [1.0, -1.0]]))
THREE = lambda rng: rows(rng, 3, N)  # noqa: E731
SHARES = lambda rng: rng.uniform(0.5, 1, 3)  # noqa: E731
ARGUMENTS: dict[str, Callable[[np.random.Generator], Any]] = {
    "A": definite, "C": skew, "D": definite, "G": skew, "K": lie,
    "V": lie, "X": point, "Y": near_one, "b": lambda rng: rows(rng, N), "x": sheet, "y": sheet,
    "v": THREE, "points": sheet, "source": rows, "target": rows, "module": linear,
    "model": linear, "name": fixed("weight"), "objective": quadratic, "signature": fixed(SIG),
    "m": fixed(4), "n": fixed(5), "p": fixed(2), "q": fixed(3), "count": fixed(4), "seed": fixed(3),
    "tolerance": fixed(0.1), "limit": fixed(5.0), "classes": fixed(3), "num_embeddings": fixed(4),
    "entities": fixed(5), "relations": fixed(2),
}  # fmt: skip
"""The right values by the names of arguments."""
NEAR = {"X": near_one, "Y": near_one}
PAIRED = {"pairs": fixed(np.array([[0, 3], [4, 2]])), "X": lambda rng: rows(rng, N, N)}
BOOST = np.array([[np.cosh(1), np.sinh(1)], [np.sinh(1), np.cosh(1)]])
PAIRED["V"] = fixed(np.stack([np.eye(2), BOOST]))
PLANES = {"P": lambda rng: rows(rng, 2, 2, 2), "signs": SIGNS}
PLANES["Q"] = partial(definite, n=4, batch=(2,))
OWN: dict[str, dict[str, Callable[[np.random.Generator], Any]]] = {
    "jorth.log": NEAR,
    "jorth.distance": NEAR,
    "jorth.transport": {"X": fixed(np.eye(N)), "Y": near_one},
    "jorth.mean": {"Xs": lambda rng: near_one(rng, 3), "weights": SHARES},
    "jorth.cholesky_update": {
        "R": lambda rng: np.triu(rows(rng, N, N)) + 5 * np.eye(N),
        "add": THREE,
        "drop": lambda rng: 0.3 * rows(rng, 2, N),
    },
    "jorth.hsvd": {"G": rows, "tolerance": fixed(As("number", None))},
    "jorth.eigh": {"shift": fixed(As("number", None))},
    "jorth.hyperbolic_qr": {"A": tall},
    "jorth.indefinite_lstsq": {"A": tall},
    "jorth.solve_plane": PLANES,
    "jorth.plane.apply_rows": PAIRED,
    "jorth.ultrahyperbolic.lift": {"x": rows},
    "jorth.ultrahyperbolic.exp0": {"v": lambda rng: rows(rng, 3, N - 1)},
    "jorth.ultrahyperbolic.boost": {
        "vector": lambda rng: 0.3 * rng.uniform(-1, 1, (3, N - 1)), "signature": fixed(LORENTZ),
    },
    "jorth.ultrahyperbolic.rotation": {
        "vector": lambda rng: rows(rng, 2, 3), "signature": fixed(Signature.lorentz(4)),
    },
    "jorth.ultrahyperbolic.frame": {
        "vectors": lambda rng: 9 * np.eye(N) + rows(rng, N, N), "signature": fixed(LORENTZ),
    },
    "jorth.ultrahyperbolic.frechet_mean": {"weights": SHARES},
    "jorth.ultrahyperbolic.centroid": {"weights": SHARES},
    "jorth.stopping.ValueBelow": {"target": fixed(3.0)},
    "jorth.as_printed": {"method": fixed("gs-jobcd")},
    "jorth.datasets.planted_procrustes": {"m": fixed(9)},
    "jorth.block_stationarity": {"pairs": fixed(As("count", 3))},
    "jorth.nn.LorentzResidual": {"module": fixed(As("other", torch.nn.Tanh()))},
    "jorth.nn.LorentzSpace": {"module": fixed(As("other", torch.nn.Tanh()))},
}  # fmt: skip
LOOSE = (
    "jorth.stopping",
    "jorth.residual",
    "jorth.plane.apply",
    "jorth.block_stationarity",
    "jorth.hessian_check",
)
"""NaN and infinity may pass, as documented, or where a user's function makes them."""
IN_PLACE = {"jorth.plane.apply_rows": ("X",)}
"""The arguments that a function changes."""


def made(name: str) -> Call:
    """Return the call of a public function with what its signature asks for."""
    parameters = inspect.signature(imported(name)).parameters.values()
    own = OWN.get(name, {})
    makers: dict[str, Callable[[np.random.Generator], Any]] = {}
    for one in parameters:
        if one.name in own or one.default is inspect.Parameter.empty:
            if one.kind is not inspect.Parameter.VAR_KEYWORD:
                makers[one.name] = own.get(one.name) or ARGUMENTS[one.name]
        elif isinstance(one.default, (bool, int, float, str, tuple)) and one.default != ():
            makers[one.name] = fixed(one.default)
    changes = IN_PLACE.get(name, ("module", "model") if "nn" in name or "optim" in name else ())

    def arguments(rng: np.random.Generator) -> Arguments:
        return {key: make(rng) for key, make in makers.items()}

    return Call(name, arguments, changes=changes, non_finite=name.startswith(LOOSE))


# -- functions that are called in another way


def solved(objective, **options):
    """Make a short run, thin where the objective wants it."""
    n, k = objective.shape()
    if k is not None and k > n:
        return None
    own = SIG if n in (None, N) else Signature.of([1, -1] * (n // 2) + [1] * (n % 2))
    settings = dict(signature=own, max_iterations=STEPS) | options
    if k is not None and k < n:
        settings["x0"] = torch.eye(n, k).to(objective.data())
    return jorth.minimize(objective, **settings)


def weighted(X, batch):
    batch = batch[0] if isinstance(batch, tuple) else batch
    return X.square().sum() * (1 + batch.to(X).abs().mean())


def run_of(name: str, arguments: Callable[[np.random.Generator], Arguments]) -> Call:
    """Return a call of an objective: a short run on it."""
    full = f"jorth.{name}"
    return Call(full, arguments, lambda **given: solved(imported(full)(**given)))


def forward(kind, *options):
    layer = getattr(nn, kind)(*options).double()
    return lambda x: layer(x).detach()


def lorentz_points(rng):
    x = 0.4 * rng.standard_normal((3, N))
    x[:, -1] = 1
    return dict(x=torch.from_numpy(ultrahyperbolic.lift(x, Signature(N - 1, 1))))


SETTINGS = dict(max_time=As("number", 5.0), max_evaluations=As("count", 30))
SETTINGS |= dict(gradient_tolerance=1e-6, seed=0, progress=False, checkpoint_interval=10.0)
SPECIAL = [
    Call("jorth.Signature", lambda rng: dict(p=2, q=3)),
    Call("jorth.Signature of", lambda rng: dict(signs=As("array", [1.0, -1.0])), Signature.of),
    Call("jorth.Signature lorentz", lambda rng: dict(n=4, time="first"), Signature.lorentz),
    run_of("Quadratic", lambda rng: dict(A=definite(rng), C=skew(rng), D=definite(rng))),
    run_of("HyperbolicEigenvalue", lambda rng: dict(A=definite(rng), sense="min")),
    run_of("Procrustes", lambda rng: dict(source=rows(rng), target=rows(rng))),
    Call(
        "jorth.FiniteSum",
        lambda rng: dict(fn=As("function", weighted), data=rows(rng), chunk=3),
        lambda **given: solved(jorth.FiniteSum(**given), method="gs-jobcd"),
        non_finite=True,
    ),
    Call(
        "jorth.minimize",
        lambda rng: (
            dict(objective=quadratic(rng), x0=point(rng), signature=SIG, method="gs-jobcd")
            | dict(max_iterations=STEPS, callback=As("function", None))
            | SETTINGS
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
    *(
        Call(f"jorth.nn.{name} forward", lorentz_points, use, non_finite=True)
        for name, use in {
            "JOrthogonalLinear": forward("JOrthogonalLinear", SIG),
            "LorentzCentroid": forward("LorentzCentroid", Signature(N - 1, 1)),
            "LorentzAttention": forward("LorentzAttention", Signature(N - 1, 1), 2),
            "HyperbolicMLR": forward("HyperbolicMLR", Signature(N - 1, 1), 3),
            "LorentzLinear": forward("LorentzLinear", Signature(N - 1, 1)),
            "LorentzTransformerLayer": forward("LorentzTransformerLayer", Signature(N - 1, 1)),
        }.items()
    ),
]
WITHOUT = {
    "a result, a record or an error": "jorth.PolishError jorth.OtherTimeWarning "
    "jorth.BatchResult jorth.CheckpointMismatch jorth.RankLost jorth.Result jorth.Status "
    "jorth.datasets.REGISTRY jorth.kge.NamedModel jorth.kge.Triples",
    "needs files, a server or several processes": "jorth.datasets.fetch jorth.datasets.load "
    "jorth.datasets.digits jorth.Sharded",
    "a base class or a module": "jorth.stopping.Criterion jorth.nn.init",
    "takes functions of a user; tests/objectives": "jorth.Objective jorth.StructuralProbe",
    "scikit-learn checks in fit; tests/estimators": "jorth.estimators.HyperbolicPCA "
    "jorth.estimators.LorentzAligner jorth.estimators.StructuralProbeEmbedding",
    "takes parameters or a model; tests/optim": "jorth.optim.JOBCD jorth.optim.VRJOBCD "
    "jorth.optim.AveragedModel jorth.optim.ModelOptimizer jorth.optim.split_parameters",
    "takes a graph or a model; tests/kge": "jorth.kge.depths jorth.kge.draw_entities "
    "jorth.kge.evaluate jorth.kge.explain jorth.kge.Frequencies "
    "jorth.kge.load_model jorth.kge.load_triples jorth.kge.nearest jorth.kge.predict "
    "jorth.kge.save_model jorth.kge.train",
}
ELSEWHERE = {name for names in WITHOUT.values() for name in names.split()}
SPECIALS = {call.name for call in SPECIAL}
CALLS = [*SPECIAL, *(made(name) for name in public_names() if name not in SPECIALS | ELSEWHERE)]
