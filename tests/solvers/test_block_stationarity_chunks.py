"""Block stationarity is solved in chunks of pairs: little memory, the same answer, the arguments checked once."""

import numpy as np
import pytest

import jorth
from jorth import Quadratic, Signature, block_stationarity
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.plane import all_pairs, solve_rows
from jorth.solvers import stationarity as criticality

SIG = Signature(5, 4)


def problem(seed=0):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((9, 9))
    return root @ root.T, jorth.random_point(SIG, cond=10.0, seed=seed)


@pytest.mark.parametrize("chunk", [1, 7, 36, 100])
def test_the_answer_does_not_depend_on_the_chunk(monkeypatch, chunk):
    A, X = problem()
    weight = np.diag(np.linspace(1.0, 2.0, 9))
    sizes = []

    def recorded(G, Z, *rest, **options):
        sizes.append(len(Z))
        return solve_rows(G, Z, *rest, **options)

    monkeypatch.setattr(criticality, "solve_rows", recorded)
    monkeypatch.setattr(criticality, "CHUNK", chunk)
    found = block_stationarity(Quadratic(A, D=weight), X, SIG)
    pairs = all_pairs(9)
    blocks = A[pairs[:, :, None], pairs[:, None, :]]
    V = solve_rows(
        (A @ X @ weight)[pairs], X[pairs], blocks, SIG.signs[pairs], D=weight, theta=1e-5
    ).V
    # the mean of squares of numbers of order 1, added up in another order
    assert found.value == pytest.approx(((V - np.eye(2)) ** 2).sum(axis=(1, 2)).mean(), rel=1e-12)
    assert found.pairs == sum(sizes) == 36
    assert max(sizes) <= chunk


@pytest.mark.parametrize("theta", [np.nan, np.inf, "small", None, np.ones(36)])
def test_theta_is_one_finite_number(theta):
    A, X = problem()
    with pytest.raises(ValueError, match="theta must be a finite number"):
        block_stationarity(Quadratic(A), X, SIG, theta=theta)


class Given(AbstractObjective):
    """A quadratic form that nobody checked."""

    def __init__(self, A):
        self.form = QuadraticForm(A, None, None)

    def value_and_gradient(self, X):
        return (X * X).sum() / 2, X

    def quadratic(self):
        return self.form


@pytest.mark.parametrize("entry", [np.nan, np.inf, 3.0])
def test_a_form_that_is_none_is_refused(entry):
    A, X = problem()
    A[3, 5] = entry
    with pytest.raises(
        ValueError, match="objective must have finite curvature and a symmetric form"
    ):
        block_stationarity(Given(criticality.to_tensor(A, "A")), X, SIG)
