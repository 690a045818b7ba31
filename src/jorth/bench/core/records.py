"""Rows on disk: JSON lines, one for each run, appended as runs finish."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from jorth.bench.core.cells import CellT
from jorth.storage.atomic import held
from jorth.storage.texts import parse_json

NAME = "runs.jsonl"
"""The file in a run's folder."""
Row = dict[str, Any]


def append_row(path: Path, row: Row) -> None:
    """Add a row and flush it to the disk. NaN and infinity become null: JSON has neither.

    Several processes may add to one file. Each row is one write by a writer that holds the file
    alone; if it fails, nothing of the row stays. A line torn by a killed writer is cut off first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(_without_nan(row), allow_nan=False).encode() + b"\n"
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
    """The rows of a file, or of all ``*.jsonl`` of a folder; of a cell that ran twice the last one.

    A last line that was torn by a crash or a full disk is passed over.
    """
    place = Path(source)
    if not place.exists():
        raise FileNotFoundError(
            f"no run at {place}: it must be a folder with {NAME}, or such a file"
        )
    rows: dict[str, Row] = {}
    for path in sorted(place.glob("*.jsonl")) if place.is_dir() else [place]:
        for row in _rows_of_file(path):
            rows.pop(row["key"], None)
            rows[row["key"]] = row
    return list(rows.values())


@contextmanager
def errors_naming(source: str | Path) -> Iterator[None]:
    """Turn every error that unexpected rows cause into a ValueError that names their source."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{source} has rows that jorth bench did not write ({reason})") from error


def remaining(cells: Iterable[CellT], path: Path, *, retry_failed: bool = False) -> list[CellT]:
    """The cells, each once, without a result in the file; failed ones count unless retried."""
    over = {"done", "left out"} if retry_failed else {"done", "left out", "failed"}
    rows = read_rows(path) if path.exists() else []
    keys = {row["key"] for row in rows if row["outcome"] in over}
    return [cell for cell in dict.fromkeys(cells) if cell.key not in keys]


class MethodRows(dict[str, list[Row]]):
    """The rows of every method that has any, in the order of ``methods``."""

    def __init__(self, rows: Sequence[Row], methods: Iterable[str]) -> None:
        found = {name: [row for row in rows if row["cell"]["method"] == name] for name in methods}
        super().__init__({name: members for name, members in found.items() if members})

    def done(self, name: str) -> list[Row]:
        """The runs of a method with a result."""
        return [row for row in self.get(name, []) if row["outcome"] == "done"]

    @property
    def seeds(self) -> list[Any]:
        """All seeds in rising order; whatever is no number comes last."""
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
            if number < len(lines):  # the last line has no newline behind it: it was torn
                raise
    return rows


def _parse_row(line: bytes, where: str) -> Row:
    row = parse_json(line, where)
    types = {"key": str, "cell": dict, "outcome": str}
    if isinstance(row, dict) and all(isinstance(row.get(name), t) for name, t in types.items()):
        return row
    raise ValueError(
        f"{where}: not a row of a benchmark: it must have a key, a cell and an outcome"
    )


def _mend_last_line(file: FileIO) -> None:
    """End the last line, or cut it off if it is not a complete row."""
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


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _without_nan(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value
