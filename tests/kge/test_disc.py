"""`project_to_disc`: a plane comes back as it is, whatever isometry hides it."""

import numpy as np
import pytest
import scipy.stats
import torch

import jorth
from jorth.kge.pictures import geodesics, project_to_disc
from tests.kge.models import SIGNATURE, scattered


def disc_distance(a, b):
    """The distance in the Poincare disc."""
    apart = np.square(a - b).sum(axis=-1)
    room = (1 - np.square(a).sum(axis=-1)) * (1 - np.square(b).sum(axis=-1))
    return np.arccosh(1 + 2 * apart / room)


def hidden_plane(seed, alpha):
    """A model whose entities lie on a plane through their centroid, and their distances."""
    signature = jorth.Signature.of([1, 1, -1, 1, 1])
    rng = np.random.default_rng(seed)
    v = rng.standard_normal((20, 2)) * [1.5, 0.5]
    v = np.concatenate([v, -v])  # so that the centroid is the origin
    length = np.linalg.norm(v, axis=1, keepdims=True)
    x = np.zeros((40, 5))
    x[:, [0, 3]] = v * np.sinh(length) / length
    x[:, 2] = np.cosh(length)[:, 0]
    X = jorth.random_point(signature, cond=8.0, component=(1, -1), seed=seed)
    model = scattered(40, 1, signature=signature, alpha=alpha)
    with torch.no_grad():
        model.points.copy_(torch.from_numpy(alpha * x @ X.T))
    g = -(x * signature.signs) @ x.T
    return model, np.arccosh(np.maximum(g, 1))


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_a_plane_is_drawn_without_distortion(seed, alpha):
    model, distances = hidden_plane(seed, alpha)
    disc = project_to_disc(model)
    assert disc.points.shape == (40, 2)
    drawn = disc_distance(disc.points[:, None], disc.points)
    np.testing.assert_allclose(drawn, distances, atol=1e-6)
    assert disc.kept == pytest.approx(1, abs=1e-10)
    assert disc.agreement == pytest.approx(1, abs=1e-4)  # ranks of distances equal to rounding
    assert "array" not in repr(disc)


def test_figures_of_a_cloud():
    signature = jorth.Signature(6, 1)
    model = scattered(50, 1, signature=signature)
    disc = project_to_disc(model)
    E = model.embeddings().detach().numpy()
    E *= np.sign(E[:, -1:])
    i, j = np.triu_indices(50, 1)
    true = jorth.ultrahyperbolic.distance(E[i], E[j], signature)
    drawn = disc_distance(disc.points[i], disc.points[j])
    assert disc.agreement == pytest.approx(scipy.stats.spearmanr(true, drawn).statistic, abs=1e-9)
    assert 1 / 3 <= disc.kept < 1  # the best two of six directions
    centre = jorth.ultrahyperbolic.centroid(E, signature)
    radii = jorth.ultrahyperbolic.distance(E, centre, signature)
    shown = disc_distance(disc.points, np.zeros(2))
    assert (shown <= radii * (1 + 1e-12)).all()
    assert disc.kept == pytest.approx((shown**2).sum() / (radii**2).sum(), rel=1e-9)


@pytest.mark.parametrize("signature", [jorth.Signature(4, 1), SIGNATURE], ids=str)
def test_a_point_and_its_antipode_are_one(signature):
    model = scattered(40, 1, signature=signature)
    with torch.no_grad():
        model.points[:, signature.negative[0]] = model.points[:, signature.negative[0]].abs() + 1
    before = project_to_disc(model)
    with torch.no_grad():
        model.points[:15] *= -1
    after = project_to_disc(model)
    np.testing.assert_allclose(after.points, before.points, atol=1e-12)
    assert after.agreement == pytest.approx(before.agreement, abs=1e-6)


def test_other_signatures():
    disc = project_to_disc(scattered(300, 1, signature=SIGNATURE))
    assert (np.linalg.norm(disc.points, axis=1) < 1).all()
    line = project_to_disc(scattered(10, 1, signature=jorth.Signature(1, 1)))
    assert not line.points[:, 1].any()
    assert line.agreement == pytest.approx(1, abs=1e-9)
    with pytest.raises(ValueError, match="model must have p >= 1"):
        project_to_disc(scattered(10, 1, signature=jorth.Signature(0, 3)))


def test_geodesics_are_shortest():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.65, 0.65, (2, 30, 2))
    paths = geodesics(a, b)
    np.testing.assert_allclose(paths[:, 0], a, atol=1e-14)
    np.testing.assert_allclose(paths[:, -1], b, atol=1e-14)
    lengths = disc_distance(paths[:, 1:], paths[:, :-1]).sum(axis=1)
    np.testing.assert_allclose(lengths, disc_distance(a, b), rtol=1e-9)
