"""The program as a process: Ctrl-C at several moments, closed pipes, full disks, `python -m`.

Nothing here waits for a time: a process says by a line or a file that it is where it should be.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import jorth
from jorth.kge import load_model

PACKAGE = Path(jorth.__file__).parent.parent
PATIENCE = 300  # seconds until a process that hangs is killed
FULL = Path("/dev/full")
BLOCKED = """\
import threading
print("here", flush=True)
threading.Event().wait()
"""


@pytest.fixture
def start(tmp_path):
    """Start `jorth` in a process that hears Ctrl-C and finds stand-ins for modules in ``fake``."""
    started = []
    (tmp_path / "fake").mkdir()

    def run(*arguments, **options):
        paths = [str(tmp_path / "fake"), str(PACKAGE)]
        hear = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        program = hear + "from jorth.__main__ import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", program, *map(str, arguments)],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "JORTH_DATA": ""},
            text=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def interrupted(process):
    """Press Ctrl-C, and return what the process then printed."""
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    return output, errors


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("click", ["--help"]), ("torch", ["kge", "train"]), ("scipy", ["demo", "-o", "out"])],
)
def test_ctrl_c_while_modules_are_loaded(start, tmp_path, module, arguments):
    (tmp_path / "fake" / f"{module}.py").write_text(BLOCKED)
    process = start(*arguments)
    assert process.stdout.readline() == "here\n"
    interrupted(process)


def test_ctrl_c_while_data_are_read(start, tmp_path):
    """A pipe in the place of a file: reading begins when the writer is connected."""
    os.mkfifo(tmp_path / "A.csv")
    process = start("solve", "eigen", "A.csv", "-s", "1,1", "-o", "X.npy")
    with (tmp_path / "A.csv").open("w"):
        _, errors = interrupted(process)
    assert "Interrupted" in errors
    assert not (tmp_path / "X.npy").exists()


def test_sigterm_keeps_the_best_model(start, tmp_path):
    process = start("kge", "train", "-o", "out", "--epochs", 10**6, "--set", "evaluate_every=1")
    while not list((tmp_path / "out").rglob("state.checkpoint")) and process.poll() is None:
        time.sleep(0.05)
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143, errors
    assert "Go on:" in errors
    assert load_model(tmp_path / "out").about["message"].startswith("interrupted in epoch")


def test_a_closed_pipe_ends_quietly(start):
    process = start("--help")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(PATIENCE) in (0, 1)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_line(start):
    with FULL.open("w") as full:
        process = start("--version", stdout=full)
        assert process.stderr.read() == "Error: No space left on device\n"
        assert process.wait(PATIENCE) == 1


def test_a_full_disk_while_a_file_is_written(start, tmp_path):
    """A limit of the size of files stands in for the disk."""
    np.save(tmp_path / "A.npy", np.eye(60))
    (tmp_path / "fake" / "sitecustomize.py").write_text(
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
    )
    process = start("solve", "eigen", "A.npy", "-s", "30,30", "-o", "X.npy")
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert errors.startswith("Error: ")
    assert errors.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["A.npy", "fake"]


def test_as_a_module(tmp_path):
    finished = subprocess.run(
        [sys.executable, "-m", "jorth", "--version"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert finished.stdout == f"jorth, version {jorth.__version__}\n"
    assert not finished.stderr
