"""`method="auto"`: what it takes for each kind of objective, and that it says so."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.solvers.minimize import MOST_ROWS_OF_NEWTON, choose
from tests.planted import near_procrustes

SIG = Signature(4, 3)
N = SIG.n


def definite(n=N, seed=0):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return M @ M.T + n * np.eye(n)


def indefinite(n=N, seed=0):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return M + M.T


def linear(k=N, n=N):
    return np.random.default_rng(1).standard_normal((n, k))


def shifted(sig=SIG):
    """Indefinite, but definite with a multiple of J added."""
    return definite(sig.n) - 4 * sig.n * np.diag(sig.signs.astype(float))


def clouds(sig=SIG):
    return near_procrustes(4 * sig.n, sig, noise=0.01, seed=1)[:2]


def mean_loss(X, batch):
    return (batch[0] @ X - batch[1]).pow(4).mean()


def probe(q):
    data = np.random.default_rng(0).standard_normal((12, 5))
    return jorth.StructuralProbe(data, signature=Signature(5 - q, q))


class Rough(jorth.Objective):
    nonsmooth = True


def floats():
    return jorth.Procrustes(*(part.astype(np.float32) for part in clouds()))


BIG = Signature(41, 40)
NEWTON, LBFGS = "riemannian-newton", "riemannian-lbfgs"
KINDS = {
    "procrustes": (lambda: jorth.Procrustes(*clouds()), SIG, NEWTON, "convex"),
    "with D": (lambda: jorth.Quadratic(definite(), linear(), definite()), SIG, NEWTON, "with D"),
    "shifted": (lambda: jorth.Quadratic(shifted(), linear()), SIG, NEWTON, "bounded on the"),
    "shifted, large": (
        lambda: jorth.Quadratic(shifted(BIG), linear(BIG.n, BIG.n)), BIG, NEWTON, "bounded on the"
    ),
    "float32": (floats, SIG, LBFGS, "convex"),
    "unbounded": (lambda: jorth.Quadratic(indefinite(), linear()), SIG, "gs-jobcd", "not known"),
    "trace": (lambda: jorth.HyperbolicEigenvalue(definite()), SIG, "j-jobcd", "a trace"),
    "trace, large": (
        lambda: jorth.HyperbolicEigenvalue(definite(101)), Signature(50, 51), "j-jobcd", "a trace"
    ),
    "trace, paper": (
        lambda: jorth.HyperbolicEigenvalue(definite(), sense="max"), SIG, "gs-jobcd", "not known"
    ),
    "finite sum": (
        lambda: jorth.FiniteSum(mean_loss, clouds()), SIG, NEWTON, "a mean over samples"
    ),
    "function": (lambda: lambda X: X.cosh().sum(), SIG, NEWTON, "a smooth function"),
    "function, large": (
        lambda: lambda X: X.cosh().sum(), Signature(76, 75), LBFGS, "a smooth function"
    ),
    "gradient only": (
        lambda: jorth.Objective(
            lambda X: np.cosh(X - linear()).sum(), lambda X: np.sinh(X - linear())
        ), SIG, LBFGS,
        "a smooth function, then riemannian-lbfgs from the start",
    ),
    "with D, shifted": (
        lambda: jorth.Quadratic(shifted(), D=np.diag([1.0] * SIG.p + [-0.5] * SIG.q)), SIG,
        NEWTON, "with D",
    ),
    "rough": (lambda: Rough(lambda X: np.abs(X).sum(), np.sign), SIG, "j-jobcd", "a rough"),
    "rough probe": (lambda: probe(2), Signature(3, 2), "vr-j-jobcd", "a rough function"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_method_and_says_so(kind):
    make, sig, method, why = KINDS[kind]
    result = jorth.minimize(make(), signature=sig, max_iterations=1)
    assert result.method == method
    assert "; method " in result.message
    assert why in result.message.split(" chosen for ")[1]


def test_thin():
    source, target = clouds()
    x0 = np.eye(N)[:, :2].copy()
    result = jorth.minimize(jorth.Procrustes(source, target[:, :2].copy()), x0, signature=SIG)
    assert result.success
    assert result.method == "riemannian-newton"
    assert "a quadratic in a thin X" in result.message


def test_a_trace_starts_at_an_answer_of_eigh_unless_x0_is_given():
    objective, x0 = jorth.HyperbolicEigenvalue(definite()), jorth.random_point(SIG, cond=5.0)
    least = np.abs(jorth.eigh(definite(), SIG)[0]).sum()
    for shift in (0.0, 3.0, -40.0):  # which changes f by a constant
        A = definite() + shift * np.diag(SIG.signs)
        direct = jorth.minimize(jorth.HyperbolicEigenvalue(A), signature=SIG)
        assert direct.iterations == 0
        assert direct.success
        assert direct.value == pytest.approx(least + shift * (SIG.p - SIG.q), rel=1e-12)
        assert jorth.component(direct.x, SIG) == (1, 1)
    given = jorth.minimize(objective, x0, signature=SIG)
    assert given.iterations > 0
    assert given.history["value"][0] == pytest.approx(np.trace(x0.T @ definite() @ x0), rel=1e-12)
    assert given.value == pytest.approx(least, rel=1e-12)


def test_on_a_device():
    """Rules for a device, without one: the tensors have no data."""
    X = torch.empty(N, N, dtype=torch.float64, device="meta")
    objective = jorth.Quadratic(definite(), linear())
    assert choose(objective, SIG, X, bounded=True)[0].name == "riemannian-lbfgs"
    trace = jorth.HyperbolicEigenvalue(definite())
    assert choose(trace, SIG, X, bounded=True)[0].name == "riemannian-lbfgs"


def test_convex_quadratics_have_a_size_for_newton():
    for n, expected in ((MOST_ROWS_OF_NEWTON, NEWTON), (MOST_ROWS_OF_NEWTON + 1, LBFGS)):
        objective, X = jorth.Quadratic(definite(n), linear(n, n)), torch.eye(n).double()
        assert choose(objective, Signature(n - 9, 9), X, bounded=True)[0].name == expected


def kinked(X):
    return (X - torch.from_numpy(linear())).abs().sum()


class Once(torch.autograd.Function):
    """sum cosh X, whose slope autograd cannot differentiate."""

    @staticmethod
    def forward(ctx, X):
        ctx.save_for_backward(X)
        return X.cosh().sum()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slope):
        return slope * ctx.saved_tensors[0].sinh()


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (Once.apply, "from the start, as f has no second derivatives"),
        (lambda X: torch.cdist(X, X[:2]).square().sum(), "f has no second derivatives"),
        (kinked, "after 20 iterations, as second derivatives held along short steps only"),
    ],
)
def test_newton_gives_way_to_lbfgs_without_a_word_of_error(function, why):
    x0 = torch.from_numpy(jorth.random_point(SIG, cond=3.0, seed=2))
    result = jorth.minimize(function, x0, signature=SIG, max_iterations=60)
    assert result.method == "riemannian-lbfgs"
    assert "chosen for a smooth function, then riemannian-lbfgs" in result.message
    assert why in result.message
    named = jorth.minimize(function, x0, signature=SIG, method=LBFGS, max_iterations=60)
    assert result.value <= 1.5 * named.value


def test_a_switch_survives_a_checkpoint(tmp_path):
    options = dict(x0=jorth.random_point(SIG, cond=3.0, seed=2), signature=SIG)
    through = jorth.minimize(kinked, max_iterations=30, **options)
    for most in (10, 24, 30):  # before the switch, after it, and at the end
        result = jorth.minimize(kinked, max_iterations=most, checkpoint=tmp_path, **options)
    assert result.method == through.method == "riemannian-lbfgs"
    assert result.message == through.message
    np.testing.assert_array_equal(result.x, through.x)


def test_a_checkpoint_is_that_of_the_chosen_method(tmp_path):
    objective = jorth.Procrustes(*clouds())
    options = dict(signature=SIG, gradient_tolerance=1e-10)
    through = jorth.minimize(objective, **options)
    jorth.minimize(objective, checkpoint=tmp_path, max_iterations=2, **options)
    named = jorth.minimize(objective, checkpoint=tmp_path, method="riemannian-newton", **options)
    assert named.iterations == through.iterations > 2
    np.testing.assert_array_equal(named.x, through.x)
    with pytest.raises(jorth.CheckpointMismatch, match="method"):
        jorth.minimize(objective, checkpoint=tmp_path, method="gs-jobcd", **options)
