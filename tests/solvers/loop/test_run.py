"""The loop: stopping, statuses, callbacks, progress, interrupts, checkpoints."""

import os
import signal

import numpy as np
import pytest
import torch

import jorth
from jorth import CheckpointMismatch, Signature, Status
from tests.solvers.registry import case


def minimize(**options):
    this = case("procrustes noisy")
    return jorth.minimize(
        this.objective, **({"signature": this.signature, "method": "gs-jobcd"} | options)
    )


def test_statuses_and_messages():
    assert minimize().status is Status.CONVERGED
    found = minimize()
    figures = f"is at most 1e-07 of its scale {found.gradient_scale:.3g}"
    assert f"norm {found.gradient_norm:.2g} {figures}" in found.message
    assert minimize(max_iterations=2, gradient_tolerance=0.0).status is Status.MAX_ITERATIONS
    assert minimize(max_time=0.0, gradient_tolerance=0.0).status is Status.MAX_TIME
    limited = minimize(method="j-jobcd", max_evaluations=5, gradient_tolerance=0.0)
    assert limited.status is Status.MAX_EVALUATIONS
    assert limited.evaluations.gradient == 5
    stalled = minimize(gradient_tolerance=0.0)
    assert stalled.status is Status.STALLED
    assert stalled.gradient_norm < 1e-13


def test_callback_sees_rows_and_can_stop():
    seen = []

    def callback(X, row):
        seen.append((X.copy(), row["value"]))
        X[:] = np.nan  # a copy: no harm to the run
        return len(seen) == 4

    result = minimize(callback=callback, gradient_tolerance=0.0)
    assert result.iterations == 3
    assert result.message.endswith(": the callback asked to stop")
    assert result.status is Status.INTERRUPTED
    assert not result.success
    np.testing.assert_array_equal(result.history["value"], [value for _, value in seen])


def test_progress_line_is_silent_unless_asked(capsys):
    minimize(max_iterations=3)
    assert capsys.readouterr() == ("", "")
    minimize(max_iterations=3, progress=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd"])
def test_unbounded_problems_are_recognised(method):
    """docs/background/paper.md: the hyperbolic eigenvalue problem with the paper's minus sign."""
    D = np.random.default_rng(0).standard_normal((20, 8))
    sig = Signature(5, 3)
    objective = jorth.Quadratic(-2 * D.T @ D)
    options = dict(signature=sig, method=method)
    result = jorth.minimize(objective, max_iterations=100_000, gradient_tolerance=0.0, **options)
    assert result.status is Status.UNBOUNDED
    assert np.isfinite(result.x).all()
    assert result.value <= objective.value(torch.eye(8, dtype=torch.float64)).item()
    if method == "j-jobcd":
        assert np.linalg.norm(result.x, 2) > (2**-53) ** -0.5
    going_on = jorth.minimize(objective, on_unbounded="continue", max_iterations=2, **options)
    assert going_on.status is Status.MAX_ITERATIONS
    assert going_on.value < going_on.history["value"][0]


def test_non_finite_values_end_with_the_last_good_point():
    calls = []

    def poisoned(X):
        calls.append(1)
        value = (X - 2).square().sum()
        return value * torch.nan if len(calls) > 6 else value

    options = dict(signature=Signature(2, 2), method="j-jobcd")
    result = jorth.minimize(poisoned, curvature=2.0, **options)
    assert result.status is Status.NON_FINITE
    assert np.isfinite(np.asarray(result.x)).all()
    assert jorth.residual(result.x, Signature(2, 2)) < 1e-14
    at_start = jorth.minimize(lambda X: X.sum() * torch.inf, **options)
    assert at_start.status is Status.NON_FINITE
    np.testing.assert_array_equal(at_start.x, np.eye(4))


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd", "vr-j-jobcd"])
def test_ctrl_c_returns_the_point_so_far(method):
    def interrupt(X, row):
        if row["iteration"] >= 3:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    result = minimize(method=method, callback=interrupt, gradient_tolerance=0.0, seed=3)
    assert result.status is Status.INTERRUPTED
    assert result.iterations >= 3
    assert result.value < result.history["value"][0]
    assert signal.getsignal(signal.SIGINT) is before


def test_checkpoints_are_not_mistaken(tmp_path):
    minimize(checkpoint=tmp_path, max_iterations=3, gradient_tolerance=0.0)
    saved = (tmp_path / "state.checkpoint").read_bytes()
    other = case("procrustes")
    changes = {
        "seed": 1, "method": "j-jobcd", "theta": 0.1, "on_unbounded": "continue",
        "x0": jorth.random_point(other.signature, seed=9),
    }  # fmt: skip
    told = r"belongs to another run: .* nothing was overwritten"
    for name, value in changes.items():
        with pytest.raises(CheckpointMismatch, match=told):
            minimize(checkpoint=tmp_path, **{name: value})
    with pytest.raises(CheckpointMismatch, match="objective is"):
        jorth.minimize(other.objective, signature=other.signature, checkpoint=tmp_path)
    assert (tmp_path / "state.checkpoint").read_bytes() == saved
    # limits and tolerances may change: the run goes on
    longer = minimize(checkpoint=tmp_path, max_iterations=9, gradient_tolerance=0.0)
    straight = minimize(max_iterations=9, gradient_tolerance=0.0)
    np.testing.assert_array_equal(longer.x, straight.x)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.checkpoint"]
