"""Rows on disk: JSON lines, one row a run, appended as runs finish."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Protocol, TypeVar

from jorth.bench.cells import Cell
from jorth.storage.atomic import held
from jorth.storage.texts import parse_json

NAME = "runs.jsonl"
"""The file in a run's folder."""
Row = dict[str, Any]


class Keyed(Protocol):
    """What a row can be of: something that is known by its key."""

    @property
    def key(self) -> str:
        """All that decides the run."""


AnyCell = TypeVar("AnyCell", bound=Keyed)


def append_row(path: Path, row: Row) -> None:
    """Add a row and see it onto the disk. NaN and infinity become null: JSON has neither.

    Several processes may add to one file. Each row is one write, by a writer that holds the file alone; where that
    fails, nothing of the row stays. A line that a killed writer has torn is cut off first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(_plain(row), allow_nan=False).encode() + b"\n"
    with path.open("a+b", buffering=0) as file:
        held(file.fileno(), wait=True)
        _mend_last_line(file)
        whole = file.seek(0, os.SEEK_END)
        try:
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(whole)
            raise


def read_rows(source: str | Path) -> list[Row]:
    """The rows of a file, or of all ``*.jsonl`` of a folder, the last of each cell where it was run again.

    A last line that was torn, by a crash or a full disk, is passed over.
    """
    place = Path(source)
    if not place.exists():
        raise FileNotFoundError(
            f"no run at {place}: it must be a folder with {NAME}, or such a file"
        )
    paths = sorted(place.glob("*.jsonl")) if place.is_dir() else [place]
    rows: dict[str, Row] = {}
    for path in paths:
        for row in _lines(path):
            rows.pop(row["key"], None)
            rows[row["key"]] = row
    return list(rows.values())


@contextmanager
def naming(source: str | Path) -> Iterator[None]:
    """Whatever rows raise that are not as they were written becomes a ValueError that names where they are from."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{source} has rows that jorth bench did not write ({reason})") from error


def remaining(cells: Iterable[AnyCell], path: Path, *, retry_failed: bool = False) -> list[AnyCell]:
    """The cells, each once, that the file has no result for; failed ones count as run unless they are to be retried."""
    over = {"done", "left out"} if retry_failed else {"done", "left out", "failed"}
    rows = read_rows(path) if path.exists() else []
    keys = {row["key"] for row in rows if row["outcome"] in over}
    return [cell for cell in dict.fromkeys(cells) if cell.key not in keys]


def is_graph(row: Row) -> bool:
    """Whether a row is of a knowledge graph, not of a matrix."""
    return bool(row["cell"].get("problem") == "kge")


def is_speed(row: Row) -> bool:
    """Whether a row is a time beside those of other libraries."""
    return bool(row["cell"].get("problem") == "speed")


def cell_of(row: Row) -> Cell:
    """The cell that a row of a matrix problem is of."""
    return Cell.from_json(row["cell"])


def _lines(path: Path) -> list[Row]:
    raw = path.read_bytes().split(b"\n")
    rows = []
    for number, line in enumerate(raw, 1):
        if not line.strip():
            continue
        try:
            rows.append(_row(line, f"{path}, line {number}"))
        except ValueError:
            if number < len(raw):
                raise
            # no newline behind it: torn
    return rows


def _row(line: bytes, where: str) -> Row:
    row = parse_json(line, where)
    kinds = {"key": str, "cell": dict, "outcome": str}
    if not isinstance(row, dict) or not all(
        isinstance(row.get(name), kind) for name, kind in kinds.items()
    ):
        raise ValueError(
            f"{where}: not a row of a benchmark: it must have a key, a cell and an outcome"
        )
    return row


def _mend_last_line(file: FileIO) -> None:
    """End the last line, or cut it off where it is not a whole row."""
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
        _row(content[begin:], "")
        file.write(b"\n")
    except ValueError:
        file.truncate(begin)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
