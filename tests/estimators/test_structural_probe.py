"""The probe finds planted maps, and reports what scipy reports."""

import mpmath
import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from scipy.stats import pearsonr, spearmanr

import jorth
from jorth import Signature
from jorth.estimators import StructuralProbeEmbedding, structural_probe

# random data may have no minimum; what is tested holds for any map
pytestmark = pytest.mark.filterwarnings("ignore:the fit did not converge")

SIGNATURES = {
    "hyperbolic": Signature(4, 1),
    "time first": Signature.lorentz(5, "first"),
    "(3, 2)": Signature.of([1, -1, 1, 1, -1]),
    "spherical": Signature(0, 5),
}


def rough_fit(*arguments, **options):
    """A fit that is soon over: for what holds of every fit, however far it went."""
    return StructuralProbeEmbedding(*arguments, gradient_tolerance=1e-2, **options)


def cloud(m=30, n=5, seed=0):
    return np.random.default_rng(seed).standard_normal((m, n))


def one_sheet(X, time=-1):
    """Rows with t > |s|: no map of a component changes the sign of a t.

    So f has no kinks, and all starts end at one minimum.
    """
    rows = X.copy()
    rows[:, time] = 0.0
    rows[:, time] = 1 + np.linalg.norm(rows, axis=1).max()
    return rows


exactly = np.vectorize(mpmath.mpf, otypes=[object])


def lifted(Z, signature, alpha):
    """phi(Z), written out for one row at a time, at 30 digits."""
    with mpmath.workdps(30):
        Q = exactly(Z)
        for row in Q:
            s, t = row[signature.positive], row[signature.negative]
            row[signature.negative] = mpmath.sqrt(alpha**2 + s @ s) * t / mpmath.sqrt(t @ t)
        return Q


def arc(g, alpha):
    """The distance that belongs to g: acosh and acos, 0 at g = 1."""
    with mpmath.workdps(30):
        return alpha * (mpmath.acosh(g) if g >= 1 else mpmath.acos(g))


def products(Q, signature, alpha):
    """|<q_i, q_j>| / alpha^2 at 30 digits: acosh and acos near 1 lose half of them."""
    with mpmath.workdps(30):
        return np.abs(Q @ (signature.signs[:, None] * Q.T)) / mpmath.mpf(alpha) ** 2


def geodesic(Q, signature, alpha):
    """Distances by acosh and acos, the diagonal zero."""
    d = np.vectorize(arc, otypes=[float])(products(Q, signature, alpha), alpha)
    np.fill_diagonal(d, 0.0)
    return (d + d.T) / 2


def planted(signature, *, alpha=1.0, factor=3.0, cond=3.0):
    """Rows, the distances that a known R gives them, and that R."""
    X = one_sheet(cloud(), signature.negative[0]) if signature.q == 1 else cloud()
    R = jorth.random_point(signature, cond=cond, component=(1, -1), seed=7)
    return X, factor * geodesic(lifted(X @ R, signature, alpha), signature, alpha), R


@pytest.mark.parametrize(
    "name", [name for name, signature in SIGNATURES.items() if signature.q != 2]
)
def test_a_planted_map_is_found(name):
    signature = SIGNATURES[name]
    X, T, R = planted(signature, alpha=0.7)
    model = StructuralProbeEmbedding(signature, alpha=0.7, gradient_tolerance=1e-9).fit(X, T)
    # measured: a stress of 4e-9, distances to 2e-7
    assert model.stress_ < 1e-5
    assert np.isclose(model.scale_, 3.0, rtol=1e-5)
    assert np.allclose(model.distances(X), T, atol=1e-4)
    assert model.score(X, T) > 1 - 1e-8
    assert model.spearman_ > 0.9999
    # the same up to block-orthogonal factors: J R R^T J has none, and neither has R R^T
    assert np.allclose(
        model.rotation_ @ model.rotation_.T, R @ R.T, atol=1e-4 * np.linalg.norm(R) ** 2
    )
    assert jorth.residual(model.rotation_, signature) < 1e-13


