"""Notes on the standard error: their width, and the one about compilation."""

import io
import subprocess
import sys

import pytest

from jorth.cli import main
from jorth.cli.notes import COMPILING, tell, telling_of_compilation
from jorth.waiting import before_compiling

LONG = "columns 1 to 3 are " + "read as an index and " * 10 + "left out; --index no keeps them"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def open_terminal(monkeypatch):
    """Call it in the test: pytest replaces the standard error after fixtures are made."""

    def open_one(kind=Terminal):
        shown = kind()
        monkeypatch.setattr(sys, "stderr", shown)
        return shown

    return open_one


def compile_twice():
    for _ in range(2):
        for call in before_compiling:
            call()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_notes_fit_the_terminal(open_terminal, monkeypatch, width):
    terminal = open_terminal()
    monkeypatch.setenv("COLUMNS", str(width))
    tell(LONG)
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(line.strip() for line in lines) == f"note: {LONG}"


def test_notes_in_a_file_are_one_line(capsys):
    tell(LONG)
    assert capsys.readouterr().err == f"note: {LONG}\n"


def test_compilation_is_told_once_and_only_on_a_terminal(open_terminal, monkeypatch):
    terminal = open_terminal()
    monkeypatch.setenv("COLUMNS", "200")
    with telling_of_compilation():
        compile_twice()
    assert terminal.getvalue() == f"note: {COMPILING}\n"
    compile_twice()  # no longer listening
    elsewhere = open_terminal(io.StringIO)
    with telling_of_compilation():
        compile_twice()
    assert elsewhere.getvalue() == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_holds_for_compilation(open_terminal, quiet):
    terminal = open_terminal()
    with telling_of_compilation(), main.make_context("jorth", ["demo"]) as context:
        context.params["quiet"] = quiet
        compile_twice()
    assert bool(terminal.getvalue()) is not quiet


PROGRAM = """
from jorth.waiting import before_compiling
before_compiling.append(lambda: print("compiling"))
from jorth.compiling import compiler

@compiler()
def double(x):
    return 2 * x

assert double(2.0) == 4.0
"""


def test_code_on_the_disk_is_not_compiled_again(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for told in ("compiling\n", ""):
        found = subprocess.run(
            [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True
        )
        assert (found.stdout, found.returncode) == (told, 0), found.stderr
