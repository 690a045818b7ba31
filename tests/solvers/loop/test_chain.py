"""Chains: each method from the point of the one before, one record of all."""

import os
import signal

import numpy as np
import pytest

import jorth
from jorth import GaussSeidel, Stage, Status
from jorth.stopping import ValueBelow
from tests.solvers.registry import case


def minimize(method, problem="procrustes noisy", **options):
    this = case(problem)
    return jorth.minimize(
        this.objective, **({"signature": this.signature, "method": method} | options)
    )


@pytest.mark.parametrize(
    "problem", ["procrustes", "procrustes unsorted", "procrustes noisy", "trace"]
)
@pytest.mark.parametrize("iterations", [1, 10])
def test_csdm_then_gauss_seidel_never_ends_above_csdm(problem, iterations):
    alone = minimize("csdm", problem, max_iterations=iterations, gradient_tolerance=0.0)
    chain = minimize(
        ["csdm", "gs-jobcd"], problem, max_iterations=2 * iterations, gradient_tolerance=0.0
    )
    assert chain.stages[0].value == alone.value
    assert chain.value <= alone.value * (
        1 + 1e-12
    )  # the rounding of f, whose last digits the two need not share
    assert len(chain.stages) == 2
    assert chain.value == chain.stages[1].value


def test_the_record_is_joined():
    first, second = minimize("csdm", max_iterations=4), None
    chain = minimize(["csdm", "gs-jobcd"], max_iterations=8, gradient_tolerance=0.0)
    second = minimize("gs-jobcd", x0=first.x, max_iterations=4, gradient_tolerance=0.0)
    np.testing.assert_array_equal(chain.x, second.x)
    assert chain.iterations == 8
    assert chain.evaluations.gradient == first.evaluations.gradient + second.evaluations.gradient
    assert chain.evaluations.pair_updates == second.evaluations.pair_updates
    np.testing.assert_array_equal(chain.history["iteration"], [0, 1, 2, 3, 4, 4, 5, 6, 7, 8])
    np.testing.assert_array_equal(
        chain.history["value"], np.concatenate([first.history["value"], second.history["value"]])
    )
    assert (np.diff(chain.history["time"]) >= 0).all()
    assert chain.time == chain.stages[0].time + chain.stages[1].time
    assert chain.history["gradient_evaluations"][-1] == chain.evaluations.gradient


def test_limits_are_shared_and_what_is_left_is_passed_on():
    thirds = minimize(["j-jobcd"] * 3, max_evaluations=10, gradient_tolerance=0.0)
    assert [stage.evaluations.gradient for stage in thirds.stages] == [4, 3, 3]
    goal = minimize("gs-jobcd", max_iterations=3, gradient_tolerance=0.0).value
    # the first stage stalls at rounding level, long before its share of a thousand is used up
    chain = minimize(["riemannian-lbfgs", "gs-jobcd"], max_iterations=1000, gradient_tolerance=0.0)
    assert chain.stages[0].status is Status.STALLED
    met = minimize(["gs-jobcd", "j-jobcd"], stop=ValueBelow(goal), gradient_tolerance=0.0)
    assert met.status is Status.CONVERGED
    assert len(met.stages) == 1


def test_callback_counts_on_and_ends_the_chain():
    seen = []

    def callback(X, row):
        seen.append(row["iteration"])
        return len(seen) == 7

    chain = minimize(
        ["umcm", GaussSeidel()], max_iterations=8, callback=callback, gradient_tolerance=0.0
    )
    assert seen == [0, 1, 2, 3, 4, 4, 5]
    assert chain.message.startswith("the callback asked to stop")
    assert chain.status is Status.INTERRUPTED

    first = minimize(["umcm", GaussSeidel()], callback=lambda X, row: True, gradient_tolerance=0.0)
    assert len(first.stages) == 1  # no second method after it


def test_a_drifted_point_is_polished_before_it_is_handed_on(monkeypatch):
    from dataclasses import replace

    from jorth.solvers.loop import chain

    this = case("procrustes noisy")
    first = minimize("exponential", max_iterations=3)
    off = first.x + 1e-9 * np.random.default_rng(0).standard_normal(first.x.shape)
    drifted = replace(first, x=off, residual=jorth.residual(off, this.signature))
    x, note = chain.handed_over(drifted, this.signature)
    assert jorth.residual(x, this.signature) < 1e-14
    assert "polished" in note
    same, quiet = chain.handed_over(first, this.signature)
    assert same is first.x
    assert quiet == ""


def test_any_method_starts_from_any_other():
    names = [
        "umcm",
        "admm",
        "csdm",
        "exponential",
        "riemannian-sd",
        "riemannian-cg",
        "riemannian-lbfgs",
        "riemannian-newton",
        "j-jobcd",
    ]
    for name in names:
        warm = minimize(name, max_iterations=5, gradient_tolerance=0.0)
        for other in names:
            result = minimize(other, x0=warm.x, max_iterations=2, gradient_tolerance=0.0)
            assert result.history["value"][0] == pytest.approx(warm.value, rel=1e-12)


def test_a_chain_resumes(tmp_path):
    whole = minimize(["umcm", "gs-jobcd"], max_iterations=40, gradient_tolerance=0.0)
    folder = tmp_path / "run"

    def interrupt(X, row):
        return row["iteration"] >= 25

    part = minimize(
        ["umcm", "gs-jobcd"],
        max_iterations=40,
        gradient_tolerance=0.0,
        checkpoint=folder,
        callback=interrupt,
    )
    assert part.iterations == 25
    assert sorted(path.name for path in folder.iterdir()) == ["1-umcm", "2-gs-jobcd"]
    resumed = minimize(
        ["umcm", "gs-jobcd"], max_iterations=40, gradient_tolerance=0.0, checkpoint=folder
    )
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.iterations == 40


