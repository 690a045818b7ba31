"""||X||_2 as a history records it: to one per cent whatever the spectrum, and from X alone."""

import math
from functools import cache

import numpy as np
import pytest
import torch

import jorth
from jorth.group import norms as module
from jorth.group.norms import EXACT_COLUMNS, lanczos_steps, spectral_norm
from jorth.stopping import MaxIterations

RNG = np.random.default_rng(11)
MANY = EXACT_COLUMNS + 100
SPECTRA = {
    "one large": np.r_[10.0, np.ones(MANY - 1)],
    "two close": np.r_[3.0, 2.97, np.ones(MANY - 2)],
    "even": np.linspace(0.01, 1.0, MANY),
    "over decades": np.geomspace(1e-4, 1e4, MANY),
    "dense at the edge": np.sqrt((1 + np.cos(np.linspace(0, np.pi, MANY))) / 2),
    "all the same": np.ones(MANY),
    "one alone above": np.r_[1.02, np.sqrt((1 + np.cos(np.linspace(0, np.pi, MANY - 1))) / 2)],
}


def with_singular_values(values, rows):
    """U diag(values) V^T with random U (rows, k), V (k, k)."""
    columns = len(values)
    return orthonormal(rows, columns) * values @ orthonormal(columns, columns).T


@cache
def orthonormal(rows, columns):
    return np.linalg.qr(RNG.standard_normal((rows, columns)))[0]


def assert_within_one_per_cent(X, truth):
    found = spectral_norm(X)
    rounding = 1 + 10 * len(X) * torch.finfo(torch.float32).eps  # 1.03 len(X) eps measured
    assert 0.99 * truth <= found <= rounding * truth


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rows", [MANY, 2 * MANY])
@pytest.mark.parametrize("name", SPECTRA)
def test_many_columns(name, rows, dtype):
    X = torch.from_numpy(with_singular_values(SPECTRA[name], rows)).to(dtype)
    assert_within_one_per_cent(X, SPECTRA[name].max())


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("columns", [5, 200, 201, 2000])
def test_on_a_device(columns, dtype):
    values = np.linspace(0.01, 3.0, columns)
    X = torch.from_numpy(with_singular_values(values, columns + 10)).to(dtype)
    found = spectral_norm(X.cuda())
    assert found == pytest.approx(3.0, rel=0.01)
    assert spectral_norm(X.cuda()) == found


@pytest.mark.parametrize(
    "shape", [(1, 1), (7, 7), (50, 3), (EXACT_COLUMNS, EXACT_COLUMNS), (300, EXACT_COLUMNS)]
)
def test_few_columns_are_exact(shape):
    X = RNG.standard_normal(shape)
    truth = np.linalg.norm(X, 2)
    rounding = shape[0] * np.finfo(float).eps
    assert spectral_norm(torch.from_numpy(X)) == pytest.approx(truth, rel=10 * rounding)


@pytest.mark.parametrize("columns", [6, MANY])
def test_entries_whose_squares_do_not_fit(columns):
    X = torch.from_numpy(RNG.standard_normal((columns, columns)))
    truth = spectral_norm(X)
    for scale in (2.0**900, 2.0**-900, 2.0**1010):
        assert spectral_norm(scale * X) == pytest.approx(scale * truth, rel=1e-6)
    single = X.float()
    for scale in (2.0**100, 2.0**-100):
        assert spectral_norm(scale * single) == pytest.approx(scale * truth, rel=1e-4)
    assert spectral_norm(torch.zeros(columns, columns)) == 0
    assert spectral_norm(torch.full((columns, columns), math.inf)) == math.inf
    assert math.isnan(spectral_norm(torch.full((columns, columns), math.nan)))


def test_it_depends_on_nothing_but_the_matrix():
    X, Y = (torch.from_numpy(RNG.standard_normal((MANY, MANY))) for _ in range(2))
    first = spectral_norm(X)
    spectral_norm(Y)
    assert spectral_norm(X) == first


def test_steps_are_those_of_the_bound():
    """1.648 sqrt(n) exp(-sqrt(e) (2 k - 1)) at the k that is returned, and not before it."""
    for columns, starts in ((500, 1), (500, 8), (20_000, 1)):
        k = lanczos_steps(columns, starts)
        failing = [
            (1.648 * math.sqrt(columns) * math.exp(-math.sqrt(0.018) * (2 * j - 1))) ** starts
            for j in (k - 1, k)
        ]
        assert failing[0] > 1e-6 >= failing[1]
    assert lanczos_steps(10, 1) == 10
    assert math.sqrt(1 - 0.018) > 0.99


def test_too_few_steps_would_be_noticed(monkeypatch):
    """The spectra above are hard enough to tell."""
    monkeypatch.setattr(module, "lanczos_steps", lambda columns, starts: 5)
    X = torch.from_numpy(with_singular_values(SPECTRA["one alone above"], MANY))
    assert spectral_norm(X) < 0.99 * 1.02


def test_the_history_of_a_run_is_right():
    sig = jorth.Signature(5, 4)
    source, target, _ = jorth.datasets.planted_procrustes(30, sig, point_condition=50.0, seed=2)
    points = []
    result = jorth.minimize(
        jorth.Procrustes(source, target),
        signature=sig,
        gradient_tolerance=0.0,
        stop=MaxIterations(12),
        callback=lambda X, row: points.append(X),
    )
    norms = [np.linalg.norm(X, 2) for X in points]
    np.testing.assert_allclose(result.history["norm"], norms, rtol=0.01)
    assert max(norms) > 2 * min(norms)
