"""The estimators of scikit-learn: right calls and what their answers are."""

from __future__ import annotations

import numpy as np

from jorth import Signature, ultrahyperbolic
from jorth.datasets import planted_procrustes
from jorth.estimators import HyperbolicPCA, LorentzAligner, StructuralProbeEmbedding
from tests.fuzz.calls import Call
from tests.fuzz.mutations import As
from tests.fuzz.oracles import close, exact, feasible, rough, signs, size

SIG = Signature.of([1, -1, 1, -1])
N = SIG.n
ROWS = 8


# -- HyperbolicPCA


def points(rng, columns=3):
    return rng.standard_normal((ROWS, columns))


def fitted_pca(X, n_components, input, output, time, scale):
    pca = HyperbolicPCA(n_components, input=input, output=output, time=time, scale=scale).fit(X)
    return pca.components_, pca.base_point_, pca.eigenvalues_, pca.transform(X)


def check_pca(result, given):
    """Components and base point are orthonormal for J, and the eigenvalues are the mean squares
    along them."""
    components, base, values, _ = (exact(part) for part in result)
    frame = np.vstack([components, base])
    time = 0 if given["time"] == "first" else -1
    s = np.ones(frame.shape[1], dtype=frame.dtype)
    s[time] = -1
    form = np.diag([*np.ones(len(components)), -1])
    close(frame * s @ frame.T, form, 1 + size(frame) ** 2, 1e-6)
    if given["input"] == "euclidean":
        x = exact(np.asarray(given["X"])) * exact(float(given["scale"]))
        t = np.sqrt(1 + (x * x).sum(axis=1, keepdims=True))
        x = np.hstack([t, x] if time == 0 else [x, t])
        means = ((x * s @ components.T) ** 2).mean(axis=0)
        close(values, means, (size(x) * size(components)) ** 2, 1e-6)


def inverted_pca(X):
    pca = HyperbolicPCA(2).fit(np.random.default_rng(0).standard_normal((ROWS, 3)))
    return pca.inverse_transform(X)


def check_inverted(result, given):
    assert result.shape == (len(np.asarray(given["X"])), 3)


# -- LorentzAligner


def pair(rng):
    data = planted_procrustes(12, SIG, noise=0.1, seed=int(rng.integers(50)))
    return data.source, data.target


def aligner_arguments(rng):
    X, y = pair(rng)
    return dict(
        X=X,
        y=y,
        signature=SIG,
        time=("first", "last")[rng.integers(2)],
        components=("all", "start")[rng.integers(2)],
        gradient_tolerance=As("number", None if rng.integers(2) else 1e-6),
        max_iterations=As("count", 50),
    )


def fitted_aligner(X, y, **options):
    aligner = LorentzAligner(**options).fit(X, y)
    return aligner.rotation_, aligner.transform(X)


def check_aligner(result, given):
    R, moved = result
    signature = given["signature"] or Signature.lorentz(R.shape[0], given["time"])
    feasible(R, signature, gram=np.diag(signature.signs[: R.shape[1]].astype(float)))
    X = exact(np.asarray(given["X"]))
    close(moved, X @ exact(R), size(X) * size(R) * R.shape[0], 10 * rough(moved))


# -- StructuralProbeEmbedding


def probe_arguments(rng):
    X = rng.standard_normal((ROWS, N)) + 0.5
    y = rng.standard_normal(ROWS)
    return dict(
        X=X,
        y=np.abs(y[:, None] - y),
        signature=SIG,
        time=("first", "last")[rng.integers(2)],
        alpha=1.0,
        scale=0.5,
        ridge=0.1,
        zero_rows="base",
        n_init=1,
        max_iterations=As("count", 5),
        max_time=As("number", 5.0),
        gradient_tolerance=1e-6,
        random_state=0,
    )


def fitted_probe(X, y, **options):
    probe = StructuralProbeEmbedding(**options).fit(X, y)
    return probe.rotation_, probe.scale_, probe.distances(X), probe.transform(X)


def check_probe(result, given):
    R, scale, distances, lifted = result
    signature = given["signature"] or Signature.lorentz(len(R), given["time"])
    feasible(R, signature)
    alpha = float(given["alpha"])
    y = exact(lifted)
    form = (y * y * signs(signature)).sum(axis=1)
    close(
        form,
        np.full(form.shape, -alpha * alpha),
        alpha * alpha + (y * y).sum(axis=1),
        10 * rough(lifted),
    )
    d = exact(distances)
    assert (d >= 0).all()
    close(d, d.T, size(d) + alpha * abs(scale), 1e-4)
    if lifted.dtype == np.float64:
        own = scale * ultrahyperbolic.distance(lifted[0], lifted[1], signature, alpha=alpha)
        close(d[0, 1], own, abs(scale) * alpha + size(own), 1e-4)


def scored(X, y):
    rng = np.random.default_rng(1)
    probe = StructuralProbeEmbedding(max_iterations=3).fit(rng.standard_normal((ROWS, 3)))
    return probe.score(X, y)


def check_score(result, given):
    """Pearson's correlation; NaN where one side is constant."""
    X, y = (np.asarray(given[name], dtype=float) for name in ("X", "y"))
    assert np.isnan(result) or -1 - 1e-9 <= result <= 1 + 1e-9
    same = np.ptp(X, axis=0).max() <= 1e-12 * np.abs(X).max() or np.abs(X).max() < 1e-100
    assert not np.isnan(result) or same or np.ptp(y) == 0 or len(X) < 3


CALLS: list[Call] = [
    Call(
        "jorth.estimators.HyperbolicPCA",
        fitted_pca,
        lambda rng: dict(
            X=points(rng),
            n_components=As("count", 2),
            input="euclidean",
            output=("tangent", "hyperboloid")[rng.integers(2)],
            time=("first", "last")[rng.integers(2)],
            scale=1.0,
        ),
        check_pca,
    ),
    Call(
        "jorth.estimators.HyperbolicPCA inverse_transform",
        inverted_pca,
        lambda rng: dict(X=points(rng, 2)),
        check_inverted,
    ),
    Call("jorth.estimators.LorentzAligner", fitted_aligner, aligner_arguments, check_aligner),
    Call("jorth.estimators.StructuralProbeEmbedding", fitted_probe, probe_arguments, check_probe),
    Call(
        "jorth.estimators.StructuralProbeEmbedding score",
        scored,
        lambda rng: dict(X=points(rng), y=np.arange(float(ROWS))),
        check_score,
        non_finite=True,
    ),
]

WITHOUT: dict[str, str] = {}
