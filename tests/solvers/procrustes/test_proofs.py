"""The rounding errors that enter the bounds of `procrustes`: none may be left out."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import jorth
from benchmarks import certificates
from jorth import Signature
from jorth.solvers.certificate import JointDual, Neighbourhood, half_energy
from jorth.solvers.procrustes_starts import Clouds, Starts

# a few random points may look as if their time was in the other column
pytestmark = pytest.mark.filterwarnings("ignore:the signature has its time")
LORENTZ = Signature(1, 1)
SIGNS = np.array([1.0, -1.0])


def exact(matrix):
    return np.array([[Fraction(float(x)) for x in row] for row in matrix])


def neighbourhood(source, target, X):
    """f seen from X, by the rows as they are."""
    S, T, X = (np.asarray(part)[None] for part in (source, target, X))
    return Neighbourhood(Clouds(S, T, np.zeros(1), np.ones(1), len(source)), X, LORENTZ)


def frobenius(matrix):
    return float(sum(x * x for x in matrix.ravel())) ** 0.5


# -- <r, H^-1 r> / 2


@pytest.mark.parametrize("solved", [False, True])
def test_errors_make_the_energy_larger(solved):
    """For the worst error: along the weakest direction of H, against r and against H q."""
    weights = np.array([[1e-3, 1.0], [1.0, 1.0]])  # H is diagonal
    worst = np.array([[1.0, 0.0], [0.0, 0.0]])
    r, error, of_Hq = np.array([[1e-3, 1.0], [2.0, 3.0]]), 1e-4, 2e-4
    true = float((r**2 / weights).sum()) / 2
    computed = r - error * worst
    if solved:
        q = r / weights
        Hq = weights * q - of_Hq * worst
        found = half_energy(computed, error, 1e-3, q, Hq, of_Hq)
        assert true <= found <= 1.3 * true
        off = half_energy(computed, error, 1e-3, 0.5 * q, 0.5 * Hq, of_Hq)
        assert off >= true
    else:
        only = half_energy(r[:1, :1] - error, error, 1e-3)  # 1e-3 is all there is: exact
        assert only == pytest.approx(1e-6 / 1e-3 / 2, rel=1e-12)
        assert half_energy(computed, error, 1e-3) >= true


@pytest.mark.parametrize("least", [0.0, -1.0, np.nan])
def test_no_energy_where_h_is_not_definite(least):
    assert half_energy(np.ones((2, 2)), 0.0, least) == np.inf


def test_the_errors_of_a_and_of_the_gradient_enter_the_joint_gap():
    X, G, zero = np.eye(2), np.diag([0.1, 0.2]), np.zeros((2, 2))
    plain = JointDual(np.eye(2), SIGNS).gap(X, G, zero, zero)
    assert plain == pytest.approx(0.025, rel=1e-9)  # |G|^2 / 2
    wrong = JointDual(np.eye(2), SIGNS, 0.0, 1e-3).gap(X, G, zero, zero)
    assert wrong >= (np.linalg.norm(G) + 1e-3) ** 2 / 2 * (1 - 1e-12)
    loose = JointDual(np.eye(2), SIGNS, 1e-3).gap(X, G, zero, zero)
    assert loose >= plain / (1 - 1e-3)  # A may be smaller by 1e-3
    for share, finite in ((1 - 1e-4, False), (0.99, True)):
        gap = JointDual(np.eye(2), SIGNS, 1e-3).gap(X, G, share * X, zero)
        assert np.isfinite(gap) == finite


# -- what is computed from the rows


@pytest.mark.parametrize("m", [2, 9])
def test_the_errors_cover_the_rounding(m):
    """Against fractions, for points far out; and they are not larger than need be."""
    ratios = {"delta": [], "doubt": [], "of_A": [], "of_G": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        S, T = rng.standard_normal((2, m, 2))
        X = jorth.random_point(LORENTZ, cond=1e6, seed=seed)
        seen = neighbourhood(S, T, X)
        S, T, X = exact(S), exact(T), exact(X)
        D = S.dot(X) - T
        ratios["delta"].append(frobenius(D - exact(seen.D[0])) / seen.delta[0])
        f = (D * D).sum() / (2 * m)
        ratios["doubt"].append(float(abs(f - Fraction(float(seen.value[0])))) / seen.doubt[0])
        ratios["of_A"].append(frobenius(S.T.dot(S) / m - exact(seen.A[0])) / seen.of_A[0])
        ratios["of_G"].append(frobenius(S.T.dot(D) / m - exact(seen.G[0])) / seen.of_G[0])
    for found in ratios.values():
        assert 1e-4 < max(found) <= 1


@pytest.mark.parametrize("off", [1e-6, -1e-6])
def test_the_bound_by_rows_is_for_feasible_points(off):
    """One row y with y_1^2 - y_2^2 = 1: f is least at (1, 0), and X is not quite feasible."""
    source, target = np.array([[1.0, 0.0]]), np.array([[1.5, 0.0]])
    found = neighbourhood(source, target, (1 + off) * np.eye(2)).certificate()
    least = min(0.125, (0.5 - off) ** 2 / 2)
    assert least * (1 - 1e-9) <= found.bound[0] <= least * (1 + 1e-15)


def test_rows_that_no_isometry_maps_are_certified():
    """Two rows of four; the multiplier of the rows proves it, whatever the rank."""
    sig = Signature(2, 2)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        source = rng.standard_normal((2, 4))
        target = source @ jorth.random_point(sig, cond=3.0, seed=seed)
        target += 0.05 * rng.standard_normal((2, 4))
        result = jorth.procrustes(source, target, sig)
        assert "; certified" in result.message
        assert result.value > 0
        assert result.bound >= result.value * (1 - 1e-6)
        batch = jorth.procrustes(np.stack([source] * 2), np.stack([target] * 2), sig, certify=True)
        assert (batch.gap <= 1e-6).all()


def test_multipliers_of_rows_beyond_one_are_no_proof():
    """N = -2 at y = (1, 0) for the target (3, 0): f is least elsewhere, at cosh t = 3/2."""
    source, target = np.array([[1.0, 0.0]]), np.array([[3.0, 0.0]])
    seen = neighbourhood(source, target, np.eye(2)).certificate()
    assert not seen.closed[0]
    assert seen.bound[0] <= 1.75
    assert jorth.procrustes(source, target, LORENTZ).value == pytest.approx(1.75, rel=1e-9)


def test_rounding_hides_no_large_gap():
    """At |X| = 1e13 the rounding of f is a few per cent of it."""
    X = np.array([[np.cosh(30.0), np.sinh(30.0)], [np.sinh(30.0), np.cosh(30.0)]])
    target = X + np.array([[1.0, 0.3], [-0.2, 0.5]])
    seen = neighbourhood(np.eye(2), target, X)
    assert seen.doubt[0] > 1e-3 * seen.value[0]
    assert not seen.certificate().closed[0]


# -- components


@pytest.mark.parametrize("error", [0.0, 1e-3, 0.3, 3.0])
def test_the_bounds_of_components_allow_for_an_inexact_m(monkeypatch, error):
    """Around any M: f has these bounds with the distance to the exact M."""
    sig = Signature(2, 1)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        source = np.linalg.qr(rng.standard_normal((6, 3)))[0] * np.array([1.0, 0.7, 0.4])
        near = rng.uniform(0.0, 0.9, 3)
        exact_M = np.diag(near)
        M = exact_M + error * rng.standard_normal((3, 3))
        parts = [part[None] for part in (source, source @ exact_M, M)]
        clouds = Clouds.of(*parts[:2])
        unit = clouds.scale.item() ** 2
        monkeypatch.setattr(Clouds, "least_squares", lambda self: parts[2])  # noqa: B023
        starts = Starts(clouds, sig)
        objective = jorth.Procrustes(source, source @ exact_M)
        for turn in range(4):
            bound = unit * starts.bound(turn, np.zeros(1, dtype=int)).item()
            end = jorth.minimize(objective, starts.points(turn)[0], signature=sig)
            assert bound <= end.value * (1 + 1e-9)


# -- everything together


@pytest.mark.parametrize("kind", certificates.KINDS)
def test_no_certificate_is_false(kind):
    """Twenty problems of each kind, alone and in a batch, against an oracle of its own."""
    counts = {name: Counter() for name in certificates.KINDS}
    seed = 9 * 12345 + list(certificates.KINDS).index(kind)
    certificates.judge(seed, counts)
    found = counts[kind]
    assert found["problems"] == certificates.BATCH
    assert found["false_certificate"] == found["false_bound"] == 0
