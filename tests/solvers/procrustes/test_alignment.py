"""`procrustes`: the best isometry, in whichever component it lies."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse
import torch

import jorth
from jorth import Signature, Status, procrustes
from jorth.solvers.procrustes_starts import Clouds, Starts

SIGNATURES = {
    "Lorentz, time last": Signature.lorentz(5, "last"),
    "Lorentz, time first": Signature.lorentz(4),
    "unsorted": Signature.of([1, -1, 1, -1, 1, 1]),
    "orthogonal": Signature(4, 0),
    "negative": Signature(0, 3),
}
COMPONENTS = list(product((1, -1), repeat=2))


def planted(signature, component=(1, 1), *, noise=0.0, cond=10.0, seed=0):
    rng = np.random.default_rng(seed)
    X = jorth.random_point(signature, cond=cond, component=component, seed=rng)
    source = rng.standard_normal((5 * signature.n, signature.n))
    return source, source @ X + noise * rng.standard_normal(source.shape), X


def runs(result):
    """Each run evaluates its start, too."""
    return result.evaluations.gradient - result.iterations


def data_start(objective, signature):
    return Starts(Clouds.compressed(objective), signature).points(0)[0]


def component_bounds(objective, signature):
    clouds = Clouds.compressed(objective)
    starts, unit = Starts(clouds, signature), clouds.scale.item() ** 2
    one = np.zeros(1, dtype=int)
    found = {}
    for turn in range(len(starts.components)):
        component = jorth.component(starts.points(turn)[0], signature)
        found[component] = unit * starts.bound(turn, one).item()
    return found


def components_of(signature):
    return [
        c
        for c in COMPONENTS
        if not (signature.p == 0 and c[0] < 0) and not (signature.q == 0 and c[1] < 0)
    ]


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_planted_isometry_is_found_in_every_component(name):
    signature = SIGNATURES[name]
    for component in components_of(signature):
        source, target, X = planted(signature, component)
        result = jorth.procrustes(source, target, signature)
        assert result.status is Status.CONVERGED
        assert runs(result) == 1  # the bound rules the others out
        # the least-squares solution is accurate to cond(source) u,
        # its polar factor to ||X||^2 times that
        assert np.abs(result.x - X).max() < 1e-12
        assert jorth.residual(result.x, signature) < 1e-14


@pytest.mark.parametrize("noise", [0.1, 2.0])
@pytest.mark.parametrize("name", ["Lorentz, time last", "unsorted"])
def test_no_start_of_many_ends_lower(name, noise):
    signature = SIGNATURES[name]
    for trial, component in enumerate(COMPONENTS[1:3]):
        source, target, _ = planted(signature, component, noise=noise, seed=trial)
        found = jorth.procrustes(source, target, signature)
        objective = jorth.Procrustes(source, target)
        starts = [jorth.random_point(signature, component=c, seed=9) for c in COMPONENTS]
        others = [
            jorth.minimize(objective, x0, signature=signature, method="riemannian-cg").value
            for x0 in starts
        ]
        assert found.value <= min(others) * (1 + 1e-9)


@pytest.mark.parametrize("smallest", [1.0, 0.1])
@pytest.mark.parametrize("name", SIGNATURES)
def test_the_bound_is_below_every_value(name, smallest):
    """Points near the least-squares solution in every component,
    where the bound is nearly attained, and far ones."""
    signature = SIGNATURES[name]
    rng = np.random.default_rng(1)
    for trial in range(2):
        Q = np.linalg.qr(rng.standard_normal((20, signature.n)))[0] * np.geomspace(
            1.0, smallest, signature.n
        )
        M = 0.7 * jorth.random_point(signature, cond=2.0, seed=trial)
        objective = jorth.Procrustes(Q, Q @ M)
        bounds = component_bounds(objective, signature)
        for component in components_of(signature):
            fits = [
                jorth.random_point(signature, cond=c, component=component, seed=1)
                for c in (1.0, 1.5, 2.0, 5.0)
            ]
            best = jorth.minimize(
                objective, fits[0], signature=signature, method="riemannian-lbfgs"
            ).x
            for X in [*fits, best]:
                assert objective.value(torch.from_numpy(X)).item() >= bounds[component] * (
                    1 - 1e-12
                )


def test_the_bound_is_attained():
    """M diagonal with entries below 1:
    the nearest X has the sign of the smallest entry of a block turned, or none."""
    signature = Signature(2, 1)
    source = np.eye(3)
    M = np.diag([0.9, 0.5, 0.8])
    objective = jorth.Procrustes(source, M)
    bounds = component_bounds(objective, signature)
    for component, X in {
        (1, 1): np.diag([1.0, 1, 1]),
        (-1, 1): np.diag([1.0, -1, 1]),
        (1, -1): np.diag([1.0, 1, -1]),
        (-1, -1): np.diag([1.0, -1, -1]),
    }.items():
        assert bounds[component] == pytest.approx(np.square(M - X).sum() / 6, rel=1e-14)


def test_starts_lie_in_their_components():
    signature = SIGNATURES["unsorted"]
    source, target, X = planted(signature, (-1, 1), noise=0.01)
    objective = jorth.Procrustes(source, target)
    begin = Starts(Clouds.compressed(objective), signature)
    starts = [begin.points(turn)[0] for turn in range(4)]
    kinds = [jorth.component(start, signature) for start in starts]
    assert set(kinds) == set(COMPONENTS)
    assert kinds[0] == (-1, 1)  # the polar factor is by far the lowest
    assert np.abs(starts[0] - X).max() < 0.1


def test_where_no_polar_factor_exists_the_identity_starts():
    signature = Signature(1, 1)
    source, target = np.eye(2), np.array([[0.0, 2.0], [3.0, 0.0]])
    with pytest.raises(jorth.PolishError):
        jorth.polar(target, signature)
    result = jorth.procrustes(source, target, signature)
    assert result.success
    grid = np.linspace(-5, 5, 200001)
    cosh, sinh = np.cosh(grid), np.sinh(grid)  # [[a cosh, b sinh], [a sinh, b cosh]]
    values = [2 * cosh**2 + (b * sinh - 2) ** 2 + (a * sinh - 3) ** 2 for a, b in COMPONENTS]
    assert result.value == pytest.approx(np.min(values) / 4, rel=1e-8)


def test_a_factor_far_out_is_no_start():
    """The factor of s H, H a boost, is H. For s = 0.65 it is lower than the identity,
    but not clearly: a fifth."""
    signature = Signature(1, 1)
    boost = np.array([[np.cosh(1.0), np.sinh(1.0)], [np.sinh(1.0), np.cosh(1.0)]])
    hardly, clearly = (jorth.Procrustes(np.eye(2), s * boost) for s in (0.65, 0.9))
    np.testing.assert_allclose(jorth.polar(0.65 * boost, signature)[0], boost, rtol=1e-12)
    identity = torch.eye(2, dtype=torch.float64)
    assert hardly.value(torch.from_numpy(boost)) < 0.9 * hardly.value(identity)
    np.testing.assert_array_equal(data_start(hardly, signature), np.eye(2))
    np.testing.assert_allclose(data_start(clearly, signature), boost, rtol=1e-12)


def test_the_factor_starts_near_a_planted_isometry():
    signature = Signature(50, 50)
    source, target, X = jorth.datasets.planted_procrustes(
        200, signature, noise=0.1, source_condition=3, seed=0
    )
    start = data_start(jorth.Procrustes(source, target), signature)
    assert jorth.residual(start, signature) < 1e-13
    assert np.linalg.norm(start - X) < 0.5 * np.linalg.norm(X)  # measured: 0.11


@pytest.mark.parametrize("rank", [6, 4])
def test_least_squares_of_any_rank(rank):
    random = np.random.default_rng(1)
    source = random.standard_normal((12, rank)) @ random.standard_normal((rank, 6))
    target = random.standard_normal((12, 6))
    expected = np.linalg.lstsq(source, target, rcond=None)[0]
    objective = jorth.Procrustes(source, target)
    found = Clouds.compressed(objective).least_squares()[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_components_start_stays_with_x0():
    signature = Signature(3, 2)
    source, target, X = planted(signature, (-1, -1))
    x0 = np.eye(5)
    stayed = jorth.procrustes(source, target, signature, x0=x0, components="start")
    assert jorth.component(stayed.x, signature) == (1, 1)
    assert runs(stayed) == 1
    assert stayed.value > 0.1
    everywhere = jorth.procrustes(source, target, signature, x0=x0)
    assert np.abs(everywhere.x - X).max() < 1e-12
    assert runs(everywhere) > 1
    assert everywhere.iterations >= stayed.iterations


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_tolerance_goes_with_the_data(scale):
    """From the identity, so that it takes steps: x is the same for data in any unit."""
    signature = Signature(3, 2)
    source, target, X = planted(signature, noise=1e-3)
    one, other = (
        jorth.procrustes(c * source, c * target, signature, x0=np.eye(5), components="start")
        for c in (1.0, scale)
    )
    assert other.success
    assert one.iterations > 3
    assert np.abs(one.x - other.x).max() < 1e-8
    assert np.abs(one.x - X).max() < 1e-2


def test_the_tolerance_does_not_go_with_the_number_of_rows():
    """Rows that are there twice make the same f."""
    source, target, _ = planted(Signature(3, 2), noise=1e-3)
    once = jorth.procrustes(source, target, Signature(3, 2))
    twice = jorth.procrustes(
        np.vstack([source, source]), np.vstack([target, target]), Signature(3, 2)
    )
    assert once.gradient_scale == pytest.approx(twice.gradient_scale, rel=1e-12)
    gram, mixed = source.T @ source / len(source), source.T @ target / len(source)
    expected = np.linalg.norm(gram) + np.linalg.norm(mixed)
    assert once.gradient_scale == pytest.approx(expected, rel=1e-12)
    assert once.success
    assert once.gradient_norm <= 1e-7 * expected


def test_kinds_of_arrays():
    signature = Signature(3, 2)
    source, target, X = planted(signature)
    dense = jorth.procrustes(source, target, signature)
    sparse = jorth.procrustes(scipy.sparse.csr_array(source), target, signature)
    np.testing.assert_allclose(sparse.x, dense.x, atol=1e-13)
    single = jorth.procrustes(
        torch.from_numpy(source).float(), torch.from_numpy(target).float(), signature
    )
    assert single.x.dtype == torch.float32
    assert single.success
    # 20 n u ||X||^2 cond(source)
    assert np.abs(single.x.numpy() - X).max() < 20 * 5 * 6e-8 * 10 * np.linalg.cond(source)


def test_a_thin_target_has_a_thin_answer():
    """k = 1: r^T J r = 1; by the secular equation (S^T S + t J) r = S^T y in scipy."""
    from scipy.optimize import brentq

    signature = Signature.lorentz(4, "last")
    rng = np.random.default_rng(0)
    source = rng.standard_normal((30, 4))
    # near the image of a feasible column:
    # with any y the set has local minima that are not the least one
    y = source @ jorth.random_point(signature, cond=3.0, seed=1)[:, :1] + 0.3 * rng.standard_normal(
        (30, 1)
    )
    result = jorth.procrustes(source, y, signature, gradient_tolerance=1e-11)
    assert result.success
    J = np.diag(signature.signs.astype(float))
    A, b = source.T @ source, source.T @ y[:, 0]

    def defect(t):
        r = np.linalg.solve(A + t * J, b)
        return r @ J @ r - 1

    spectrum = (
        1 / np.linalg.eigvals(np.linalg.solve(A, J)).real
    )  # A + t J is positive definite between -low and high
    low, high = spectrum[spectrum > 0].min(), -spectrum[spectrum < 0].max()
    t = brentq(defect, -low * (1 - 1e-9), high * (1 - 1e-9), xtol=1e-14)
    np.testing.assert_allclose(result.x[:, 0], np.linalg.solve(A + t * J, b), atol=1e-7)


def test_another_method_ends_there_and_limits():
    signature = Signature(3, 2)
    source, target, _ = planted(signature, noise=0.5)
    best = jorth.procrustes(source, target, signature)
    objective = jorth.Procrustes(source, target)
    slow = jorth.minimize(objective, best.x, signature=signature, method="gs-jobcd")
    assert slow.value == pytest.approx(best.value, rel=1e-9)
    short = jorth.procrustes(source, target, signature, max_iterations=1, components="start")
    assert short.iterations == 1
    assert short.status is Status.MAX_ITERATIONS
    nothing = jorth.procrustes(source, source, signature)
    np.testing.assert_allclose(nothing.x, np.eye(5), atol=1e-13)


# -- fewer rows than columns: f is not coercive, and there is an answer all the same


SHAPES = [(1, 2, 1), (2, 5, 3), (7, 8, 5), (1, 6, 2), (3, 4, 0), (3, 4, 4)]


@pytest.mark.parametrize(("m", "n", "p"), SHAPES)
@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_planted_isometry_of_few_points_is_met(m, n, p, kind):
    """target = source R: the least value is zero, at R and elsewhere."""
    sig, rng = Signature(p, n - p), np.random.default_rng(m)
    source = rng.standard_normal((m, n))
    target = (
        source @ jorth.random_point(sig, cond=4.0, seed=1)
        if 0 < p < n
        else source @ jorth.random_point(sig, seed=1)
    )
    result = procrustes(kind(source), target, sig, max_iterations=500)
    assert result.value <= 1e-12 * np.sum(target**2)
    assert result.residual <= 1e3 * n * 2.0**-53
    exact = np.sum((source @ result.x - target) ** 2) / (2 * m)
    assert abs(result.value - exact) <= 1e-12 * (1 + np.sum(target**2))


@pytest.mark.parametrize(("m", "n", "p"), SHAPES)
def test_points_that_no_isometry_maps(m, n, p):
    """Two points of other norms <x, x>_J: f is above zero,
    and a critical point or the end of the way is returned."""
    sig, rng = Signature(p, n - p), np.random.default_rng(m + 10)
    source, target = rng.standard_normal((2, m, n))
    result = procrustes(source, target, sig, max_iterations=500)
    assert result.status in (Status.CONVERGED, Status.STALLED, Status.MAX_ITERATIONS)
    assert result.value <= np.sum((source - target) ** 2) / (2 * m)
    assert np.isfinite(result.x).all()


def test_thin_and_data_of_low_rank():
    sig, rng = Signature(4, 2), np.random.default_rng(5)
    source, target = rng.standard_normal((3, 6)), rng.standard_normal((3, 2))
    thin = procrustes(source, target, sig, max_iterations=300)
    assert thin.x.shape == (6, 2)
    assert thin.value < np.sum((source[:, :2] - target) ** 2) / 6
    low = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 6))
    assert procrustes(low, low, sig, max_iterations=300).value <= 1e-20 * np.sum(low**2)


def test_results_print_in_a_few_lines():
    source, target, _ = planted(Signature(3, 2), noise=0.1)
    result = procrustes(source, target, Signature(3, 2))
    lines = str(result).splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) < 220
    assert lines[0].startswith("status         CONVERGED, ")
    assert result.message in lines[0]
    assert lines[-2] == "x              a float64 array of shape (5, 5)"
    assert lines[-1].startswith(f"gap            {result.gap:.3g}, no feasible x has ")
    assert repr(result) == str(result)
    assert (result.fun, result.nit) == (result.value, result.iterations)
    assert result.nfev >= 1


def test_results_of_a_batch_print_in_a_few_lines():
    source, target, _ = planted(Signature(3, 2), noise=0.1)
    found = procrustes(np.stack([source, source]), np.stack([target, target]), Signature(3, 2))
    lines = str(found).splitlines()
    assert len(lines) == 4
    assert lines[0] == "status  2 problems: 2 CONVERGED"
    assert lines[-1] == "x       a float64 array of shape (2, 5, 5)"


def test_a_source_without_an_inverse_in_range_is_no_error():
    """1e-320: the least-squares solution and the multipliers overflow, and bound nothing."""
    source, target, _ = planted(Signature(3, 2), noise=0.1)
    result = jorth.procrustes(1e-320 * source, target, Signature(3, 2), max_iterations=20)
    assert np.isfinite(result.x).all()
    assert result.bound <= result.value
