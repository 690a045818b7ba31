"""The lower bound on f in `procrustes`, the gap, and the starts that it calls for."""

import mpmath
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, Status, procrustes
from jorth.datasets import planted_procrustes
from jorth.solvers.certificate import CLOSED, LARGEST, Dual, JointDual, Neighbourhood, defects
from jorth.solvers.procrustes_starts import Clouds

# a few random points may look as if their time was in the other column
pytestmark = pytest.mark.filterwarnings("ignore:the signature has its time")
U = 2.0**-53
KINDS = {
    "lorentz": Signature.lorentz(4, "first"),
    "balanced": Signature(2, 2),
    "unsorted": Signature.of([1, -1, 1, -1, 1]),
    "orthogonal": Signature(3, 0),
    "negative": Signature(0, 3),
    "plane": Signature(1, 1),
    "one": Signature(1, 0),
}


def clouds(sig, noise, seed, *, source_condition=10.0, point_condition=10.0, m=20):
    return planted_procrustes(
        m,
        sig,
        noise=noise,
        seed=seed,
        source_condition=source_condition,
        point_condition=point_condition if 0 < sig.p < sig.n else 1.0,
    )


def runs(result):
    """Each run evaluates its start, too."""
    return result.evaluations.gradient - result.iterations


def certificate_of(source, target, sig, X, known=0.0):
    """The best certificate of a single problem, whose numbers are of size one."""
    clouds = Clouds.of(source[None], target[None])
    unit = clouds.scale.item() ** 2
    seen = Neighbourhood(clouds, X[None], sig)
    return unit * seen.certificate(known / unit, thorough=True).bound.item()


def mean_square(source, target, X):
    return np.sum((source @ X - target) ** 2) / (2 * len(source))


def exact_mean_square(source, target, X):
    with mpmath.workdps(40):
        D = mpmath.matrix(source.tolist()) * mpmath.matrix(X.tolist())
        D -= mpmath.matrix(target.tolist())
        return mpmath.fsum(entry**2 for entry in D) / (2 * len(source))


# -- the bound


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.3, 3.0])
def test_no_feasible_point_is_below_the_bound(kind, noise):
    """Neither the planted one, nor its neighbours, nor the ends of other runs.

    These are feasible to n u ||X||^2, which changes f by that times the multipliers.
    """
    sig = KINDS[kind]
    for seed in range(4):
        source, target, planted = clouds(sig, noise, seed)
        result = procrustes(source, target, sig)
        assert 0 <= result.bound <= result.value
        floor = U * np.sum(target**2) / (2 * len(target))
        relative = (result.value - result.bound) / max(result.value, floor)
        assert result.gap == pytest.approx(relative, rel=1e-6, abs=1e-13)
        objective = jorth.Procrustes(source, target)
        for trial in range(3):
            change = 2.0 if 0 < sig.p < sig.n else 1.0
            near = planted @ jorth.random_point(sig, cond=change, seed=trial)
            other = jorth.minimize(
                objective, near, signature=sig, method="gs-jobcd", max_iterations=10
            )
            for X in (near, other.x):
                reach = np.linalg.norm(source) * np.linalg.norm(X) + np.linalg.norm(target)
                slack = 10 * sig.n * U * reach**2 / len(source)
                assert result.bound <= exact_mean_square(source, target, X) + slack


def test_the_bound_allows_for_the_rounding_of_what_no_x_can_fit():
    """f at 1 and -1, which are feasible, is known exactly. Nearly all of it is the rest of a QR
    factorisation of the rows, with errors of a few u."""
    X = np.ones((1, 1))
    for seed in range(10):
        source, target = np.random.default_rng(seed).standard_normal((2, 20, 1))
        target -= source * (source.T @ target) / (source.T @ source)
        source *= 1e-6
        least = min(exact_mean_square(source, target, x) for x in (X, -X))
        bound = procrustes(source, target, KINDS["one"]).bound
        assert least * (1 - 1000 * U) <= bound <= least


