"""Several processes take the steps of one, end together, and resume when one of them was killed."""

import gc
import os
import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

import jorth
from tests.ranks import jobs
from tests.ranks.processes import in_processes

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch was built without distributed"
)
ROOT = Path(__file__).parents[2]
SUMMED = 1e-10
"""Sums in another order differ by rounding, runs of some dozen steps by some hundred times that."""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two processes found."""
    folder = tmp_path_factory.mktemp("two")
    assert in_processes(jobs.every_run, folder) == [0, 0]
    return [torch.load(folder / str(rank)) for rank in range(2)]


@pytest.mark.parametrize("case", jobs.CASES, ids=" ".join)
def test_two_processes_take_the_steps_of_one(two, case):
    first, second = (found[case] for found in two)
    alone = jobs.solve(case, None)
    assert torch.equal(first["points"], second["points"])
    assert first["points"].shape == alone["points"].shape
    assert (first["points"] - alone["points"]).abs().max() < SUMMED
    assert np.allclose(first["values"], alone["values"], rtol=0, atol=SUMMED)
    assert (alone["points"][-1] - torch.eye(jobs.SIG.n)).abs().max() > 0.1
    for key in ("iterations", "evaluations", "status"):
        assert first[key] == second[key] == alone[key]


@pytest.mark.parametrize(
    ("why", "status"),
    [
        ("callback", "INTERRUPTED"),
        ("Ctrl-C", "INTERRUPTED"),
        ("twice", "INTERRUPTED"),
        ("time", "MAX_TIME"),
    ],
)
def test_processes_end_together(two, why, status):
    first, second = (found[why] for found in two)
    assert first["status"] == second["status"] == status
    assert first["iterations"] == second["iterations"]
    assert torch.equal(first["points"], second["points"])
    if why != "time":
        assert first["iterations"] == 4


def test_the_quadratic_form_is_that_of_all_rows(two):
    form = jorth.Procrustes(jobs.SOURCE, jobs.TARGET).quadratic()
    for found in two:
        for part, whole in zip(
            found["form"], (form.A, form.C, torch.tensor(form.constant)), strict=True
        ):
            assert torch.allclose(part, whole, rtol=1e-12, atol=1e-12)


def test_different_points_are_noticed(two):
    for found in two:
        assert found["points"].startswith("the processes are at different points")


def test_only_the_first_process_sees_the_checkpoint(two):
    for found in two:
        assert torch.equal(found["resumed"]["points"][-1], found[jobs.CASES[0]]["points"][-1])
        assert len(found["resumed"]["points"]) < len(found[jobs.CASES[0]]["points"])
    assert [found["folder"] for found in two] == [True, False]
    assert [found["mismatch"] for found in two] == 2 * [two[0]["mismatch"]]
    assert "belongs to another run: seed is 0 there and 1 here" in two[0]["mismatch"]


def test_a_killed_process_ends_the_job_and_it_resumes(two, tmp_path):
    codes = in_processes(jobs.telling, tmp_path, tmp_path / "first meeting")
    assert codes[1] == -signal.SIGKILL
    assert codes[0] == 1
    error = (tmp_path / "error of 0").read_text()
    assert error.startswith("rank 0 of 2 can no longer reach the others")
    assert error.endswith("with checkpoint=... a job that is started again goes on where it was")
    assert in_processes(jobs.telling, tmp_path, tmp_path / "second meeting") == [0, 0]
    check_resumed(two, tmp_path)


@pytest.mark.slow
def test_the_script_of_the_page_runs_under_torchrun(tmp_path):
    page = (ROOT / "docs/howto/distributed.md").read_text()
    (script,) = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "fit.py").write_text(script)
    printed = torchrun("fit.py", folder=tmp_path)
    assert printed.returncode == 0, printed.stderr
    assert float(printed.stdout) > 0  # by one of the two


def check_resumed(two, folder):
    """It went on, and got to where the uninterrupted job got, bit for bit."""
    for rank, uninterrupted in enumerate(two):
        found = torch.load(folder / str(rank))
        whole = uninterrupted[jobs.CASES[0]]
        assert 2 <= len(found["points"]) <= len(whole["points"]) - 4  # it did not start afresh
        assert torch.equal(found["points"], whole["points"][-len(found["points"]) :])
        assert torch.equal(found["values"], whole["values"])


def torchrun(*arguments, folder):
    """A job of two processes, to its end."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        *arguments,
    ]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_group_of_all_processes_is_not_kept_alive():
    """At the end of a process the threads of a group that is still alive may abort it."""
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    loss = jorth.FiniteSum(jobs.robust, (jobs.SOURCE, jobs.TARGET))
    sharded = jorth.Sharded(loss)
    group = weakref.ref(torch.distributed.group.WORLD)
    torch.distributed.destroy_process_group()
    gc.collect()
    assert group() is None
    assert sharded.samples == len(jobs.SOURCE)


def test_sharded_needs_processes_and_terms_of_one_sample():
    loss = jorth.FiniteSum(jobs.robust, (jobs.SOURCE, jobs.TARGET))
    with pytest.raises(RuntimeError, match=r"init_process_group\(\)"):
        jorth.Sharded(loss)
    with pytest.raises(TypeError, match="objective must be a finite sum"):
        jorth.Sharded(jorth.Quadratic(torch.eye(3)))
    with pytest.raises(TypeError, match="objective must be a finite sum"):
        jorth.Sharded(lambda X: X.sum())
    with pytest.raises(TypeError, match="got a StructuralProbe"):
        jorth.Sharded(jorth.StructuralProbe(torch.randn(5, 3), signature=jorth.Signature(2, 1)))
