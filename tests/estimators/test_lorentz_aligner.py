"""The aligner recovers planted isometries to the level that the noise allows."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

import jorth
from jorth import OtherTimeWarning, Signature
from jorth.estimators import LorentzAligner

SIGNATURES = {
    "Lorentz": Signature.lorentz(8, "last"),
    "(5, 3)": Signature.of([1, -1, 1, 1, -1, 1, -1, 1]),
}


@cache
def digits(n=8):
    scores = PCA(n, svd_solver="full").fit_transform(load_digits().data)
    return scores / scores.std()


def expected_error(X, R, signature):
    """The Cramer-Rao bound: the root of the least E ||R^ - R||_F^2 of unbiased estimates.

    It is a multiple of the noise. Near R the isometries are R + R J A, A skew; with the directions
    R J A_j as columns of D, the information of Y is D^T (X^T X (x) I) D.
    """
    n = signature.n
    directions = []
    for i, j in combinations(range(n), 2):
        A = np.zeros((n, n))
        A[i, j], A[j, i] = 1.0, -1.0
        directions.append(R @ (signature.signs[:, None] * A))
    D = np.stack(directions)
    information = np.einsum("aik,il,blk->ab", D, X.T @ X, D)
    return np.sqrt(np.trace(np.linalg.solve(information, np.einsum("aik,bik->ab", D, D))))


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-2, 1e-1])
@pytest.mark.parametrize("name", SIGNATURES)
def test_digits_are_aligned_to_the_noise_level(name, noise):
    signature, X = SIGNATURES[name], digits()
    R = jorth.random_point(signature, cond=10.0, component=(-1, 1), seed=3)
    Y = X @ R + noise * np.random.default_rng(0).standard_normal(X.shape)
    model = LorentzAligner(signature).fit(X, Y)
    error = np.linalg.norm(model.rotation_ - R) / (noise * expected_error(X, R, signature))
    # the root of a mean of 28 squared normal variables has a standard deviation of 0.13 around 1
    assert 0.3 < error < 2.0
    assert jorth.residual(model.rotation_, signature) < 1e-13
    # to first order it is the least-squares solution projected onto the tangent space, in the
    # metric of the data
    unconstrained = np.linalg.lstsq(X, Y, rcond=None)[0]
    assert np.linalg.norm(X @ (model.rotation_ - R)) < np.linalg.norm(X @ (unconstrained - R))


@pytest.mark.parametrize("time", [None, "first", "last"])
def test_the_default_signature_is_lorentz_with_time_first(time):
    X = digits(4)
    signature = Signature.lorentz(4) if time is None else Signature.lorentz(4, time)
    R = jorth.random_point(signature, cond=10.0, seed=0)
    model = LorentzAligner(**({} if time is None else {"time": time})).fit(X, X @ R)
    assert model.signature_ == signature
    np.testing.assert_allclose(model.rotation_, R, atol=1e-12)


def hyperboloid(time, m=30, d=3):
    space = np.random.default_rng(1).standard_normal((m, d))
    points = np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])
    return points if time == "first" else np.roll(points, -1, axis=1)


@pytest.mark.parametrize(("has", "takes"), [("last", "first"), ("first", "last")])
def test_points_of_the_other_convention_give_a_warning(has, takes, recwarn):
    """The score was negative, silently."""
    signature = Signature.lorentz(4, has)
    X = hyperboloid(has)
    Y = X @ jorth.random_point(signature, cond=5.0, seed=2)
    with pytest.warns(OtherTimeWarning, match=f"with the time {has}") as caught:
        wrong = LorentzAligner(time=takes).fit(X, Y).score(X, Y)
    assert caught[0].filename == __file__
    assert len(str(caught[0].message)) < 500
    assert wrong < 0.9
    recwarn.clear()
    assert LorentzAligner(time=has).fit(X, Y).score(X, Y) == pytest.approx(1.0)
    assert not recwarn


def test_the_score_is_r2_of_all_columns_together():
    X = digits(4)
    Y = np.random.default_rng(0).standard_normal((len(X), 4)) * [1, 2, 3, 4]
    model = LorentzAligner().fit(X, Y)
    by_hand = 1 - np.square(X @ model.rotation_ - Y).sum() / np.square(Y - Y.mean(axis=0)).sum()
    assert model.score(X, Y) == pytest.approx(by_hand, rel=1e-12)


def test_fewer_columns():
    X = digits(5)
    R = jorth.random_point(Signature.lorentz(5), cond=4.0, seed=1)[:, :3].copy()
    model = LorentzAligner(gradient_tolerance=1e-11).fit(X, X @ R)
    assert model.rotation_.shape == (5, 3)
    np.testing.assert_allclose(model.rotation_, R, atol=1e-8)
    there = model.transform(X)
    np.testing.assert_allclose(model.transform(model.inverse_transform(there)), there, atol=1e-10)
    assert list(model.get_feature_names_out()) == [
        "lorentzaligner0",
        "lorentzaligner1",
        "lorentzaligner2",
    ]


def test_weights_are_repetitions():
    X, rng = digits(4)[:50], np.random.default_rng(0)
    Y = X @ jorth.random_point(Signature.lorentz(4), cond=5.0, seed=1)
    Y += 0.1 * rng.standard_normal(Y.shape)
    weights = rng.integers(0, 4, 50)
    rows = np.repeat(np.arange(50), weights)
    one = LorentzAligner().fit(X, Y, sample_weight=weights)
    two = LorentzAligner().fit(X[rows], Y[rows])
    np.testing.assert_allclose(one.rotation_, two.rotation_, atol=1e-7)
    assert np.abs(one.rotation_ - LorentzAligner().fit(X, Y).rotation_).max() > 1e-4
    expected = two.score(X[rows], Y[rows])
    assert one.score(X, Y, sample_weight=weights) == pytest.approx(expected, rel=1e-7)


def test_frames_keep_the_names_of_the_targets():
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(digits(4)[:50], columns=list("abcd"))
    Y = pandas.DataFrame(X.to_numpy() * [1, -1, 1, 1], columns=["t", "x", "y", "z"])
    model = LorentzAligner().set_output(transform="pandas").fit(X, Y)
    assert list(model.transform(X).columns) == ["t", "x", "y", "z"]
    predicted = cross_val_predict(LorentzAligner(), X, Y, cv=3)
    np.testing.assert_allclose(predicted, Y, atol=1e-7)
    assert clone(model).fit(X, Y.to_numpy()).get_feature_names_out()[0] == "lorentzaligner0"


def test_it_clones_and_works_in_a_pipeline():
    images = load_digits().data[:300] / 16
    R = jorth.random_point(Signature.lorentz(4), cond=10.0, seed=0)
    Y = PCA(4, svd_solver="full").fit_transform(images) @ R
    model = make_pipeline(PCA(4, svd_solver="full"), LorentzAligner())
    assert clone(model).fit(images, Y).score(images, Y) == pytest.approx(1.0, abs=1e-12)
    single = LorentzAligner().fit(digits(4).astype(np.float32), (digits(4) @ R).astype(np.float32))
    assert single.rotation_.dtype == np.float32
    assert single.transform(digits(4).astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.rotation_, R, atol=1e-4)