def test_a_chain_resumes_with_other_limits(tmp_path):
    """A stage after which the next has begun stays as it ended; the last takes all that is left."""
    methods = ["umcm", "csdm", "gs-jobcd"]
    first = minimize(methods, max_iterations=9, gradient_tolerance=0.0, checkpoint=tmp_path)
    longer = minimize(methods, max_iterations=20, gradient_tolerance=0.0, checkpoint=tmp_path)
    assert [stage.iterations for stage in longer.stages] == [3, 3, 14]
    assert longer.stages[0].message == "it was over when the chain was resumed"
    np.testing.assert_array_equal(longer.stages[1].x, first.stages[1].x)
    straight = minimize("gs-jobcd", x0=first.stages[1].x, max_iterations=14, gradient_tolerance=0.0)
    np.testing.assert_array_equal(longer.x, straight.x)
    # another first method is another chain
    with pytest.raises(jorth.CheckpointMismatch):
        minimize(
            ["admm", "csdm", "gs-jobcd"],
            max_iterations=9,
            gradient_tolerance=0.0,
            checkpoint=tmp_path,
        )


def test_ctrl_c_at_the_last_look_of_a_stage_ends_the_chain():
    def interrupt(X, row):
        if row["iteration"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    chain = minimize(
        ["csdm", "gs-jobcd"], max_iterations=6, callback=interrupt, gradient_tolerance=0.0
    )
    assert chain.status is Status.INTERRUPTED
    assert len(chain.stages) == 1


def test_a_start_that_a_later_method_cannot_take_is_refused_before_any_work():
    calls = []
    x0 = jorth.random_point(jorth.Signature(3, 2), columns=(1, 1), seed=0)
    with pytest.raises(ValueError, match="x0 must be square for umcm"):
        jorth.minimize(
            calls.append, x0, signature=jorth.Signature(3, 2), method=["exponential", "umcm"]
        )
    assert calls == []


@pytest.mark.parametrize(
    ("name", "count"), [("max_evaluations", "gradient"), ("max_iterations", None)]
)
def test_shares_are_rounded_up_and_what_is_used_is_taken_off(name, count):
    chain = minimize(["j-jobcd"] * 3, "autograd", gradient_tolerance=0.0, **{name: 10})
    used = [stage.evaluations.gradient if count else stage.iterations for stage in chain.stages]
    assert used == [4, 3, 3]


def test_evaluations_of_a_finite_sum_are_shared_in_samples():
    chain = minimize(["vr-j-jobcd"] * 2, max_evaluations=20, gradient_tolerance=0.0)
    samples = case("procrustes noisy").objective.samples
    assert 19 <= chain.evaluations.sample_gradient / samples <= 22
    assert chain.evaluations.gradient < 15


def test_a_chain_ends_where_no_method_could_go_on():
    A = -np.eye(5) - np.ones((5, 5))
    sig = jorth.Signature(3, 2)
    options = dict(signature=sig, gradient_tolerance=0.0, max_iterations=100)
    chain = jorth.minimize(jorth.Quadratic(A), method=["riemannian-cg", "gs-jobcd"], **options)
    assert chain.status is Status.UNBOUNDED
    assert len(chain.stages) == 1


def test_a_later_stage_that_cannot_run_is_refused_before_any_work():
    calls = []

    def counted(X):
        calls.append(1)
        return X.square().sum()

    with pytest.raises(ValueError, match="vr-j-jobcd needs a finite sum"):
        jorth.minimize(counted, signature=jorth.Signature(2, 2), method=["j-jobcd", "vr-j-jobcd"])
    assert not calls


def test_a_stage_has_limits_of_its_own():
    chain = minimize(
        [Stage("gs-jobcd", max_iterations=2), "riemannian-lbfgs"], gradient_tolerance=1e-9
    )
    sweeps, rest = chain.stages
    assert sweeps.iterations == 2
    assert sweeps.status is Status.MAX_ITERATIONS
    assert chain.status is Status.CONVERGED
    alone = minimize("gs-jobcd", max_iterations=2, gradient_tolerance=1e-9)
    again = minimize("riemannian-lbfgs", x0=alone.x, gradient_tolerance=1e-9)
    np.testing.assert_array_equal(chain.x, again.x)
    assert chain.iterations == 2 + rest.iterations


def test_the_lower_of_both_limits_holds_and_what_is_left_goes_on():
    stages = [
        Stage(GaussSeidel(), max_iterations=2),
        Stage("j-jobcd", max_iterations=50),
        "j-jobcd",
    ]
    chain = minimize(stages, max_iterations=12, gradient_tolerance=0.0)
    assert [stage.iterations for stage in chain.stages] == [2, 5, 5]
    counted = minimize(
        [Stage("j-jobcd", max_evaluations=3), "j-jobcd"], max_evaluations=10, gradient_tolerance=0.0
    )
    assert [stage.evaluations.gradient for stage in counted.stages] == [3, 7]
    timed = minimize([Stage("j-jobcd", max_time=0.0), "gs-jobcd"], gradient_tolerance=1e-6)
    assert [stage.status for stage in timed.stages] == [Status.MAX_TIME, Status.CONVERGED]


def test_limits_of_a_stage_are_checked_before_any_work():
    with pytest.raises(ValueError, match="max_iterations must be"):
        minimize(["gs-jobcd", Stage("j-jobcd", max_iterations=-1)])
    with pytest.raises(ValueError, match="method must be one of"):
        minimize([Stage("sgd")])
