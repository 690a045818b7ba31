"""How commands end: one line for an error, the right exit code, nothing for a closed pipe."""

import errno
import re
import signal

import click
import pytest
from click.testing import CliRunner
from PIL import Image

import jorth
from jorth.cli import main
from jorth.solvers import minimize


def jorth_command(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def failing(monkeypatch):
    """A command `jorth fail` that raises what it is given."""

    def install(error):
        @click.command()
        def fail():
            raise error

        monkeypatch.setitem(main.commands, "fail", fail)
        return jorth_command("fail")

    return install


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("X must be\nsmall"), "Error: X must be small\n"),
        (OSError(errno.ENOSPC, "No space left on device"), "Error: No space left on device\n"),
        (PermissionError(13, "Permission denied", "a/b"), "Error: a/b: Permission denied\n"),
        (ImportError("X needs Y"), "Error: X needs Y\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), ""),
    ],
)
def test_expected_errors_are_one_line(failing, error, message):
    result = failing(error)
    assert result.exit_code == 1
    assert result.output == message


def test_an_unexpected_error_asks_for_a_report(failing, monkeypatch):
    result = failing(KeyError("thing"))
    assert result.exit_code == 1
    assert result.output.startswith("Internal error: KeyError: 'thing'. Please report it")
    assert result.output.count("\n") == 1
    monkeypatch.setenv("JORTH_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in failing(KeyError("thing")).output


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_ctrl_c_is_130(failing, error):
    result = failing(error)
    assert result.exit_code == 130
    assert result.output.strip() == "Interrupted."


def test_ctrl_c_that_a_library_replaces_is_130(monkeypatch, ctrl_c_is_heard):
    @click.command()
    def fail():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise RuntimeError("lost") from None

    monkeypatch.setitem(main.commands, "fail", fail)
    result = jorth_command("fail")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert result.exit_code == 130
    assert "lost" not in result.output


def test_a_folder_that_cannot_be_made_is_noticed(tmp_path):
    (tmp_path / "file").write_text("")
    result = jorth_command("demo", "-o", tmp_path / "file" / "folder")
    assert result.exit_code == 1
    assert result.output.startswith("Error: --output: the folder ")


def test_demo_prints_and_draws(tmp_path):
    result = jorth_command("demo", "--output", tmp_path)
    assert result.exit_code == 0, result.output
    # six rows: value, relative gap, ...; a slow machine may reach a time limit
    pattern = r"^ *(?:gs|j|vr-j)-jobcd +\S+ +(\S+) .* (\w+) *$"
    rows = re.findall(pattern, result.output, re.MULTILINE)
    assert len(rows) == 6
    assert all(float(gap) < (1e-9 if ended == "converged" else 1) for gap, ended in rows)
    assert "converged" in [ended for _, ended in rows]
    with Image.open(tmp_path / "convergence.png") as picture:
        assert min(picture.size) >= 500


def test_ctrl_c_in_the_demo_shows_the_runs_so_far(tmp_path, monkeypatch, ctrl_c_is_heard):
    calls = []

    def second_is_interrupted(*arguments, **options):
        calls.append(options["method"])
        if len(calls) == 2:
            options |= {"callback": lambda X, row: True}
        return minimize(*arguments, **options | {"max_iterations": 3})

    monkeypatch.setattr(jorth, "minimize", second_is_interrupted)
    result = jorth_command("demo", "-o", tmp_path)
    assert result.exit_code == 130, result.output
    assert calls == ["gs-jobcd", "j-jobcd"]
    assert "the table has the runs so far" in result.output
    assert not list(tmp_path.iterdir())
