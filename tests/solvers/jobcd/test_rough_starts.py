"""Averaged slopes on rough probes work from any start: 19 of 20 at least,
on rows of several kinds."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature, StructuralProbe
from jorth.objectives import AbstractObjective

STARTS = 20
METHODS = ["j-jobcd", "vr-j-jobcd"]


def bags(m, n, part=0.3):
    """Rows of zeros and ones."""
    rows = (np.random.default_rng(7).random((m, n)) < part).astype(float)
    return rows[rows.any(axis=1)]


def gaussian(m, n):
    return np.random.default_rng(8).standard_normal((m, n))


def on_the_sphere(m, n):
    rows = gaussian(m, n)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def counts(m, n):
    rows = np.random.default_rng(9).poisson(0.5, (m, n)).astype(float)
    return rows[rows.any(axis=1)]


def near_a_subspace(m, n):
    rng = np.random.default_rng(10)
    return rng.standard_normal((m, 4)) @ rng.standard_normal((4, n)) + 0.1 * rng.standard_normal(
        (m, n)
    )


def clusters(m, n):
    rng = np.random.default_rng(11)
    return 2 * rng.standard_normal((5, n))[rng.integers(5, size=m)] + 0.5 * rng.standard_normal(
        (m, n)
    )


class Smooth(AbstractObjective):
    """A probe without the word that it is rough: backtracking is what a smooth f would get."""

    def __init__(self, probe):
        self.probe, self.signature, self.samples = probe, probe.signature, probe.samples
        self.sample_gradient = probe.sample_gradient

    def value_and_gradient(self, X):
        return self.probe.value_and_gradient(X)


def values(objective, method, starts):
    """First and last values, 60 gradients each."""
    ends = []
    for seed in range(starts):
        x0 = jorth.random_point(objective.signature, cond=1.5, seed=100 + seed)
        options = dict(method=method, max_evaluations=60, gradient_tolerance=0.0, seed=seed)
        history = jorth.minimize(objective, x0, **options).history["value"]
        ends.append((history[0], history[-1]))
    return np.array(ends).T


def check(rows, signature, method):
    """A start has worked if f went at least half of the way from the mean of its first values to
    what the best quarter of the starts reach, and ended no higher than backtracking does (the
    median of five starts). The quarter, since the least of all is one draw. A walk that stays near
    its start goes a tenth of the way."""
    probe = StructuralProbe(rows, signature=signature)
    first, last = values(probe, method, STARTS)
    backtracked = np.median(values(Smooth(probe), method, 5)[1])
    fall = first.mean() - np.quantile(last, 0.25)
    way = (first.mean() - last) / fall
    assert fall > 0.15 * first.mean()
    assert np.sum((way >= 0.5) & (last <= backtracked)) >= 0.95 * STARTS, np.sort(way)


@pytest.mark.parametrize(
    ("rows", "signature", "method"),
    [
        (bags(80, 12), Signature(9, 3), "j-jobcd"),
        (gaussian(80, 8), Signature(5, 3), "j-jobcd"),
        pytest.param(bags(80, 12), Signature(9, 3), "vr-j-jobcd", marks=pytest.mark.slow),
        pytest.param(gaussian(80, 8), Signature(5, 3), "vr-j-jobcd", marks=pytest.mark.slow),
    ],
)
def test_19_of_20_starts_work(rows, signature, method):
    check(rows, signature, method)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("rows", "signature"),
    [
        (bags(150, 16), Signature(12, 4)),
        (bags(300, 10), Signature(8, 2)),
        (bags(80, 24, 0.15), Signature(18, 6)),
        (bags(40, 8), Signature(6, 2)),
        (bags(150, 16), Signature(4, 12)),
        (gaussian(150, 16), Signature(12, 4)),
        (gaussian(100, 6), Signature(3, 3)),
        (gaussian(60, 4), Signature(2, 2)),
        (gaussian(100, 40), Signature(30, 10)),
        (on_the_sphere(150, 12), Signature(10, 2)),
        (counts(150, 16), Signature(10, 6)),
        (near_a_subspace(150, 12), Signature(9, 3)),
        (clusters(120, 10), Signature(8, 2)),
    ],
    ids=lambda value: str(value) if isinstance(value, Signature) else f"{len(value)}",
)
def test_19_of_20_starts_work_on_other_rows(rows, signature, method):
    check(rows, signature, method)


def at_the_start():
    from jorth.solvers.jobcd.averaged_steps import AveragedSteps
    from jorth.solvers.problem import State

    state = State(torch.eye(2), 1.0, torch.ones(2, 2))
    return state, AveragedSteps.begin(state, 0.1)


def score(state, memory, value, times=1):
    """Score points of that value; whether the last of them went back."""
    from jorth.solvers.jobcd.averaged_steps import AveragingRule

    for _ in range(times):
        state.X, state.value = 2 * torch.eye(2), value
        memory.keep_best(state, AveragingRule(angle=0.1, momentum=0.5, decay=0.5, patience=2))
    return torch.equal(state.X, torch.eye(2))


def test_near_the_start_there_is_more_patience_and_wider_angles():
    state, memory = at_the_start()
    angles = []
    for _ in range(4):
        assert not score(state, memory, 1.2, times=7)
        assert score(state, memory, 1.2)
        angles.append(memory.angle)
    np.testing.assert_allclose(angles, [0.2, 0.4, 0.2, 0.1])


@pytest.mark.parametrize("values", [(0.7, 0.8), (1.0, 1.3)], ids=["fallen", "risen"])
def test_far_from_the_first_value_it_has_not(values):
    best, other = values
    state, memory = at_the_start()
    score(state, memory, best)
    memory.best_point, memory.worse = torch.eye(2), 0
    assert not score(state, memory, other)
    assert score(state, memory, other)
    assert memory.angle == 0.05


@pytest.mark.parametrize(
    ("method", "reach"), [(jorth.Jacobi(), 0.5), (jorth.VarianceReduced(), 0.2)]
)
def test_first_angles_go_with_the_root_of_n(method, reach):
    assert method.averaging(16).angle == reach / 4
    assert method.averaging(100).angle == reach / 10
