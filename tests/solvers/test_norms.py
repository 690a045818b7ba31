"""||X||_2, the scaled violation and the gradient norm: in torch, and in a history."""

import math

import numpy as np
import pytest
import torch

import jorth
from jorth.group.elements import scaled_violation
from jorth.solvers.problem import CountedObjective, Problem
from jorth.solvers.result import History, spectral_norm
from tests.group.strategies import UNIT
from tests.linalg.reference import orthogonal

MANY = 130
SPECTRA = {
    "one large": np.r_[10.0, np.ones(MANY - 1)],
    "over decades": np.geomspace(1e-4, 1e4, MANY),
    "all the same": np.ones(MANY),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", SPECTRA)
def test_many_columns(name, dtype):
    """By ARPACK, to 0.1 per cent: measured below 2e-4."""
    rng = np.random.default_rng(11)
    columns = orthogonal(2 * MANY, rng)[:, :MANY] * SPECTRA[name]
    X = torch.from_numpy(columns @ orthogonal(MANY, rng)).to(dtype)
    found = spectral_norm(X)
    assert found == pytest.approx(SPECTRA[name].max(), rel=2e-3)
    assert spectral_norm(X) == found


@pytest.mark.gpu
@pytest.mark.parametrize("columns", [5, 2000])
def test_on_a_device(columns):
    rng = np.random.default_rng(11)
    X = orthogonal(columns, rng) * np.linspace(0.01, 3.0, columns) @ orthogonal(columns, rng)
    assert spectral_norm(torch.from_numpy(X).cuda()) == pytest.approx(3.0, rel=2e-3)


@pytest.mark.parametrize("columns", [1, 6, MANY])
def test_entries_whose_squares_do_not_fit(columns):
    X = torch.from_numpy(np.random.default_rng(1).standard_normal((columns, columns)))
    truth = np.linalg.norm(X, 2)
    for scale in (1.0, 2.0**900, 2.0**-900):
        assert spectral_norm(scale * X) == pytest.approx(scale * truth, rel=2e-3)
    assert spectral_norm(torch.zeros(columns, columns)) == 0
    assert spectral_norm(torch.full((columns, columns), math.inf)) == math.inf
    assert math.isnan(spectral_norm(torch.full((columns, columns), math.nan)))


@pytest.mark.parametrize(
    "sig", ["+", "--", "+-+", "-+++", "++-+--", "-" * 30 + "+" * 60, "-+" * 110]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_norm_of_a_feasible_point(sig, dtype):
    """That of a boost, from the blocks of mixed signs; no other matrix is taken for feasible."""
    sig = jorth.Signature.of(sig)
    X = torch.from_numpy(jorth.random_point(sig, cond=20.0, seed=3)).to(dtype)
    problem = Problem(CountedObjective(jorth.Quadratic(np.eye(sig.n))), sig, sig.vector(X), 0)
    history = History(problem, X, feasible=True)
    near = torch.eye(sig.n, dtype=dtype) + 1e-30
    for point in (X, 3 * X, X + 0.1, torch.eye(sig.n, dtype=dtype), near):
        norm = history.norms(point, point).of_x
        assert norm == pytest.approx(np.linalg.norm(point.double().numpy(), 2), rel=1e-3)


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 2), (9, 1), (33, 33), (64, 40)])
@pytest.mark.parametrize("size", [1.0, 1e160])
@pytest.mark.parametrize("slope", [1e-140, 1.0, 1e140])
def test_a_history_measures_without_overflow(n, k, size, slope):
    rng = np.random.default_rng(0)
    sig = jorth.Signature.of(np.where(rng.random(n) < 0.5, 1.0, -1.0))
    X = torch.from_numpy(size * (orthogonal(n, rng)[:, :k] + rng.standard_normal((n, k))))
    G = torch.from_numpy(slope * rng.standard_normal((n, k)))
    objective = CountedObjective(jorth.Quadratic(np.eye(n)))
    history = History(Problem(objective, sig, sig.vector(X), rng), X, feasible=False)
    history.gram = np.eye(k)
    norm, violation, gradient, product = history.norms(X, G)
    assert norm == pytest.approx(size * np.linalg.norm(X / size, 2), rel=1e-9)
    s = sig.vector(X)
    expected = scaled_violation(X, s, torch.eye(k).to(X)).item()
    assert violation == pytest.approx(expected, rel=1e-6)
    skew = (s[:, None] * (G / slope) @ (X / size).T).numpy()
    rounding = 4 * n * UNIT * np.linalg.norm(G / slope) * np.linalg.norm(X / size)
    expected = np.linalg.norm(skew - skew.T) / 2
    assert gradient / slope / size == pytest.approx(expected, abs=rounding)
    product_size = np.linalg.norm((G / slope) @ (X / size).T) * (size / max(norm, 1.0)) ** 2 / size
    assert product / slope == pytest.approx(product_size, rel=1e-9)