def plane_minimum(source, target):
    """The least f for J = diag(1, -1), by a grid over all four components, refined."""
    best = np.inf
    for a in (1, -1):
        for b in (1, -1):
            low, high = -8.0, 8.0
            for _ in range(12):
                t = np.linspace(low, high, 2001)
                X = np.array([[a * np.cosh(t), b * np.sinh(t)], [a * np.sinh(t), b * np.cosh(t)]])
                parts = np.einsum("mi,ijt->mjt", source, X) - target[:, :, None]
                f = (parts**2).sum((0, 1)) / (2 * len(source))
                at = int(f.argmin())
                low, high = t[max(at - 1, 0)], t[min(at + 1, 2000)]
            best = min(best, f.min())
    return best


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_the_plane_against_a_grid(noise):
    sig = Signature(1, 1)
    closed = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        source = rng.standard_normal((6, 2)) * np.array([1.0, 10.0 ** rng.uniform(-2, 0)])
        target = source @ jorth.random_point(sig, cond=5.0, seed=seed)
        target += noise * rng.standard_normal((6, 2))
        result = procrustes(source, target, sig)
        best = plane_minimum(source, target)
        assert result.bound <= best * (1 + 1e-12)
        assert best - 1e-9 <= result.value * (1 + 1e-9)
        if result.gap <= CLOSED:
            closed += 1
            assert result.value == pytest.approx(best, rel=2e-6)
    assert closed >= 10


def test_the_bound_in_many_digits():
    """f - <r, H^-1 r> / 2, and that H is positive definite, with 60 digits."""
    sig = Signature.lorentz(3, "first")
    source, target, _ = clouds(sig, 1e-3, 3, source_condition=1e3, point_condition=1e3, m=30)
    result = procrustes(source, target, sig)
    m, n = source.shape
    A, s = source.T @ source / m, sig.signs.astype(float)
    G = source.T @ (source @ result.x - target) / m
    size = np.linalg.norm(source) * np.linalg.norm(result.x) + np.linalg.norm(target)
    error = (m + n) * U * np.linalg.norm(source) * size / m
    dual = JointDual(A, s, error).best(result.x, G, 1e-7 * result.value)
    with mpmath.workdps(60):
        S, T, X = (mpmath.matrix(part.tolist()) for part in (source, target, result.x))
        J = mpmath.diag([int(sign) for sign in sig.signs])
        Lam, M = (mpmath.matrix(part.tolist()) for part in (dual.Lam, dual.M))
        gram = S.T * S / m
        H = mpmath.matrix(n * n, n * n)
        for j in range(n):
            for k in range(n):
                for a in range(n):
                    for b in range(n):
                        H[j * n + a, k * n + b] = (
                            (j == k) * gram[a, b]
                            - (a == b) * J[a, a] * Lam[j, k]
                            - (j == k) * J[j, j] * M[a, b]
                        )
        mpmath.cholesky(H)
        r = S.T * (S * X - T) / m - J * X * Lam - M * X * J
        flat = mpmath.matrix([r[a, j] for j in range(n) for a in range(n)])
        gap = (flat.T * mpmath.lu_solve(H, flat))[0] / 2
        D, E = X.T * J * X - J, X * J * X.T - J
        found = defects(result.x, s)
        for exact, close in zip((D, E), found, strict=True):
            error = max(abs(exact[i, j] - close[i, j]) for i in range(n) for j in range(n))
            assert error <= 4 * n * U * 2.0**-20 * np.linalg.norm(result.x) ** 2
    assert float(gap) <= dual.gap
    assert dual.gap <= 2 * float(gap) + 1e-7 * result.value


