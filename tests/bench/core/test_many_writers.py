"""Several processes add rows to one file, and some of them are killed."""

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

from jorth.bench.core.records import append_row, read_rows

WRITERS = 3
ROWS = 400
WRITE = """
import sys
from pathlib import Path

from jorth.bench.core.records import append_row

path, name, rows, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
for number in range(rows):
    row = {"key": f"{name} {number}", "cell": {}, "outcome": "done", "filling": "x" * size}
    append_row(path, row)
"""


def row(key):
    return {"key": key, "cell": {}, "outcome": "done"}


@contextmanager
def writing(path, name, rows, size):
    """A process that is ready to write, and that has ended when this does."""
    command = [sys.executable, "-c", WRITE, str(path), name, str(rows), str(size)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def let_go(process):
    process.stdin.write("\n")
    process.stdin.flush()


def test_no_row_is_lost(tmp_path):
    """Three processes at once, with a torn line in the file when they begin."""
    path = tmp_path / "runs.jsonl"
    path.write_text('{"key": "torn')
    with ExitStack() as stack:
        waiting = [writing(path, f"writer {number}", ROWS, 3000) for number in range(WRITERS)]
        writers = [stack.enter_context(writer) for writer in waiting]
        for writer in writers:
            let_go(writer)
        assert [writer.wait(120) for writer in writers] == [0] * WRITERS
    keys = {found["key"] for found in read_rows(path)}
    assert keys == {
        f"writer {number} {index}" for number in range(WRITERS) for index in range(ROWS)
    }
    assert len(path.read_bytes().splitlines()) == WRITERS * ROWS


def test_a_killed_writer_loses_none_of_the_others_rows(tmp_path):
    """A writer of large rows is killed again and again while another adds its own."""
    path = tmp_path / "runs.jsonl"
    victims = 6
    mine = 0
    for number in range(victims):
        with writing(path, f"victim {number}", 10**6, 2_000_000) as victim:
            let_go(victim)
            ends = time.monotonic() + 0.05 * (1 + number)
            while time.monotonic() < ends:
                append_row(path, row(f"mine {mine}"))
                mine += 1
        append_row(path, row(f"mine {mine}"))
        mine += 1
    keys = [found["key"] for found in read_rows(path)]
    assert {key for key in keys if key.startswith("mine")} == {
        f"mine {number}" for number in range(mine)
    }
    for number in range(victims):  # of each victim's rows the first ones, without a gap
        found = sum(key.startswith(f"victim {number} ") for key in keys)
        assert {f"victim {number} {index}" for index in range(found)} <= set(keys)


@pytest.mark.parametrize("cut", [1, 5, 20, 35])
def test_a_torn_line_hides_no_row_before_or_after_it(tmp_path, cut):
    path = tmp_path / "runs.jsonl"
    for key in ("first", "second"):
        append_row(path, row(key))
    torn = json.dumps(row("torn")).encode()[:cut]
    with path.open("ab") as file:
        file.write(torn)
    assert [found["key"] for found in read_rows(path)] == ["first", "second"]
    append_row(path, row("third"))
    assert [found["key"] for found in read_rows(path)] == ["first", "second", "third"]


def test_a_whole_row_without_its_newline_stays(tmp_path):
    """A write may be cut just before its last byte: the row is read then, and must not go when
    another comes."""
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(row("whole")))
    assert [found["key"] for found in read_rows(path)] == ["whole"]
    append_row(path, row("next"))
    assert [found["key"] for found in read_rows(path)] == ["whole", "next"]


def test_a_row_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    append_row(path, row("first"))
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            append_row(path, row("second"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"key": ' * 100_000,
        "null",
        "3",
        '{"key": [], "cell": {}, "outcome": "done"}',
        "{",
        b"\xff",
    ],
)
def test_damaged_lines_are_named(tmp_path, line):
    path = tmp_path / "runs.jsonl"
    content = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(json.dumps(row("first")).encode() + b"\n" + content + b"\n")
    with pytest.raises(ValueError, match=r"runs\.jsonl, line 2"):
        read_rows(path)
