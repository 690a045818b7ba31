"""Matrices in text: one row per line, as spreadsheets, pandas, R and NumPy write them.

What is not a number is recognised where it has a usual form: a header, an index column, quotes,
decimal commas, separators at the ends of lines. The user is told of every decision that may be
wrong.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import IO, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from jorth.storage.checks import check_stream

Choice: TypeAlias = Literal["auto", "yes", "no"]
Tell: TypeAlias = Callable[[str], object]
Rows: TypeAlias = list[tuple[int, str]]  # lines with their numbers

SAMPLE = 100
"""So many rows decide what the first one is."""
WORD = re.compile(r'"[^"]*"|\S+')
WHOLE = re.compile(r"[+-]?\d+")
UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)*)?")  # as pandas calls columns without a name
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?', re.IGNORECASE)  # written by Excel, and for it
WORKBOOKS = {b"PK\x03\x04": "a workbook or a zip archive", b"\xd0\xcf\x11\xe0": "an old workbook"}


@dataclass(frozen=True)
class Layout:
    """Whether the first line has names, and the first column an index; "auto" decides."""

    header: Choice = "auto"
    index: Choice = "auto"


AUTO = Layout()


def silent(note: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Table:
    """Lines of entries."""

    rows: Rows
    mark: str | None  # between entries; None is white space

    def cells(self, line: str) -> list[str]:
        """The entries of a line, without quotes."""
        if self.mark is None:
            return [cell.strip('"') for cell in WORD.findall(line)]
        return [cell.strip() for cell in next(csv.reader([line], delimiter=self.mark), [""])]


def read_text_matrix(
    path: Path, limit: int, layout: Layout = AUTO, tell: Tell = silent
) -> NDArray[np.float64]:
    """The numbers (m, n) in a text file, which may be packed by gzip.

    Args:
        path: The file.
        limit: The most bytes that a packed file may have inside.
        layout: What is known about header and index.
        tell: Called with one line for every decision that the user may want to change.
    """
    table = _with_points(_without_quotes(_without_ends(_table(_text(path, limit)))), tell)
    if not table.rows:
        raise ValueError("there are no numbers in it")
    header = _has_header(table, layout, tell)
    index = _index_columns(table, layout, header, tell)
    rows = table.rows[1:] if header else table.rows
    if not rows:
        raise ValueError("there are no numbers in it")
    table = replace(table, rows=[(number, _cut(table, line, index)) for number, line in rows])
    lines = [line for _, line in table.rows]
    try:
        found = np.loadtxt(lines, delimiter=table.mark, ndmin=2, comments=None)
    except ValueError as error:
        raise ValueError(_first_bad(table, index) or str(error)) from error
    if layout.index == "auto" and not index:
        _tell_of_counting(table, found, tell)
    return found


# -- from bytes to lines


def _text(path: Path, limit: int) -> str:
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as stream:
            check_stream(cast(IO[bytes], stream), limit)
            stream.seek(0)
            content = stream.read()
    else:
        content = path.read_bytes()
    for start, kind in WORKBOOKS.items():
        if content.startswith(start):
            raise ValueError(f"it is {kind}, not text; save the sheet as CSV")
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):  # what Excel calls Unicode text
        return content.decode("utf-16")
    if b"\0" in content:
        raise ValueError("it is not text: it has bytes of zeros")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")  # names may have accents; numbers are the same


def _table(text: str) -> Table:
    """The lines that are neither blank nor comments, and what separates their entries."""
    bare = (line.split("#", 1)[0].strip(" \r\v\f") for line in text.splitlines())
    rows = [(number, line) for number, line in enumerate(bare, 1) if line.strip()]
    said = SEPARATOR_LINE.fullmatch(rows[0][1]) if rows else None
    if said:
        return Table(rows[1:], said[1])
    mark = _separator(rows[0][1]) if rows else None
    if mark is None:
        rows = [(number, line.strip()) for number, line in rows]
    return Table(rows, mark)


def _separator(line: str) -> str | None:
    """Semicolons, else tabs around commas or gaps, else commas, else white space."""
    if ";" in line:
        return ";"
    around_commas = "," in line and not re.search(r",\s*\t|\t\s*,", line)
    if "\t" in line and (around_commas or line.startswith("\t") or "\t\t" in line or '"' in line):
        return "\t"
    return "," if "," in line else None


# -- what is written differently, and means the same


def _without_ends(table: Table) -> Table:
    """The table without a separator at the end of every line."""
    mark, rows = table.mark, table.rows
    if mark is None or len(rows) < 2 or not all(line.endswith(mark) for _, line in rows[1:]):
        return table
    first = rows[0][1]
    one_less = len(table.cells(first)) + 1 == len(table.cells(rows[1][1]))
    if first.endswith(mark):
        return replace(table, rows=[(number, line[:-1]) for number, line in rows])
    if one_less:  # a header may lack what all other lines have
        cut = [(number, line[:-1]) for number, line in rows[1:]]
        return replace(table, rows=[rows[0], *cut])
    return table


def _without_quotes(table: Table) -> Table:
    """The table with tabs between entries, if there are quotes in it."""
    if not any('"' in line for _, line in table.rows):
        return table
    rows = [(number, "\t".join(table.cells(line))) for number, line in table.rows]
    return Table(rows, "\t")


def _with_points(table: Table, tell: Tell) -> Table:
    """The table with decimal points for decimal commas."""
    body = table.rows[1:] or table.rows
    commas = any("," in line for _, line in body)
    if table.mark in (None, ",") or not commas or any("." in line for _, line in body):
        return table
    tell("decimal commas are read as decimal points")
    return replace(table, rows=[(number, line.replace(",", ".")) for number, line in table.rows])


# -- header and index


def _has_header(table: Table, layout: Layout, tell: Tell) -> bool:
    """Whether the first line has names of columns."""
    if layout.header != "auto":
        return layout.header == "yes"
    first, *body = [table.cells(line) for _, line in table.rows[: SAMPLE + 1]]
    named = [cell for cell in first if cell]
    if not any(_is_number(cell) for cell in named):
        return bool(named)
    if not body:
        return False
    shown = ",".join(first[:3]) + (",..." if len(first) > 3 else "")
    corner = first[0] == "" and (_counts(first[1:]) or _counts([row[0] for row in body]))
    shorter = len(first) + 1 == len(body[0]) and _counts([row[0] for row in body])
    if corner or (_counts(first) and (shorter or _differs(first, body, len(table.rows)))):
        tell(f"line 1 ({shown}) is read as names of columns; --header no reads it as data")
        return True
    if _counts(first) and len(first) > 2:
        tell(f"line 1 ({shown}) is read as data; --header yes reads it as names of columns")
    return False


def _differs(first: list[str], body: list[list[str]], lines: int) -> bool:
    """Whether a first line 0, 1, 2, ... is unlike the others: they have fractions, or are others.

    Not if the numbers go on counting, or if the table is square with that line, as matrices are.
    """
    entries = [cell for row in body for cell in row]
    if not any(WHOLE.fullmatch(cell) for cell in entries):
        return True
    goes_on = body[0][0] == str(int(first[-1]) + 1)
    return len(first) > 1 and lines != len(first) and not goes_on


def _counts(cells: list[str]) -> bool:
    """Whether these are 0, 1, 2, ... or 1, 2, 3, ..."""
    if not cells or cells[0] not in ("0", "1"):
        return False
    return cells == [str(number) for number in range(int(cells[0]), int(cells[0]) + len(cells))]


def _index_columns(table: Table, layout: Layout, header: bool, tell: Tell) -> int:
    """How many columns at the left are an index and not data."""
    if layout.index != "auto":
        return int(layout.index == "yes")
    cells = [table.cells(line) for _, line in table.rows[: SAMPLE + 1]]
    if not header or len(cells) < 2 or not cells[1:]:
        return 0
    first, *body = cells
    unnamed = len(list(takewhile(UNNAMED.fullmatch, first)))
    if unnamed == 0 and len(first) + 1 == len(body[0]):  # R leaves the corner out
        left = [row[0] for row in body]
        unnamed = int(_counts(left) or not any(_is_number(cell) for cell in left))
    if not 0 < unnamed < len(body[0]):
        return 0
    which = "column 1, which has no name, is" if unnamed == 1 else f"columns 1 to {unnamed} are"
    tell(f"{which} read as an index and left out; --index no reads it as data")
    return unnamed


def _tell_of_counting(table: Table, found: NDArray[np.float64], tell: Tell) -> None:
    """Tell of a first column 0, 1, 2, ... beside fractions, which is usually an index."""
    m, n = found.shape
    counting = found[0, 0] in (0, 1) and bool((np.diff(found[:, 0]) == 1).all())
    if m < 3 or n < 2 or not counting:
        return
    sample = [table.cells(line) for _, line in table.rows[:SAMPLE]]
    if all(WHOLE.fullmatch(row[0]) for row in sample) and not any(
        WHOLE.fullmatch(cell) for row in sample for cell in row[1:]
    ):
        start = ", ".join(row[0] for row in sample[:3])
        tell(f"column 1 ({start}, ...) is read as data; --index yes leaves it out")


def _cut(table: Table, line: str, columns: int) -> str:
    """A line without its first entries."""
    for _ in range(columns):
        parts = line.split(table.mark, 1)
        line = parts[1] if len(parts) > 1 else ""
    return line


# -- what is wrong


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _first_bad(table: Table, index: int) -> str | None:
    """The first place where a text is not a table of numbers."""
    width = len(table.cells(table.rows[0][1]))
    for place, (number, line) in enumerate(table.rows):
        row = table.cells(line)
        for column, entry in enumerate(row, 1 + index):
            if not _is_number(entry):
                where = f"line {number}, column {column}"
                if not entry:
                    return f"{where} is empty"
                hint = _advice(row, first_line=place == 0 and number == 1, column=column)
                return f"{where}: {entry!r:.40} is not a number{hint}"
        if len(row) != width:
            return f"line {number} has {len(row)} entries, the lines before it {width}"
    return None


def _advice(row: list[str], *, first_line: bool, column: int) -> str:
    """Which option helps against an entry that is not a number, as the end of a message."""
    if first_line and any(map(_is_number, row)):
        return " (--header yes reads line 1 as names of columns)"
    if column == 1 and "," not in row[0] and len(row) > 1 and all(map(_is_number, row[1:])):
        return " (--index yes leaves column 1 out)"
    return ""