def test_the_newton_step_is_that_of_finite_differences():
    """At an indefinite point of an unsorted signature, away from any optimum."""
    rng = np.random.default_rng(0)
    n, s = 3, np.array([1.0, -1.0, 1.0])
    R = rng.standard_normal((n, n))
    X = jorth.random_point(Signature.of([1, -1, 1]), cond=3.0, seed=1)
    G = rng.standard_normal((n, n))
    joint = JointDual(R.T @ R + np.eye(n), s)

    def function(z):
        Lam, M = ((joint._basis @ part).reshape(n, n) for part in np.split(z, 2))
        H = joint.hessian(Lam, M)
        r = joint.residual(X, G, Lam, M)
        return r @ np.linalg.solve(H, r) / 2 - 0.3 * np.linalg.slogdet(H)[1]

    size = joint._basis.shape[1]
    z = 0.05 * rng.standard_normal(2 * size)
    h = 1e-4 * np.eye(2 * size)
    g = np.array([(function(z + e) - function(z - e)) / 2e-4 for e in h])
    second = np.array([
        [
            (function(z + a + b) - function(z + a - b) - function(z - a + b) + function(z - a - b))
            for a in h
        ]
        for b in h
    ]) / 4e-8  # fmt: skip
    Lam, M = ((joint._basis @ part).reshape(n, n) for part in np.split(z, 2))
    inverse = np.linalg.inv(joint.hessian(Lam, M))
    Q = (inverse @ joint.residual(X, G, Lam, M)).reshape(n, n).T
    step, decrement = joint._newton(X - Q, inverse, 0.3)
    move = np.concatenate([joint._basis.T @ part.ravel() for part in step])
    np.testing.assert_allclose(second @ move, -g, atol=1e-5 * np.linalg.norm(g))
    assert decrement == pytest.approx(-g @ move, rel=1e-5)


def triangular(seed):
    """All eight singular values are real, though the least is 1e-24 times the largest."""
    source = np.eye(8) - 1e3 * np.triu(np.ones((8, 8)), 1)
    return source, Signature(4, 4), 8.0, 1.0


def dependent_column(seed):
    source = np.random.default_rng([seed, 1]).standard_normal((6, 5))
    source[:, 4] = source[:, 0] + source[:, 1]
    return source, Signature(3, 2), 3.0, 3.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [triangular, dependent_column])
def test_rank_that_rounding_hides_certifies_nothing_false(kind, dtype):
    """Bounds by a least-squares solution of size 1e8 or 1e21 were rounding, and above f(X)."""
    for seed in range(12):
        source, sig, cond, noise = kind(seed)
        planted = jorth.random_point(sig, cond=cond, seed=seed)
        target = source @ planted
        target += noise * np.random.default_rng(seed).standard_normal(target.shape)
        source, target = source.astype(dtype), target.astype(dtype)
        result = procrustes(source, target, sig)
        exact = source.astype(float), target.astype(float)
        double = procrustes(*exact, sig, starts=8, certify=True)
        best = min(mean_square(*exact, planted), double.value)
        assert result.bound <= best * (1 + 1e-12)
        if "; certified" in result.message:
            assert result.value <= best * (1 + 1e-5)


def test_a_run_that_crawls_has_a_limit():
    """By default; this one took 1.9 million iterations."""
    rng = np.random.default_rng(0)
    U, V = np.linalg.qr(rng.standard_normal((2, 4, 4)))[0]
    source = U * np.geomspace(1.0, 5e-17, 4) @ V
    target = source @ jorth.random_point(Signature(2, 2), cond=4.0, seed=0)
    target += 0.01 * rng.standard_normal((4, 4))
    result = procrustes(source, target, Signature(2, 2))
    assert result.iterations <= 1000 * runs(result)


def test_singular_equations_of_newton_keep_the_answer(monkeypatch):
    solve = np.linalg.solve

    def singular(matrix, right):
        if matrix.ndim == 2:  # not the least squares of a batch
            raise np.linalg.LinAlgError("Singular matrix")
        return solve(matrix, right)

    monkeypatch.setattr(np.linalg, "solve", singular)
    source, target, _ = clouds(Signature(2, 2), 1.0, 3, source_condition=1e3)
    result = procrustes(source, target, Signature(2, 2))
    assert 0 <= result.bound <= result.value


