"""Averaged slopes: J-JOBCD and VR-J-JOBCD on a rough f,
where curvature along a step says nothing."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Jacobi, Signature, StructuralProbe, VarianceReduced
from jorth.datasets import planted_procrustes
from jorth.objectives import AbstractObjective

SIG = Signature(5, 3)
ROUGH = Signature(12, 4)


def rough_probe():
    """Sparse rows of zeros and ones, as bags of words are."""
    rows = (np.random.default_rng(0).random((150, ROUGH.n)) < 0.3).astype(float)
    return StructuralProbe(rows[rows.any(axis=1)], signature=ROUGH)


def start(seed=0, sig=ROUGH):
    return jorth.random_point(sig, cond=1.5, seed=seed)


def test_a_probe_says_whether_it_is_rough():
    data = np.random.default_rng(0).standard_normal((10, 4))
    assert StructuralProbe(data, signature=Signature(2, 2)).nonsmooth
    assert not StructuralProbe(data, signature=Signature(3, 1)).nonsmooth
    assert not StructuralProbe(data, signature=Signature(2, 2), order="lift-transform").nonsmooth


@pytest.mark.parametrize("method", ["j-jobcd", "vr-j-jobcd"])
def test_a_rough_probe_falls_further_than_by_backtracking(method):
    """Medians over starts, the same number of sample gradients;
    backtracking is what a smooth f would get."""

    class Smooth(AbstractObjective):
        """The same without the word that it is rough."""

        def __init__(self, probe):
            self.probe, self.signature, self.samples = probe, probe.signature, probe.samples
            self.sample_gradient = probe.sample_gradient

        def value_and_gradient(self, X):
            return self.probe.value_and_gradient(X)

    probe = rough_probe()
    options = dict(method=method, max_evaluations=60, gradient_tolerance=0.0)
    averaged = [jorth.minimize(probe, start(s), seed=s, **options) for s in range(5)]
    majorised = [jorth.minimize(Smooth(probe), start(s), seed=s, **options) for s in range(5)]
    assert np.median([r.value for r in averaged]) < 0.5 * np.median([r.value for r in majorised])
    for result in averaged:
        longest = max(1.0, np.nanmax(result.history["norm"]) / np.linalg.norm(result.x, 2))
        assert result.residual <= 20 * ROUGH.n * 2.0**-53 * longest**2
        assert jorth.component(result.x, ROUGH) == jorth.component(start(), ROUGH)


@pytest.mark.parametrize("method", [Jacobi(), VarianceReduced()], ids=["j", "vr"])
def test_the_best_point_is_returned(method):
    """Wherever the run is cut off: some of these end on the way up."""
    probe, climbed = rough_probe(), False
    for evaluations in range(10, 22):
        result = jorth.minimize(
            probe, start(), method=method, max_evaluations=evaluations, gradient_tolerance=0.0
        )
        values = result.history["value"]
        assert result.value == np.nanmin(values) == values[-1]
        assert result.value == pytest.approx(
            probe.value(torch.from_numpy(result.x)).item(), rel=1e-12
        )
        climbed |= bool((np.diff(values) > 0).any())
    assert climbed or method.name == "vr-j-jobcd"


def test_going_back_halves_the_angle_and_forgets():
    from jorth.solvers.jobcd.averaged_steps import AveragedSteps, AveragingRule
    from jorth.solvers.problem import State

    rule = AveragingRule(angle=0.4, momentum=0.5, decay=0.5, patience=2)
    state = State(torch.eye(2), 1.0, torch.ones(2, 2))
    memory = AveragedSteps.begin(state, rule.angle)
    slopes = torch.tensor([[[0.0, 1.0], [-1.0, 0.0]]])
    first = memory.direction(slopes, "left", rule)
    assert memory.left.momentum.any()
    assert memory.right is None
    for value in (3.0, 2.0):
        state.X, state.value, state.gradient = 2 * torch.eye(2), value, torch.zeros(2, 2)
        assert memory.angle == 0.4
        memory.keep_best(state, rule)
    assert torch.equal(state.X, torch.eye(2))
    assert state.value == 1.0
    assert torch.equal(state.gradient, torch.ones(2, 2))
    assert memory.angle == 0.2
    assert memory.left is None
    assert torch.equal(memory.direction(slopes, "left", rule), first)


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_the_first_step_turns_every_plane_by_the_angle(side):
    """With no past every averaged slope is +-1:
    X X0^-1 (or X0^-1 X) is I - angle J sign(S) to first order."""
    source, target, _ = planted_procrustes(40, SIG, source_condition=3.0, noise=0.1, seed=2)
    objective, X0, angle = jorth.Procrustes(source, target), start(3, SIG), 1e-6
    method = Jacobi(curvature="per-plane", angle=angle, side=side)
    result = []
    jorth.minimize(
        objective, X0, signature=SIG, method=method, max_iterations=1,
        callback=lambda X, row: result.append(X),
    )  # fmt: skip
    _, G = objective.value_and_gradient(torch.from_numpy(X0))
    J, G = np.diag(SIG.signs.astype(float)), G.numpy()
    if side == "right":
        step = jorth.inverse(X0, SIG) @ result[1] - np.eye(SIG.n)
        M = J @ G.T @ X0
        np.testing.assert_allclose(step.T, -angle * J @ np.sign(M - M.T), atol=1e-4 * angle)
    else:
        step = result[1] @ jorth.inverse(X0, SIG) - np.eye(SIG.n)
        M = J @ G @ X0.T
        np.testing.assert_allclose(step, -angle * J @ np.sign(M - M.T), atol=1e-4 * angle)


@pytest.mark.parametrize(
    "method", [Jacobi(curvature="per-plane"), VarianceReduced(curvature="per-plane")]
)
def test_it_gets_near_the_optimum_of_a_smooth_f(method):
    source, target, _ = planted_procrustes(40, SIG, source_condition=3.0, noise=0.1, seed=2)
    objective = jorth.Procrustes(source, target)
    best = jorth.minimize(
        objective, signature=SIG, method="riemannian-lbfgs", gradient_tolerance=1e-10
    ).value
    result = jorth.minimize(
        objective, signature=SIG, method=method, max_evaluations=400, gradient_tolerance=0.0
    )
    assert result.value - best < 1e-2 * (result.history["value"][0] - best)


def test_a_thin_start_takes_left_steps_only():
    class Distance(AbstractObjective):
        rough = True

        def value_and_gradient(self, X):
            return (X - 1).square().sum() / 2, X - 1

    X0 = jorth.random_point(SIG, columns=(2, 1), seed=0)
    result = jorth.minimize(
        Distance(), X0, signature=SIG, method="j-jobcd", max_iterations=60, gradient_tolerance=0.0
    )
    assert result.value < 0.9 * result.history["value"][0]
    gram = X0.T @ (SIG.signs[:, None] * X0)
    np.testing.assert_allclose(result.x.T @ (SIG.signs[:, None] * result.x), gram, atol=1e-12)
    with pytest.raises(ValueError, match='side must be "left" for a thin x0'):
        jorth.minimize(Distance(), X0, signature=SIG, method=Jacobi(side="both"))


@pytest.mark.parametrize("method", ["j-jobcd", "vr-j-jobcd"])
def test_averaged_steps_resume_bit_for_bit(method, tmp_path):
    probe = rough_probe()
    options = dict(method=method, gradient_tolerance=0.0, seed=4)
    whole = jorth.minimize(probe, start(), max_iterations=40, **options)
    jorth.minimize(probe, start(), max_iterations=17, checkpoint=tmp_path, **options)
    resumed = jorth.minimize(probe, start(), max_iterations=40, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.evaluations == whole.evaluations


@pytest.mark.parametrize("side", ["both"])
def test_taking_turns_reaches_the_optimum(side):
    """Of a smooth f too, by majorised steps."""
    source, target, _ = planted_procrustes(40, SIG, source_condition=3.0, noise=0.1, seed=2)
    objective = jorth.Procrustes(source, target)
    best = jorth.minimize(
        objective, signature=SIG, method="riemannian-lbfgs", gradient_tolerance=1e-10
    ).value
    for rounds in (None, 1):
        method = Jacobi(side=side, rounds_per_gradient=rounds)
        result = jorth.minimize(
            objective, signature=SIG, method=method, max_iterations=4000, gradient_tolerance=1e-6
        )
        assert result.value - best < 1e-6 * (result.history["value"][0] - best)


@pytest.mark.parametrize("angle", [0, -1.0, 2.0, "wide", float("nan")])
def test_a_bad_angle_is_named(angle):
    with pytest.raises(ValueError, match="angle must be a number in"):
        Jacobi(angle=angle)
