"""The program on a terminal, as a person starts it: every command once, 80 columns wide."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

import jorth
from tests.cli.conftest import PACKAGE
from tests.cli.conftest import folder as folder  # a fixture

NOTE = "note: compiling for this computer"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLUMNS = 80


def on_a_terminal(*arguments, cwd, cache=None):
    """Start `jorth` on a terminal of its own; the exit code and all that it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    env = os.environ | {"PYTHONPATH": str(PACKAGE), "TERM": "xterm"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        env.pop(name, None)
    if cache is not None:
        env["NUMBA_CACHE_DIR"] = str(cache)
    process = subprocess.Popen(
        [sys.executable, "-m", "jorth", *arguments],
        **dict(stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env),
    )
    os.close(theirs)
    shown = bytearray()
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # what Linux answers once the other end is closed
        pass
    os.close(ours)
    return process.wait(), shown.decode()


def lines_of(shown):
    """What is left on the terminal: each line as it was written last."""
    return [
        re.split(r"\r|\x1b\[2K", line.rstrip("\r"))[-1] if line.strip() else ""
        for line in CONTROL.sub(lambda code: code[0] * code[0].endswith("2K"), shown).split("\n")
    ]


def check(code, shown, expected=0):
    assert code == expected, shown
    assert "Traceback" not in shown
    assert "Error in" not in shown
    assert shown.count(NOTE) <= 1
    assert max(map(len, lines_of(shown))) <= COLUMNS, shown


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["--version"], f"jorth, version {jorth.__version__}", 0),
        (["--help"], "solve", 0),
        (["kge", "--help"], "predict", 0),
        (["solve", "procrustes", "--help"], "--signature", 0),
        (["demmo"], "No such command", 2),
        (["solve", "eigen", "no.npy", "-s", "5,3", "-o", "X.npy"], "no.npy", 2),
        (["solve", "eigen", "A.npy", "-s", "5,4", "-o", "X.npy"], "--signature", 2),
        (["solve", "eigen", "A.npy", "-s", "5,3", "-o", "X.npy"], "lambda +", 0),
        (["solve", "procrustes", "S.npy", "T.npy", "-s", "5,3", "-o", "X.npy"], "R^2", 0),
        (["solve", "quadratic", "A.npy", "C.npy", "-s", "5,3", "-o", "X.npy"], "component", 0),
        (["demo"], "Convergence: out/convergence.png", 0),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_every_command(folder, arguments, said, code):
    found, shown = on_a_terminal(*arguments, cwd=folder)
    check(found, shown, code)
    assert said in CONTROL.sub("", shown)


def test_a_graph_from_training_to_pictures(tmp_path):
    (tmp_path / "g.tsv").write_text(
        "\n".join(f"{a}\tnext\t{(a + 1) % 12}\n{(a + 1) % 12}\tprevious\t{a}" for a in range(12))
    )
    for arguments, said in {
        ("train", "--data", "g.tsv", "--epochs", "2"): "The model",
        ("evaluate",): "Hits@10",
        ("predict", "3", "next", "?"): "4",
        ("nearest", "3"): "4",
        ("explain",): "previous",
        ("draw",): "entities.png",
    }.items():
        code, shown = on_a_terminal("kge", *arguments, cwd=tmp_path)
        check(code, shown)
        assert said in CONTROL.sub("", shown)


def test_waiting_for_the_compiler_is_told_once_on_a_line_of_its_own(folder):
    """Also where a line of progress is on the screen."""
    problem = ("solve", "procrustes", "S.npy", "T.npy", "-s", "5,3", "-o", "X.npy")
    problem = (*problem, "--progress", "--method", "riemannian-newton")
    code, shown = on_a_terminal(*problem, cwd=folder, cache=folder / "cache")
    check(code, shown)
    assert shown.count(NOTE) == 1
    assert "jorth compiles" not in shown  # the library's own note
    assert any(line.startswith(NOTE) for line in lines_of(shown))
    code, shown = on_a_terminal(*problem, cwd=folder, cache=folder / "cache")
    check(code, shown)
    assert NOTE not in shown