def test_new_rows_are_placed_as_the_planted_map_does():
    signature = Signature(4, 1)
    X, T, R = planted(signature)
    model = StructuralProbeEmbedding(signature, gradient_tolerance=1e-9).fit(X, T)
    fresh = one_sheet(cloud(seed=5))
    expected = 3.0 * geodesic(lifted(fresh @ R, signature, 1.0), signature, 1.0)
    assert np.allclose(model.distances(fresh), expected, atol=1e-4)
    assert model.stress(fresh, expected) < 1e-5


@pytest.mark.parametrize("scale", ["fit", 0.8])
@pytest.mark.parametrize("name", SIGNATURES)
def test_scores_are_those_of_scipy(name, scale):
    signature, X, T = SIGNATURES[name], cloud(), squareform(pdist(cloud(seed=1)))
    model = rough_fit(signature, alpha=1.3, scale=scale).fit(X, T)
    d = geodesic(lifted(X @ model.rotation_, signature, 1.3), signature, 1.3)
    above = np.triu_indices(len(X), 1)
    t, raw = T[above], d[above]
    c = t @ raw / (raw @ raw) if scale == "fit" else scale
    assert np.isclose(model.scale_, c)
    # measured: 5e-14; where g is nearly 1, half of the digits may be lost
    assert np.abs(model.distances(X) - c * d).max() < 1e-6
    assert np.isclose(model.score(X, T), pearsonr(raw, t).statistic)
    assert np.isclose(model.spearman_, spearmanr(raw, t).statistic, atol=1e-6)
    assert np.isclose(model.spearman(X, T), model.spearman_)
    assert np.isclose(model.stress_, np.sqrt(((t - c * raw) ** 2).sum() / (t**2).sum()))
    assert np.isclose(model.stress(X, T), model.stress_)
    assert np.isclose(model.result_.value, model.stress_**2)


def test_the_best_of_the_starts_is_kept(monkeypatch):
    values = []

    def noted(*arguments, **options):
        result = jorth.minimize(*arguments, **options)
        values.append(result.value)
        return result

    monkeypatch.setattr(structural_probe, "minimize", noted)
    model = StructuralProbeEmbedding(Signature(3, 2), n_init=4).fit(
        cloud(), squareform(pdist(cloud(seed=1)))
    )
    assert len(set(values)) == 4  # f is rough: each start ends somewhere else
    assert model.result_.value == min(values)


def test_the_ridge_holds_the_map_back():
    """The larger the ridge, the smaller the norm and the larger the stress of the minimum."""
    X = one_sheet(cloud(20))
    T = squareform(pdist(X)) ** 0.8
    norms, stresses = [], []
    for ridge in (1e-6, 1e-3, 1.0):
        model = StructuralProbeEmbedding(time="last", ridge=ridge).fit(X, T)
        norms.append(np.linalg.norm(model.rotation_))
        stresses.append(model.stress_)
        assert np.isclose(model.result_.value, model.stress_**2 + ridge / 2 * norms[-1] ** 2)
    assert norms[0] > norms[1] > norms[2]
    assert stresses[0] < stresses[1] < stresses[2]
    assert np.isclose(
        norms[2], np.sqrt(5), rtol=1e-2
    )  # the norm of orthogonal maps, the least there is


def test_rows_of_zeros_go_to_the_base_point():
    X = cloud()
    X[[3, 8]] = 0.0
    model = rough_fit(Signature.of([1, 1, -1, 1, -1]), alpha=2.0).fit(X, squareform(pdist(X)))
    assert np.array_equal(model.transform(X)[[3, 8]], np.tile([0.0, 0.0, 2.0, 0.0, 0.0], (2, 1)))
    assert model.distances(X)[3, 8] == 0.0
    assert np.isclose(model.result_.value, model.stress_**2)