# -- closed gaps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1e-2])
def test_small_noise_is_certified(kind, noise):
    for seed in range(3):
        source, target, _ = clouds(KINDS[kind], noise, seed)
        result = procrustes(source, target, KINDS[kind])
        assert result.status is Status.CONVERGED
        assert result.gap <= CLOSED
        assert "; certified" in result.message


def test_exact_data_are_certified():
    source, target, _ = clouds(Signature(3, 2), 0.0, 1)
    result = procrustes(source, target, Signature(3, 2))
    assert result.bound == 0
    assert result.gap <= CLOSED
    nothing = procrustes(np.zeros((4, 3)), np.zeros((4, 3)), Signature(2, 1))
    assert nothing.gap == nothing.bound == nothing.value == 0


def test_ill_conditioned_lorentz_problems_end_at_the_planted_point():
    """Without further starts about one in fifteen ends 50 to 2000 times above it, in a minimum of
    its own; the Lagrangian's minimiser leads from there to the least one."""
    sig = Signature.lorentz(4, "first")
    helped = 0
    for seed in range(80):
        source, target, planted = clouds(
            sig, 1e-3, seed, source_condition=1e3, point_condition=1e3, m=50
        )
        result = procrustes(source, target, sig)
        assert result.success
        assert result.value <= mean_square(source, target, planted)
        assert result.gap <= CLOSED
        if runs(result) > 1:
            plain = procrustes(source, target, sig, starts=0)
            helped += plain.value > 10 * result.value
            assert plain.gap <= CLOSED or "; not certified" in plain.message
            assert plain.bound <= result.value
    assert helped >= 1


def test_an_open_gap_is_said_and_starts_are_tried():
    sig = Signature(2, 2)
    rng = np.random.default_rng(2)
    source, target = rng.standard_normal((2, 5, 4)) * np.array([1.0, 0.1, 0.01, 1e-3])
    found = [procrustes(source, target, sig, starts=starts) for starts in (0, 4)]
    assert found[1].value <= found[0].value
    for result in found:
        certified = result.gap <= CLOSED
        assert certified == ("; certified" in result.message)
        assert result.status is Status.CONVERGED
        if certified:
            continue
        assert f"; not certified: a gap of {result.gap:.2g} remains" in result.message
    extra = runs(found[1]) - runs(found[0])
    assert 0 <= extra <= 4
    assert extra == 4 or found[1].gap <= CLOSED


# -- edges


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_the_gap_does_not_depend_on_the_unit(scale):
    sig = Signature(2, 1)
    source, target, _ = clouds(sig, 0.1, 0)
    one = procrustes(source, target, sig)
    other = procrustes(scale * source, scale * target, sig)
    assert other.gap <= CLOSED
    assert other.bound == pytest.approx(scale**2 * one.bound, rel=1e-6)


def test_single_precision_and_tensors():
    sig = Signature(2, 1)
    source, target, _ = clouds(sig, 0.1, 0)
    double = procrustes(source, target, sig)
    single = procrustes(torch.tensor(source).float(), torch.tensor(target).float(), sig)
    assert isinstance(single.bound, float)
    assert 0 <= single.bound <= single.value * (1 + 1e-6)
    assert "; certified" in single.message
    assert single.bound <= double.value * (1 + 1e-5)


def test_few_rows_have_the_bound_of_least_squares():
    """f(M) = 0 for m < n, and a planted isometry attains it."""
    rng = np.random.default_rng(0)
    sig = Signature(4, 2)
    source = rng.standard_normal((3, 6))
    met = procrustes(source, source @ jorth.random_point(sig, cond=4.0, seed=1), sig)
    assert met.bound == 0
    assert met.gap <= 1e-3
    missed = procrustes(source, rng.standard_normal((3, 6)), sig, max_iterations=200)
    assert missed.bound <= missed.value


