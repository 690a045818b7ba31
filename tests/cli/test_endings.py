"""How commands end: one line for an error, the right exit code, nothing for a closed pipe."""

import errno
import signal
import time
from importlib import import_module

import click
import numpy as np
import pytest
from click.testing import CliRunner

import jorth.cli
from jorth.cli import main
from jorth.cli.errors import LONGEST, one_line
from jorth.solvers import minimize

REPORT = "Please report it"


def jorth_command(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def failing(monkeypatch):
    """A command `jorth fail` that raises what it is given."""

    def install(error):
        @click.command()
        def fail():
            raise error

        monkeypatch.setitem(jorth.cli.COMMANDS, "fail", "tests.cli.test_endings:fail")
        monkeypatch.setattr("tests.cli.test_endings.fail", fail, raising=False)
        return jorth_command("fail")

    return install


def test_an_unexpected_error_is_one_line_that_asks_for_a_report(failing):
    result = failing(KeyError("thing"))
    assert result.exit_code == 1
    assert result.output.startswith("Internal error: KeyError: 'thing'.")
    assert REPORT in result.output
    assert result.output.count("\n") == 1


def test_its_traceback_is_shown_on_request(failing, monkeypatch):
    monkeypatch.setenv("JORTH_TRACEBACK", "1")
    result = failing(KeyError("thing"))
    assert "Traceback (most recent call last)" in result.output
    assert "in fail" in result.output


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Error: No space left on device\n"),
        (PermissionError(13, "Permission denied", "a/b"), "Error: a/b: Permission denied\n"),
        (MemoryError(), "Error: out of memory\n"),
        (ImportError("X needs Y"), "Error: X needs Y\n"),
    ],
)
def test_errors_of_the_machine_are_no_bugs(failing, error, message):
    result = failing(error)
    assert result.exit_code == 1
    assert result.output == message


def test_a_closed_pipe_ends_quietly(failing):
    result = failing(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert result.exit_code == 1
    assert result.output == ""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_is_130(failing, error):
    result = failing(error)
    assert result.exit_code == 130
    assert result.output.strip() == "Interrupted."


def test_ctrl_c_that_a_library_replaces_is_130(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    @click.command()
    def fail():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("lost") from None

    monkeypatch.setitem(jorth.cli.COMMANDS, "fail", "tests.cli.test_endings:fail")
    monkeypatch.setattr("tests.cli.test_endings.fail", fail, raising=False)
    try:
        result = jorth_command("fail")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130
    assert "lost" not in result.output


def test_messages_have_an_end():
    assert len(one_line(ValueError("x" * 10_000))) == LONGEST


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["dmeo"], "Did you mean demo?"),
        (["nothing"], "There are demo, kge, solve."),
        (["kge", "trian"], "Did you mean train?"),
        (["solve", "eigne"], "Did you mean eigen?"),
    ],
)
def test_wrong_names_are_refused_with_a_suggestion(tmp_path, monkeypatch, arguments, near):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JORTH_DATA", raising=False)
    result = jorth_command(*arguments)
    assert result.exit_code == 2
    assert near in result.output
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_noticed_before_any_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    demo = import_module("jorth.cli.demo")
    monkeypatch.setattr(demo, "_solve", lambda *_: pytest.fail("work was done"))
    result = jorth_command("demo", "-o", tmp_path / "file" / "folder")
    assert result.exit_code == 1
    assert result.output == f"Error: {tmp_path / 'file' / 'folder'}: Not a directory\n"


@pytest.mark.parametrize("device", ["cuda", "gpu", "cuda:99", "meta"])
@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_a_device_that_is_not_there(tmp_path, monkeypatch, command, device):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    result = jorth_command("kge", command, "--device", device)
    assert result.exit_code == 2
    assert f"'--device': must be cpu here, got {device!r}" in result.output
    assert not list(tmp_path.iterdir())


def test_an_option_of_a_method_with_a_wrong_value(tmp_path):
    np.save(tmp_path / "A.npy", np.eye(4))
    result = jorth_command(
        *("solve", "eigen", tmp_path / "A.npy", "-s", "2,2", "-o", tmp_path / "X.npy"),
        *("--method", "gs-jobcd", "--option", "theta=abc"),
    )
    assert result.exit_code == 2
    assert "--option theta=abc: theta must be None (relative) or a number" in result.output


def test_ctrl_c_in_the_demo_shows_the_runs_so_far(tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    calls = []

    def second_is_interrupted(*arguments, **options):
        calls.append(options["method"])
        if len(calls) == 2:
            options |= {"callback": lambda X, row: True}
        return minimize(*arguments, **options | {"max_iterations": 3})

    monkeypatch.setattr(jorth, "minimize", second_is_interrupted)
    try:
        result = jorth_command("demo", "-o", tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.exit_code == 130, result.output
    assert calls == ["gs-jobcd", "j-jobcd"]
    assert "the table has the runs so far" in result.output
    assert result.output.count("j-jobcd ") == 1
    assert not list(tmp_path.iterdir())


def test_ctrl_c_during_compilation_ends_a_run_at_once(monkeypatch):
    """The first Ctrl-C raises there; in an iteration it would only set a flag."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    went_on = []

    class Slow(jorth.GaussSeidel):
        def prepare_for(self, problem, X):
            signal.raise_signal(signal.SIGINT)
            went_on.append(time.time())

    try:
        result = minimize(
            jorth.Quadratic(np.eye(4)), signature=jorth.Signature(2, 2), method=Slow()
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status is jorth.Status.INTERRUPTED
    assert not went_on
    np.testing.assert_array_equal(result.x, np.eye(4))
