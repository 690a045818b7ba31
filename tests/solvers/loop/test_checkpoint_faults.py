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
from jorth import _checkpoint as checkpoints
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
    assert len(told) == 1
    assert told[0].startswith(f"the checkpoint in {tmp_path} could not be written: ")
    assert "File too large" in told[0]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == ({"problem.json", "state.safetensors"} if interval == 0 else {"problem.json"})
    # what is there is the last that could be written, and good
    np.testing.assert_array_equal(minimize(checkpoint=tmp_path).x, straight.x)


def gone(folder):
    shutil.rmtree(folder)


def a_folder_in_place_of_the_file(folder):
    (folder / "state.safetensors").unlink(missing_ok=True)
    (folder / "state.safetensors").mkdir()


@pytest.mark.parametrize("interval", [0.0, 1e9], ids=["on the way", "at the end"])
@pytest.mark.parametrize("harm", [gone, a_folder_in_place_of_the_file])
def test_a_folder_that_is_no_longer_there(harm, interval, tmp_path):
    folder = tmp_path / "saved"

    def callback(X, row):
        if row["iteration"] == 3:
            harm(folder)

    with pytest.warns(
        UserWarning, match=r"the checkpoint in .*saved could not be written: "
    ) as caught:
        result = minimize(checkpoint=folder, checkpoint_interval=interval, callback=callback)
    assert len(caught) == 1
    np.testing.assert_array_equal(result.x, minimize().x)


def test_a_disk_that_has_room_again(tmp_path, monkeypatch):
    """One warning for each time that it fails anew; what is saved afterwards is whole."""
    save = checkpoints.save
    turns = iter([True, True, False, True, *([False] * 20)])

    def sometimes(*arguments):
        if next(turns):
            raise OSError(28, "No space left on device")
        save(*arguments)

    monkeypatch.setattr(checkpoints, "save", sometimes)
    with pytest.warns(UserWarning, match="No space left on device") as caught:
        minimize(checkpoint=tmp_path, checkpoint_interval=0.0)
    assert len(caught) == 2
    monkeypatch.undo()
    assert minimize(checkpoint=tmp_path, max_iterations=12).iterations == 12


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
    (saved,) = tmp_path.rglob("state.safetensors")
    first = method if isinstance(method, str) else method[0]
    again = minimize(checkpoint=saved.parent, method=first, max_iterations=0)
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
        press(2)
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)


def press(times):
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_step_that_is_broken_off_returns_what_is_true_of_its_point(tmp_path):
    sig = jorth.Signature(1, 1)
    options = dict(signature=sig, gradient_tolerance=0.0, checkpoint=tmp_path)
    result = jorth.minimize(
        lambda X: (X - 2).square().sum(), np.eye(2), method=CutShort(), **options
    )
    assert result.status is jorth.Status.INTERRUPTED
    assert result.x[0, 0] == 1.25
    S = sig.signs[:, None] * (2 * (result.x - 2)) @ result.x.T
    assert result.value == pytest.approx(((result.x - 2) ** 2).sum(), rel=1e-12)
    assert result.gradient_norm == pytest.approx(np.linalg.norm(S - S.T) / 2, rel=1e-12)
    saved = torch.from_numpy(np.eye(2))
    _, tensors, _ = checkpoints.load(tmp_path)
    assert torch.equal(tensors["state.X"], saved)  # the last whole iteration


def test_nothing_is_left_by_killed_runs(tmp_path):
    for at in (1, 3, 5, 7):
        with process(fault_jobs.killed, tmp_path, at) as (killed, _):
            killed.join(SECONDS)
            assert killed.exitcode == -signal.SIGKILL
    result = minimize(checkpoint=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["problem.json", "state.safetensors"]
    np.testing.assert_array_equal(result.x, minimize().x)


# -- damage


def test_flipped_bits_are_refused_or_harmless(tmp_path):
    """Every flip gives the one clear error, or a file that reads as the same state."""
    minimize(checkpoint=tmp_path, method="riemannian-lbfgs")
    path = tmp_path / "state.safetensors"
    good = path.read_bytes()
    _, truth, numbers = checkpoints.load(tmp_path)
    refused = []
    for place in np.random.default_rng(5).integers(8 * len(good), size=200):
        data = bytearray(good)
        data[place // 8] ^= 1 << (place % 8)
        path.write_bytes(data)
        try:
            _, tensors, same = checkpoints.load(tmp_path)
        except ValueError as error:
            refused.append(str(error))
            continue
        assert same == numbers
        assert tensors.keys() == truth.keys()
        assert all(torch.equal(tensors[name], truth[name]) for name in truth)
    assert len(refused) > 150
    assert all(text.startswith(f"checkpoint {path} cannot be read (") for text in refused)


@pytest.mark.parametrize("size", [0, 8, -300, -1])
def test_a_file_that_was_cut(size, tmp_path):
    minimize(checkpoint=tmp_path)
    path = tmp_path / "state.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(
        ValueError,
        match=r"checkpoint .*state.safetensors cannot be read .*; remove it to start anew",
    ):
        minimize(checkpoint=tmp_path)
