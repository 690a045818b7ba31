"""Rows on disk: one line of JSON per run, appended as runs finish."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from jorth.bench.core.cells import CellT
from jorth.storage.atomic import held
from jorth.storage.texts import parse_json, to_json

NAME = "runs.jsonl"  # the file in a run's folder
Row = dict[str, Any]


def append_row(path: Path, row: Row) -> None:
    """Add a row and flush it to the disk; NaN and infinity become null.

    Several processes may add to one file, as the writer locks it. If writing fails, nothing of the
    row remains. A partial line that a killed writer has left is removed first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = to_json(row) + b"\n"
    with path.open("a+b", buffering=0) as file:
        held(file.fileno(), wait=True)
        _mend_last_line(file)
        end = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(end)
            raise


def read_rows(source: str | Path) -> list[Row]:
    """The rows of a file, or of all ``*.jsonl`` of a folder; the last one of each cell counts.

    A partial last line, left by a crash or a full disk, is ignored.
    """
    place = Path(source)
    if not place.exists():
        raise FileNotFoundError(f"no run at {place}: it must be {NAME}, or a folder with it")
    rows: dict[str, Row] = {}
    for path in sorted(place.glob("*.jsonl")) if place.is_dir() else [place]:
        for row in _rows_of_file(path):
            rows.pop(row["key"], None)
            rows[row["key"]] = row
    return list(rows.values())


def reason(row: Row) -> str:
    """Why a run has no result."""
    return f"{row['outcome']}: {error_of(row)}"


def error_of(row: Row) -> str:
    """The error of a run, if one was recorded."""
    return str(row.get("error", "no error was recorded"))


@contextmanager
def errors_naming(source: str | Path) -> Iterator[None]:
    """Turn errors caused by unexpected rows into a ValueError that names their source."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{source} has rows that jorth bench did not write ({reason})") from error


def remaining(cells: Iterable[CellT], path: Path, *, retry_failed: bool = False) -> list[CellT]:
    """The cells, each once, that still have to be run; failed ones only if they are retried."""
    finished = {"done", "left out"} if retry_failed else {"done", "left out", "failed"}
    rows = read_rows(path) if path.exists() else []
    keys = {row["key"] for row in rows if row["outcome"] in finished}
    return [cell for cell in dict.fromkeys(cells) if cell.key not in keys]


class MethodRows(dict[str, list[Row]]):
    """The rows of every method that has any, in the order of ``methods``."""

    def __init__(self, rows: Sequence[Row], methods: Iterable[str]) -> None:
        found = {name: [row for row in rows if row["cell"]["method"] == name] for name in methods}
        super().__init__({name: members for name, members in found.items() if members})

    def done(self, name: str) -> list[Row]:
        return [row for row in self.get(name, []) if row["outcome"] == "done"]

    @property
    def seeds(self) -> list[Any]:
        """All seeds in ascending order; those that are not numbers come last."""
        seeds = {row["cell"]["seed"] for rows in self.values() for row in rows}
        numbers = {seed for seed in seeds if isinstance(seed, (int, float))}
        return [*sorted(numbers), *sorted(seeds - numbers, key=str)]


def _rows_of_file(path: Path) -> list[Row]:
    lines = path.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_parse_row(line, f"{path}, line {number}"))
        except ValueError:
            if number < len(lines):  # only a partial last line has no newline after it
                raise
    return rows


def _parse_row(line: bytes, where: str) -> Row:
    row = parse_json(line, where)
    types = {"key": str, "cell": dict, "outcome": str}
    if isinstance(row, dict) and all(isinstance(row.get(name), t) for name, t in types.items()):
        return row
    raise ValueError(f"{where}: not a row, which must have a key, a cell and an outcome")


def _mend_last_line(file: FileIO) -> None:
    """Complete the last line, or remove it if it is not a row."""
    size = file.seek(0, os.SEEK_END)
    if not size:
        return
    file.seek(size - 1)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.readall()
    begin = content.rfind(b"\n") + 1
    try:
        _parse_row(content[begin:], "")
        file.write(b"\n")
    except ValueError:
        file.truncate(begin)