def test_large_problems_are_certified_where_the_noise_is_small():
    sig = Signature(LARGEST, 4)
    source, target, _ = clouds(sig, 1e-3, 0, m=100)
    assert procrustes(source, target, sig).gap <= CLOSED
    source, target, planted = clouds(sig, 1.0, 0, m=100)
    loud = procrustes(source, target, sig, starts=0)
    assert loud.gap > CLOSED
    assert 0 < loud.bound < mean_square(source, target, planted)
    floor = jorth.Procrustes(source, target).floor / 200
    assert loud.bound > floor * 1.001  # more than least squares


def test_no_further_starts_in_one_component_and_after_a_limit():
    sig = Signature.lorentz(4, "first")
    source, target, _ = clouds(sig, 5.0, 0)
    stay = procrustes(source, target, sig, x0=np.eye(4), components="start")
    assert runs(stay) == 1
    assert stay.bound <= stay.value
    short = procrustes(source, target, sig, max_iterations=1)
    assert runs(short) <= 4
    assert short.gap > CLOSED


def test_problems_without_a_bound_have_none():
    sig = Signature(3, 1)
    source, target, _ = clouds(sig, 0.1, 0)
    thin = procrustes(source, target[:, :2], sig)
    assert thin.bound is None
    assert thin.gap is None
    assert "gap" not in str(thin)
    with pytest.raises(ValueError, match="certify must be left out if target has fewer than"):
        procrustes(source, target[:, :2], sig, certify=True)
    plain = jorth.minimize(jorth.Procrustes(source, target), np.eye(4), signature=sig)
    assert plain.gap is None


@pytest.mark.parametrize("starts", [-1, 1.5, "many", None])
def test_bad_starts_are_refused(starts):
    source, target, _ = clouds(Signature(2, 1), 0.1, 0)
    with pytest.raises((TypeError, ValueError), match="starts must be"):
        procrustes(source, target, Signature(2, 1), starts=starts)


def test_multipliers_too_large_to_trust_are_made_smaller():
    """H is indefinite with them, and the bound must say so or give way."""
    joint = JointDual(np.eye(2), np.array([1.0, -1.0]))
    X, G = np.eye(2), np.array([[0.1, 0.0], [0.0, 0.2]])
    wild = Dual(10 * X, 0 * X, 0.0, X, X)
    assert joint.gap(X, G, wild.Lam, wild.M) == np.inf
    safe = joint.safe(X, G, wild)
    assert np.isfinite(safe.gap)
    assert np.linalg.eigvalsh(joint.hessian(safe.Lam, safe.M))[0] > 0


def test_definite_only_to_rounding_is_no_proof():
    """H has the eigenvalues 1 - t and 1 + t, and rounding is 16 n^2 u ||H||."""
    joint = JointDual(np.eye(2), np.array([1.0, -1.0]))
    X, G, zero = np.eye(2), np.diag([0.1, 0.2]), np.zeros((2, 2))
    assert joint.gap(X, G, (1 - 1e-15) * X, zero) == np.inf
    assert np.isfinite(joint.gap(X, G, (1 - 1e-12) * X, zero))


@pytest.mark.parametrize("off", [1e-6, -1e-6])
def test_a_point_that_is_not_quite_feasible(off):
    """f is below its minimum, 1/4, or above it by 5e-7; the bound is for feasible X."""
    source = np.full((4, 1), 1.0)
    target = source + np.array([[0.5], [-0.5], [0.5], [-0.5]]) + 0.5
    least = exact_mean_square(source, target, np.ones((1, 1)))
    objective = jorth.Procrustes(source, target)
    X = np.full((1, 1), 1 + off)
    bound = certificate_of(source, target, Signature(1, 0), X)
    least = min(float(least), objective.value(torch.from_numpy(X)).item())
    assert least * (1 - 1e-9) <= bound <= least


