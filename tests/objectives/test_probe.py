"""The structural probe: value and gradient, hard points, the paper's order, memory, bad input."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import jorth
from jorth import Signature, StructuralProbe
from jorth.objectives import probe
from jorth.objectives.probe import BLOCK, block_terms

SIG = Signature(4, 2)


def data(m=30, sig=SIG, seed=0):
    return np.random.default_rng(seed).standard_normal((m, sig.n))


def reference(X, D, T, sig, alpha=1.0, scale=1.0):
    """The loss by its definition, for autograd: every pair but i = j."""
    D, signs = torch.from_numpy(D), torch.from_numpy(sig.signs.astype(float))
    Z = D @ X
    s, t = Z[:, sig.positive.tolist()], Z[:, sig.negative.tolist()]
    Q = torch.empty_like(Z)
    Q[:, sig.positive.tolist()] = s
    Q[:, sig.negative.tolist()] = (
        t * ((alpha**2 + s.square().sum(1)) / t.square().sum(1)).sqrt()[:, None]
    )
    off = ~torch.eye(len(D), dtype=torch.bool)
    x = ((Q * signs) @ Q.mT / alpha**2).abs()[off]
    d = alpha * torch.where(
        x >= 1, torch.acosh(x.clamp(min=1.0 + 1e-15)), torch.acos(x.clamp(max=1.0 - 1e-15))
    )
    return (torch.from_numpy(T)[off] - scale * d).square().sum() / len(D) ** 2


@pytest.mark.parametrize("alpha", [1.0, 0.4])
@pytest.mark.parametrize(
    "sig", [SIG, Signature(5, 1), Signature.of([-1, 1, -1, 1, 1, -1]), Signature(0, 6)], ids=str
)
@pytest.mark.parametrize("m", [30, BLOCK + 7])
def test_value_and_gradient_against_autograd(alpha, sig, m):
    D = data(m)
    X = torch.from_numpy(jorth.random_point(sig, cond=3.0, seed=1)).requires_grad_()
    value = reference(X, D, cdist(D, D), sig, alpha)
    value.backward()
    objective = StructuralProbe(D, signature=sig, alpha=alpha)
    found, gradient = objective.value_and_gradient(X.detach())
    assert found.item() == pytest.approx(value.item(), rel=1e-11)
    assert objective.value(X.detach()).item() == found.item()
    torch.testing.assert_close(gradient, X.grad, rtol=1e-8, atol=1e-9 * X.grad.abs().max().item())


def test_distances_of_blocks_and_a_matrix_agree(monkeypatch):
    D = data(700)
    X = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=3))
    index = torch.tensor([3, 699, 42, 7])
    euclid, matrix = (StructuralProbe(D, t, signature=SIG) for t in ("euclidean", cdist(D, D)))
    monkeypatch.setattr(probe, "MOST_BYTES", 0)
    for other in (matrix, StructuralProbe(D, signature=SIG)):
        assert other.value(X).item() == pytest.approx(euclid.value(X).item(), rel=1e-12)
        torch.testing.assert_close(
            other.sample_gradient(X, index), euclid.sample_gradient(X, index), rtol=1e-8, atol=1e-9
        )


@pytest.mark.parametrize("scale", [1.0, 2.5, "fit"])
def test_samples_sum_to_the_gradient(scale):
    mean = StructuralProbe(data(), signature=SIG, scale=scale, ridge=0.1)
    X = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=4))
    parts = torch.stack([mean.sample_gradient(X, torch.tensor([i])) for i in range(30)])
    gradient = mean.value_and_gradient(X)[1]
    torch.testing.assert_close(parts.mean(dim=0), gradient, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(
        mean.sample_gradient(X, torch.tensor([4, 9])), parts[[4, 9]].mean(dim=0)
    )
    assert mean.samples == 30


def test_scale_and_ridge():
    D = data()
    X = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=5))
    plain = StructuralProbe(D, signature=SIG)
    fitted = StructuralProbe(D, signature=SIG, scale="fit")
    c = fitted.fitted_scale(X)
    values = [
        StructuralProbe(D, signature=SIG, scale=c * (1 + e)).value(X).item()
        for e in (-1e-3, 0.0, 1e-3)
    ]
    assert fitted.value(X).item() == pytest.approx(values[1], rel=1e-13)
    assert values[1] < min(values[0], values[2])
    ridged = StructuralProbe(D, signature=SIG, ridge=0.3)
    assert (ridged.value(X) - plain.value(X)).item() == pytest.approx(
        0.15 * X.square().sum().item(), rel=1e-12
    )
    torch.testing.assert_close(
        ridged.value_and_gradient(X)[1] - plain.value_and_gradient(X)[1], 0.3 * X
    )


def test_pairs_that_are_far_or_near_the_light_cone():
    rng = np.random.default_rng(8)
    g = rng.standard_normal((40, 50)) * 10.0 ** rng.integers(-3, 12, (40, 50))
    g[0, :4] = [1e300, -1e200, 1.0, -1.0]
    T, x = rng.uniform(0, 3, (40, 50)), np.abs(g)
    d = 1.3 * np.where(x >= 1, np.arccosh(np.maximum(x, 1)), np.arccos(np.minimum(x, 1)))
    d[0, :2] = 1.3 * np.log(2 * x[0, :2])
    with np.errstate(divide="ignore", over="ignore"):
        slope = 1.3 * np.sign(g) * np.where(x > 1, 1, -1) / np.sqrt(np.abs(x - 1) * (x + 1))
    slope[x == 1] = 0
    found = torch.from_numpy(g)
    sums = block_terms(found, torch.from_numpy(T), 0.8, 1.3, None)
    error = T - 0.8 * d
    np.testing.assert_allclose(sums, [(error**2).sum(), (T * d).sum(), (d**2).sum()], rtol=1e-12)
    np.testing.assert_allclose(found.numpy(), -1.6 * error * slope, rtol=1e-9, atol=1e-12)


def test_rows_of_zeros_and_rows_without_t():
    D = data()
    D[3] = 0.0
    X = torch.from_numpy(jorth.random_point(SIG, cond=2.0, seed=9))
    base = StructuralProbe(D, signature=SIG)._map(X)[0][3]
    np.testing.assert_array_equal(base, [0, 0, 0, 0, 1, 0])
    flat = data()
    flat[:7, 4:] = 0.0
    with pytest.raises(ValueError, match=r"x0 must send no row to t = 0 .* got 7 of 30 rows"):
        jorth.minimize(StructuralProbe(flat, signature=SIG), method="j-jobcd")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(distances=np.ones((3, 4))), r"distances must have shape \(30, 30\) to go with data"),
        (dict(distances=-np.ones((30, 30))), "distances must not be negative, got -1"),
        (dict(distances="cosine"), 'distances must be "euclidean" or a matrix, got'),
        (dict(alpha=0.0), "alpha must be"),
        (dict(signature=Signature(6, 0)), "signature must have q of at least 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        StructuralProbe(data(), **({"signature": SIG} | arguments))
