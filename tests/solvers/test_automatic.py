"""`method="auto"`: what it takes for each kind of objective, and that it says so."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.solvers.minimize import MOST_ROWS_OF_NEWTON, MOST_ROWS_OF_SHIFTED_NEWTON, choose
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
        lambda: jorth.Quadratic(shifted(BIG), linear(BIG.n, BIG.n)), BIG, "gs-jobcd",
        "bounded on the feasible set, accelerated",
    ),
    "float32": (floats, SIG, LBFGS, "convex"),
    "unbounded": (lambda: jorth.Quadratic(indefinite(), linear()), SIG, "gs-jobcd", "not known"),
    "trace": (lambda: jorth.HyperbolicEigenvalue(definite()), SIG, "j-jobcd", "a trace"),
    "trace, large": (
        lambda: jorth.HyperbolicEigenvalue(definite(101)), Signature(50, 51), LBFGS, "convex"
    ),
    "trace, paper": (
        lambda: jorth.HyperbolicEigenvalue(definite(), sense="max"), SIG, "gs-jobcd", "not known"
    ),
    "finite sum": (
        lambda: jorth.FiniteSum(mean_loss, clouds()), SIG, "j-jobcd", "a mean over samples"
    ),
    "function": (lambda: lambda X: X.cosh().sum(), SIG, LBFGS, "a smooth function"),
    "rough": (lambda: Rough(lambda X: np.abs(X).sum(), np.sign), SIG, "j-jobcd", "a rough"),
    "rough probe": (lambda: probe(2), Signature(3, 2), "vr-j-jobcd", "a rough function"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_its_method_and_says_so(kind):
    make, sig, method, why = KINDS[kind]
    result = jorth.minimize(make(), signature=sig, max_iterations=1)
    assert result.method == method
    assert f"; method {method} chosen for " in result.message
    assert why in result.message.split(" chosen for ")[1]


def test_thin():
    source, target = clouds()
    x0 = np.eye(N)[:, :2].copy()
    result = jorth.minimize(jorth.Procrustes(source, target[:, :2].copy()), x0, signature=SIG)
    assert result.success
    assert result.method == "riemannian-newton"
    assert "a quadratic in a thin X" in result.message


def test_on_a_device():
    """Rules for a device, without one: the tensors have no data."""
    X = torch.empty(N, N, dtype=torch.float64, device="meta")
    objective = jorth.Quadratic(definite(), linear())
    assert choose(objective, SIG, X, bounded=True)[0].name == "riemannian-lbfgs"
    trace = jorth.HyperbolicEigenvalue(definite())
    assert choose(trace, SIG, X, bounded=True)[0].name == "riemannian-lbfgs"


@pytest.mark.parametrize(
    ("form", "most", "method", "beyond"),
    [
        (definite, MOST_ROWS_OF_NEWTON, NEWTON, LBFGS),
        (
            lambda n: shifted(Signature(n - 9, 9)),
            MOST_ROWS_OF_SHIFTED_NEWTON, NEWTON, "gs-jobcd",
        ),
    ],
)  # fmt: skip
def test_every_rule_has_its_own_size(form, most, method, beyond):
    for n, expected in ((most, method), (most + 1, beyond)):
        objective, X = jorth.Quadratic(form(n), linear(n, n)), torch.eye(n, dtype=torch.float64)
        bounded = objective.bounded_below()
        found = choose(objective, Signature(n - 9, 9), X, bounded=bounded)
        assert found[0].name == expected


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