def test_another_bound_counts():
    source, target, _ = clouds(Signature(2, 1), 1.0, 0)
    objective = jorth.Procrustes(source, target)
    X = np.eye(3)
    value = objective.value(torch.from_numpy(X)).item()
    known = certificate_of(source, target, Signature(2, 1), X, known=0.99 * value)
    assert known == pytest.approx(0.99 * value, rel=1e-9)


# -- batches


def test_many_problems_are_certified_on_request():
    """Ill-conditioned ones, where a few answers of the batch are other minima."""
    sig = Signature.lorentz(4, "first")
    problems = [
        clouds(sig, 1e-3, seed, source_condition=1e3, point_condition=1e3, m=50)
        for seed in range(20)
    ]
    source, target, planted = (np.stack(part) for part in zip(*problems, strict=True))
    plain = procrustes(source, target, sig)
    assert plain.bound is plain.gap is None
    found = procrustes(source, target, sig, certify=True)
    assert found.message == "20 problems: 20 CONVERGED; 20 certified"
    assert (found.gap <= CLOSED).all()
    assert (found.value <= plain.value * (1 + 1e-9)).all()
    for place in range(20):
        least = mean_square(source[place], target[place], planted[place])
        assert found.bound[place] <= found.value[place] * (1 + 1e-12) <= least * (1 + 1e-9)
        exact = mean_square(source[place], target[place], found.x[place])
        assert found.value[place] == pytest.approx(exact, rel=1e-9)


def test_a_certified_batch_of_tensors_with_a_bad_problem():
    sig = Signature(2, 1)
    source, target, _ = (torch.tensor(part) for part in clouds(sig, 0.01, 0))
    sources, targets = (torch.stack([part] * 3) for part in (source, target))
    targets[1, 0, 0] = torch.nan
    targets[2] *= 1e100
    sources[2] *= 1e100
    found = procrustes(sources, targets, sig, certify=True)
    assert isinstance(found.gap, torch.Tensor)
    assert torch.isfinite(found.gap).tolist() == [True, False, True]
    assert found.bound[2] == pytest.approx(1e200 * found.bound[0].item(), rel=1e-6)
    assert found.message.endswith("; 2 certified")
    alone = procrustes(source, target, sig)
    assert found.bound[0].item() == pytest.approx(alone.bound, rel=1e-6)


def test_no_certificate_on_request():
    source, target, _ = clouds(Signature(2, 1), 0.1, 0)
    plain = procrustes(source, target, Signature(2, 1), certify=False)
    assert plain.gap is plain.bound is None
    assert "certified" not in plain.message
    with pytest.raises(ValueError, match="certify must be True or False, got 'yes'"):
        procrustes(source, target, Signature(2, 1), certify="yes")


def test_random_starts_of_points_that_lost_digits_are_polished():
    """Without that, runs from them are refused."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sig = Signature.of([-1, 1, -1, -1, 1])
        source = rng.standard_normal((5, 5)) * np.geomspace(1.0, 1e-4, 5)
        result = procrustes(source, rng.standard_normal((5, 5)), sig, max_iterations=300)
        assert result.bound <= result.value


def test_a_bound_for_all_components_where_one_was_searched():
    sig = Signature(2, 1)
    rng = np.random.default_rng(0)
    source = rng.standard_normal((8, 3))
    elsewhere = np.diag([-1.0, 1.0, 1.0])
    found = procrustes(source, source, sig, x0=elsewhere, components="start")
    assert found.gap == pytest.approx(1.0)
    assert found.message.endswith("; not certified: a gap of 1 remains")
    everywhere = procrustes(source, source, sig, x0=elsewhere)
    assert everywhere.message.endswith("; certified: no X is better")
