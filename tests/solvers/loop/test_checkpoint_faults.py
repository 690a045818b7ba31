"""What a disk, a user or a stray bit can do to a checkpoint.

The result survives, and no damage is taken for a state.
"""

import os
import shutil
import signal
import time

import numpy as np
import pytest
import torch

import jorth
from jorth.solvers import checkpoint as checkpoints
from jorth.solvers.problem import AbstractSolver
from tests.solvers.loop import fault_jobs
from tests.solvers.loop.fault_jobs import minimize, process

SECONDS = 120
"""That a process may take on a machine with other things to do."""


def answer(pipe):
    assert pipe.poll(SECONDS)
    return pipe.recv()


# -- what cannot be written


@pytest.mark.parametrize("interval", [0.0, 1e9], ids=["on the way", "at the end"])
def test_a_disk_that_is_full(interval, tmp_path):
    """By a limit on the size of files: the write itself fails."""
    with process(fault_jobs.full, tmp_path, interval) as (_, pipe):
        result, told = answer(pipe)
    straight = minimize()
    assert result.status is jorth.Status.MAX_ITERATIONS
    np.testing.assert_array_equal(result.x, straight.x)
    assert told
    assert told[0].startswith(f"the checkpoint in {tmp_path} could not be written: ")
    assert "File too large" in told[0]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == ({"state.checkpoint"} if interval == 0 else set())
    # what is there is the last that could be written, and good
    np.testing.assert_array_equal(minimize(checkpoint=tmp_path).x, straight.x)


def gone(folder):
    shutil.rmtree(folder)


def a_folder_in_place_of_the_file(folder):
    (folder / "state.checkpoint").unlink(missing_ok=True)
    (folder / "state.checkpoint").mkdir()


@pytest.mark.parametrize("interval", [0.0, 1e9], ids=["on the way", "at the end"])
@pytest.mark.parametrize("harm", [gone, a_folder_in_place_of_the_file])
def test_a_folder_that_is_no_longer_there(harm, interval, tmp_path):
    folder = tmp_path / "saved"

    def callback(X, row):
        if row["iteration"] == 3:
            harm(folder)

    told = r"the checkpoint in .*saved could not be written: "
    with pytest.warns(UserWarning, match=told):
        result = minimize(checkpoint=folder, checkpoint_interval=interval, callback=callback)
    np.testing.assert_array_equal(result.x, minimize().x)


# -- Ctrl-C


@pytest.mark.parametrize("method", ["gs-jobcd", "j-jobcd"])
def test_more_ctrl_c_while_the_last_checkpoint_is_written(method, tmp_path):
    with process(fault_jobs.asked, tmp_path, method) as (asked, pipe):
        assert answer(pipe) == "saving"
        for _ in range(20):
            os.kill(asked.pid, signal.SIGINT)
            time.sleep(0.01)
        result = answer(pipe)
    assert result.status is jorth.Status.INTERRUPTED
    assert result.iterations == 4
    (saved,) = tmp_path.rglob("state.checkpoint")
    again = minimize(checkpoint=saved.parent, method=method, max_iterations=0)
    assert again.iterations == 4
    np.testing.assert_array_equal(again.x, result.x)


def test_one_can_leave_a_save_that_hangs(tmp_path):
    with process(fault_jobs.hanging, tmp_path) as (hanging, pipe):
        assert answer(pipe) == "saving"
        os.kill(hanging.pid, signal.SIGINT)
        assert not pipe.poll(0.5)  # the first is ignored
        os.kill(hanging.pid, signal.SIGINT)
        assert answer(pipe) == "left"


class CutShort(AbstractSolver):
    """Ctrl-C, twice, when X has moved and its value is not known yet."""

    name = "cut short"

    def __repr__(self):
        return "CutShort()"

    def step(self, problem, state):
        state.X.copy_(torch.tensor([[1.25, 0.75], [0.75, 1.25]], dtype=state.X.dtype))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)


def test_a_step_that_is_broken_off_returns_what_is_true_of_its_point(tmp_path):
    sig = jorth.Signature(1, 1)
    options = dict(signature=sig, gradient_tolerance=0.0, checkpoint=tmp_path, method=CutShort())
    result = jorth.minimize(lambda X: (X - 2).square().sum(), np.eye(2), **options)
    assert result.status is jorth.Status.INTERRUPTED
    assert result.x[0, 0] == 1.25
    S = sig.signs[:, None] * (2 * (result.x - 2)) @ result.x.T
    assert result.value == pytest.approx(((result.x - 2) ** 2).sum(), rel=1e-12)
    assert result.gradient_norm == pytest.approx(np.linalg.norm(S - S.T) / 2, rel=1e-12)
    saved = torch.from_numpy(np.eye(2))
    _, tensors, _ = checkpoints.read(tmp_path / checkpoints.FILE)
    assert torch.equal(tensors["state.X"], saved)  # the last whole iteration


# -- damage


def test_flipped_bits_and_cut_files_are_refused(tmp_path):
    minimize(checkpoint=tmp_path, method="riemannian-lbfgs")
    path = tmp_path / "state.checkpoint"
    good = path.read_bytes()
    damaged = [good[:size] for size in (0, 8, -300, -1)]
    for place in np.random.default_rng(5).integers(8 * len(good), size=50):
        flipped = bytearray(good)
        flipped[place // 8] ^= 1 << (place % 8)
        damaged.append(flipped)
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"state\.checkpoint is damaged; remove it"):
            minimize(checkpoint=tmp_path, method="riemannian-lbfgs")


def test_a_checkpoint_of_another_version(tmp_path, monkeypatch):
    minimize(checkpoint=tmp_path)
    monkeypatch.setattr(checkpoints, "__version__", "0.0.1")
    with pytest.raises(jorth.CheckpointMismatch, match=r"the version of jorth is .* there and 0.0"):
        minimize(checkpoint=tmp_path)
