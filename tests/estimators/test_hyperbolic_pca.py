"""Hyperbolic PCA against its definition: the least mean of sinh^2(distance)."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.decomposition import PCA

import jorth
from jorth import Signature
from jorth.estimators import HyperbolicPCA


def lift(space):
    return np.column_stack([np.sqrt(1 + np.square(space).sum(axis=1)), space])


def cloud(m=60, d=4, *, seed=0, spread=1.0):
    """Points of the hyperboloid, time first: anisotropic, skew, off the origin."""
    rng = np.random.default_rng(seed)
    tangent = spread * rng.standard_normal((m, d)) * np.linspace(1.2, 0.3, d) + rng.exponential(
        0.4, (m, d)
    )
    return lift(tangent) @ jorth.random_point(Signature.lorentz(d + 1), cond=4.0, seed=seed)


def product(d):
    return np.diag(Signature.lorentz(d + 1).signs.astype(float))


def mean_sinh2(points, basis):
    """The mean sinh^2(distance) to the span of ``basis``: -1 - x^T J B (B^T J B)^-1 B^T J x."""
    J = product(points.shape[1] - 1)
    inner = points @ J @ basis.T
    return float(
        np.mean(-1 - np.einsum("mi,ij,mj->m", inner, np.linalg.inv(basis @ J @ basis.T), inner))
    )


def fitted(points, k=None, **options):
    return HyperbolicPCA(k, input="hyperboloid", **options).fit(points)


@pytest.mark.parametrize(("m", "d", "k"), [(60, 4, None), (9, 40, None), (600, 510, 3)])
def test_axes_are_the_j_eigenvectors(m, d, k):
    """Also of fewer rows than columns, and of few components, which ARPACK finds."""
    points = cloud(m, d)
    model = fitted(points, k)
    k = min(m - 1, d) if k is None else k
    J, C = product(d), points.T @ points / len(points)
    axes = np.vstack([model.base_point_, model.components_])
    np.testing.assert_allclose(axes @ J @ axes.T, J[: k + 1, : k + 1], atol=1e-13)
    every = np.sort(np.linalg.eigvals(C @ J).real)[::-1]  # the timelike one is negative
    np.testing.assert_allclose(model.eigenvalues_, every[:k], atol=1e-13 * np.linalg.norm(C))
    share = every[:k] / -(1 + every[-1])
    np.testing.assert_allclose(model.explained_variance_ratio_, share, atol=1e-12)
    for v, value in zip(model.components_, model.eigenvalues_, strict=True):
        np.testing.assert_allclose(C @ J @ v, value * v, atol=1e-13 * np.linalg.norm(C))
    assert (np.diff(model.eigenvalues_) < 0).all()
    base = model.base_point_
    assert base[0] > 0
    np.testing.assert_allclose(C @ J @ base, every[-1] * base, atol=1e-13 * np.linalg.norm(C))
    assert (model.components_[np.arange(k), np.abs(model.components_).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_subspace_is_nearer(k):
    """A quasi-Newton method over all spans finds the minimum that is known in closed form."""
    points = cloud()
    everything, model = fitted(points), fitted(points, k)
    least = everything.eigenvalues_[k:].sum()
    axes = np.vstack([model.base_point_, model.components_])
    assert mean_sinh2(points, axes) == pytest.approx(least, rel=1e-12)

    def cost(flat):
        basis = flat.reshape(k + 1, 5)
        signs = np.linalg.eigvalsh(basis @ product(4) @ basis.T)
        # a span without a timelike vector misses the hyperboloid
        return mean_sinh2(points, basis) if signs[0] < -1e-9 else 1e6

    rng = np.random.default_rng(k)
    ends = []
    for _ in range(4):
        start = np.vstack([rng.standard_normal((k, 5)), points.mean(axis=0)])
        assert cost(start.ravel()) > least
        ends.append(minimize(cost, start.ravel(), method="BFGS", options={"gtol": 1e-9}).fun)
    assert min(ends) == pytest.approx(least, rel=1e-6)
    assert min(ends) >= least * (1 - 1e-9)


def test_the_base_point_is_the_nearest_point():
    points = cloud()
    model = fitted(points)

    def cost(space):
        return np.mean(np.square(points @ product(4) @ lift(space[None, :])[0])) - 1

    end = minimize(cost, np.zeros(4), method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(end.x, model.base_point_[1:], atol=1e-6)
    assert model.eigenvalues_.sum() == pytest.approx(cost(model.base_point_[1:]), rel=1e-12)
    assert model.explained_dispersion_ratio_.sum() == pytest.approx(1.0, rel=1e-14)


def test_a_share_of_the_dispersion():
    """The fewest components that explain it, as in scikit-learn's PCA."""
    points = cloud()
    shares = fitted(points).explained_dispersion_ratio_.cumsum()
    for k in (1, 2, 3):
        model = fitted(points, float(shares[k - 1] - 1e-9))
        assert model.n_components_ == k
        np.testing.assert_allclose(model.transform(points), fitted(points, k).transform(points))
    assert fitted(points, 1 - 1e-16).n_components_ == 4


