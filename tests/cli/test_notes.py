"""Notes on the standard error: where they go to a file, and where they are not wanted."""

import io
import subprocess
import sys

import pytest

from jorth.cli import main
from jorth.cli.notes import tell, telling_of_compilation
from jorth.terminal import before_compiling

LONG = "columns 1 to 3 are " + "read as an index and " * 10 + "left out; --index no keeps them"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_notes_in_a_file_are_one_line(capsys):
    tell(LONG)
    with telling_of_compilation():
        before_compiling[-1]()  # not a word of it: nobody watches
    assert capsys.readouterr().err == f"note: {LONG}\n"


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_holds_for_compilation(monkeypatch, quiet):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with telling_of_compilation(), main.make_context("jorth", ["demo"]) as context:
        context.params["quiet"] = quiet
        before_compiling[-1]()
    assert bool(terminal.getvalue()) is not quiet


PROGRAM = """
from jorth.terminal import before_compiling
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