@pytest.mark.parametrize("k", [1, 3])
def test_transform_is_the_nearest_point(k):
    points = cloud()
    model = fitted(points, k, output="hyperboloid")
    there = model.transform(points)
    np.testing.assert_allclose(np.square(there) @ [-1, *[1] * k], -1, atol=1e-12)
    nearest = model.inverse_transform(there)
    cosh = -np.einsum("mi,ij,mj->m", points, product(4), nearest)
    assert np.mean(cosh**2 - 1) == pytest.approx(fitted(points).eigenvalues_[k:].sum(), rel=1e-10)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = model.inverse_transform(
            lift(there[:, 1:] + 0.1 * rng.standard_normal((len(there), k)))
        )
        assert (-np.einsum("mi,ij,mj->m", points, product(4), moved) >= cosh * (1 - 1e-13)).all()


def test_tangent_coordinates_are_as_long_as_distances():
    points = cloud()
    model = fitted(points, 2)
    tangent, there = (
        model.transform(points),
        model.set_params(output="hyperboloid").transform(points),
    )
    distances = np.arccosh(-points @ product(4) @ model.base_point_)
    whole = fitted(points).transform(points)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), distances, rtol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(tangent, axis=1), np.arccosh(there[:, 0]), rtol=1e-7)


@pytest.mark.parametrize("output", ["tangent", "hyperboloid"])
@pytest.mark.parametrize("form", ["euclidean", "hyperboloid"])
@pytest.mark.parametrize("time", ["first", "last"])
def test_inverse_transform_undoes(output, form, time):
    X = cloud() if time == "first" else np.roll(cloud(), -1, axis=1)
    options = dict(
        input=form, output=output, time=time, scale=1.0 if form == "hyperboloid" else 0.3
    )
    whole = HyperbolicPCA(**options).fit(X)
    np.testing.assert_allclose(whole.inverse_transform(whole.transform(X)), X, atol=1e-11)
    thin = HyperbolicPCA(2, **options).fit(X)
    there = thin.transform(X)
    assert there.shape == (60, 2 if output == "tangent" else 3)
    assert list(thin.get_feature_names_out()) == [
        f"hyperbolicpca{i}" for i in range(there.shape[1])
    ]
    np.testing.assert_allclose(thin.transform(thin.inverse_transform(there)), there, atol=1e-11)


@pytest.mark.parametrize(("has", "takes"), [("last", "first"), ("first", "last")])
def test_points_of_the_other_convention_are_told(has, takes):
    points = cloud() if has == "first" else np.roll(cloud(), -1, axis=1)
    with pytest.raises(ValueError, match=f'got points with the time {has}: pass time="{has}"'):
        fitted(points, time=takes)


def test_small_scale_is_euclidean_pca():
    X = np.random.default_rng(0).standard_normal((50, 4)) * [3, 2, 1, 0.5] + 1.0
    scale = 1e-5
    model, euclidean = HyperbolicPCA(2, scale=scale).fit(X), PCA(2).fit(X)
    # the two differ by the curvature: scale^2 |x|^2 = 1e-8, relative
    np.testing.assert_allclose(
        np.abs(model.transform(X)) / scale, np.abs(euclidean.transform(X)), atol=1e-4
    )
    np.testing.assert_allclose(
        model.eigenvalues_ / scale**2, euclidean.explained_variance_ * 49 / 50, rtol=1e-5
    )
    back = euclidean.inverse_transform(euclidean.transform(X))
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), back, atol=1e-5)
    np.testing.assert_allclose(
        model.explained_dispersion_ratio_, euclidean.explained_variance_ratio_, rtol=1e-5
    )


@pytest.mark.parametrize(("m", "dimension"), [(60, 2), (3, 2), (60, 0)])
def test_points_that_do_not_span(m, dimension):
    """Points of a tilted H^dimension in H^5: C has rank dimension + 1, other lambda are zero."""
    small = cloud(m, 2)[:, 1 : dimension + 1] if dimension else np.full((m, 1), 0.7)
    flat = np.column_stack([small, np.zeros((m, 5 - small.shape[1]))])
    points = lift(flat) @ jorth.random_point(Signature.lorentz(6), cond=9.0, seed=1)
    model = fitted(points)
    roundoff = 10 * 6 * 2.0**-53 * np.square(points).sum(axis=1).max()
    assert (model.eigenvalues_[dimension:] < roundoff).all()
    assert (model.eigenvalues_[:dimension] > 1e3 * roundoff).all()
    axes = np.vstack([model.base_point_, model.components_])
    J = product(5)
    np.testing.assert_allclose(axes @ J @ axes.T, J[: len(axes), : len(axes)], atol=1e-14)
    if dimension:
        thin = fitted(points, dimension)
        np.testing.assert_allclose(
            thin.inverse_transform(thin.transform(points)), points, atol=1e-12 * points.max()
        )
    else:
        np.testing.assert_allclose(model.base_point_, points[0], rtol=1e-12)


def test_far_from_the_origin():
    """A cloud at a distance of 9, whose rounded coordinates, u e^9, move points by u e^18 = 1e-8.

    Nothing is added to that.
    """
    near = cloud(spread=0.5)
    boost = np.eye(5)
    boost[2, 2] = boost[0, 0] = np.cosh(9.0)
    boost[2, 0] = boost[0, 2] = np.sinh(9.0)
    one, other = fitted(near, 2), fitted(near @ boost, 2)
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-7)
    np.testing.assert_allclose(
        np.abs(other.transform(near @ boost)), np.abs(one.transform(near)), atol=1e-7
    )
