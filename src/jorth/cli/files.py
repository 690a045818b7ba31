"""Matrices in files: .npy, .npz and text with ids and names of columns. No pickle is loaded."""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from numpy.typing import NDArray

from jorth._files import reading, replacing
from jorth._inputs import is_sparse
from jorth._matrices import Matrix, check_matrix, variables

WRITABLE = (".npy", ".csv", ".tsv", ".txt")
READABLE = (*WRITABLE, ".npz")
GAPS = {"", "na", "n/a", "#n/a", "nan", "null", "none"}
ID_NAMES = {"", "unnamed: 0", "id", "ids", "index", "key", "name", "nr", "row"}
"""Names, in lower case, of a first column that holds no data."""
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")
SWAPPED = str.maketrans(",.", ".,")
LEAST_ROWS = 5
"""A first column 1, 2, 3, ... of so many rows is no accident."""


class Dialect(NamedTuple):
    """How a text is written; an output is written like the first input."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"


PLAIN = Dialect()


@dataclass(frozen=True)
class Table:
    """A matrix (m, n) of a file, NaN where an entry is missing; a text may have names and ids."""

    path: Path
    values: Matrix
    names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    dialect: Dialect = PLAIN

    @property
    def dense(self) -> NDArray[np.float64]:
        """Return the matrix as a NumPy array."""
        return np.asarray(self.values.toarray() if is_sparse(self.values) else self.values)

    def take(self, rows: Any) -> Table:
        """Return the table with these rows, given by numbers or by flags."""
        ids = None if self.ids is None else tuple(np.array(self.ids, dtype=object)[rows])
        return replace(self, values=self.values[rows], ids=ids)


def read(path: Path, *, key: str | None = None) -> Table:
    """Return the table in a file, in float64, dense or CSR: real and not empty.

    ``key`` is the variable of a .npz file; it may be omitted if there is only one.
    """
    ending = path.suffix.lower()
    if ending not in READABLE:
        raise ValueError(f"{path} must end in {', '.join(READABLE)}, got {path.suffix!r}")
    if ending not in (".npy", ".npz"):
        return _read_text(path)
    with reading(str(path)):
        if ending == ".npz":
            found = variables(path)
        else:
            with path.open("rb") as stream:
                found = {"": np.lib.format.read_array(stream, allow_pickle=False)}
    name = next(iter(found)) if len(found) == 1 and (key is None or "" in found) else key
    if name not in found:
        names = ", ".join(found)[:120] or "nothing"
        raise click.UsageError(f"--key must name one variable of {path}; it holds {names}")
    check_matrix(found[name], str(path), finite=False)
    return Table(path, found[name].astype(float))


def _read_text(path: Path) -> Table:
    """Return the table in a text, whose first line and first column may hold names."""
    raw = path.read_bytes()
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if marked else "utf-8"
    try:
        text = raw.decode(encoding).lstrip("\ufeff")
    except UnicodeDecodeError:  # of names; numbers are the same in both
        encoding = "cp1252"
        text = raw.decode(encoding, errors="replace")
    split = enumerate(re.split("\r\n?|\n", text), start=1)
    lines = [(k, line) for k, line in split if line.strip() and line.lstrip()[0] != "#"]
    mark = next((mark for mark in ";\t," if lines and mark in lines[0][1]), " ")
    texts = [line if mark != " " else " ".join(line.split()) for _, line in lines]
    with reading(str(path)):
        parsed = csv.reader(texts, delimiter=mark, skipinitialspace=True, strict=True)
        rows = [[cell.strip() for cell in row] for row in parsed]
    commas = mark != "," and any(DECIMAL_COMMA.fullmatch(cell) for row in rows for cell in row)
    dialect = Dialect(mark, "," if commas else ".", encoding)
    numbers = [[_number(cell, dialect.decimal) for cell in row] for row in rows]
    names = ids = None
    width = len(rows[0]) if rows else 0
    has_ids = len(rows) > 1 < width and all(row[0] is None for row in numbers[1:])
    if rows and None in numbers[0][has_ids:]:
        names = tuple(rows.pop(0))
        del numbers[0], lines[0]
        has_ids |= width > 1 and names[0].lower() in ID_NAMES
    for (line, _), row, found in zip(lines, rows, numbers, strict=True):
        where = f"{path}, line {line}"
        if len(row) != width:
            expected = f"expected {width} fields, as in the first line"
            raise ValueError(f"{where}: {expected}, got {len(row)}")
        if None in found[has_ids:]:
            column = found.index(None, has_ids)
            got = f"expected a number, got {row[column][:40]!r}"
            raise ValueError(f"{where}, column {column + 1}: {got}")
    if not numbers:
        raise ValueError(f"{path} must hold numbers, got none")
    if has_ids:
        ids, names = tuple(row[0] for row in rows), names and names[1:]
    return Table(path, np.array([row[has_ids:] for row in numbers], float), names, ids, dialect)


def _number(cell: str, decimal: str) -> float | None:
    """Return the number in a cell, NaN for a gap, and None for text."""
    if cell.lower() in GAPS:
        return np.nan
    if decimal == ",":
        cell = cell.translate(SWAPPED)  # so that a point is no decimal
    try:
        return float(cell) if "_" not in cell else None
    except ValueError:
        return None


def write(path: Path, array: NDArray[Any], like: Table, *, named: bool = False) -> None:
    """Write a matrix, or a vector as a column, without loss, a text in the dialect of ``like``.

    With ``named`` it has the ids and the names of ``like``, too.
    """
    ending, (mark, decimal, encoding) = path.suffix.lower(), like.dialect
    with replacing(path) as stream:
        if ending == ".npy":
            np.save(stream, array, allow_pickle=False)
            return
        mark = "\t" if ending == ".tsv" else "," if (ending, mark) == (".csv", " ") else mark
        rows = array.reshape(len(array), -1).tolist()
        cells = [[f"{x:.17g}".replace(".", decimal) for x in row] for row in rows]
        if named and like.ids is not None:
            cells = [[one, *row] for one, row in zip(like.ids, cells, strict=True)]
        if named and like.names is not None:
            cells.insert(0, [*["id"][: like.ids is not None], *like.names])
        csv.writer(text := StringIO(), delimiter=mark, lineterminator="\n").writerows(cells)
        stream.write(text.getvalue().encode(encoding))


# -- tables whose rows belong together


def pair(source: Table, target: Table, notes: list[str]) -> tuple[Table, Table]:
    """Return both tables with their rows matched by ids and their columns by names.

    The notes say what was done; there is a warning of ids and names that do not match.
    """
    both = f"{source.path} and {target.path}"
    if (source.ids is None) != (target.ids is None):
        _warn(f"only one of {both} has ids: rows are paired by position")
    elif source.ids != target.ids:
        places = _rows_of_ids(source), _rows_of_ids(target)
        common = [one for one in places[0] if one in places[1]]
        if common:
            source = source.take([places[0][one] for one in common])
            target = target.take([places[1][one] for one in common])
            left = [len(rows) - len(common) for rows in places]
            rest = f", and {left[0]} and {left[1]} rows of {both} were left out" * any(left)
            notes.append(f"rows were matched by ids, {len(common)} in both files{rest}")
        else:
            _warn(f"{both} have no ids in common: rows are paired by position")
    own, other = source.names, target.names
    if own and other and own[: len(other)] != other:
        if sorted(own) == sorted(other) and len(set(own)) == len(own):
            order = [other.index(name) for name in own]
            target = replace(target, values=target.values[:, order], names=own)
            notes.append(f"columns of {target.path} were matched by names: {', '.join(own[:8])}")
        else:
            found = f"{', '.join(own[:8])} and {', '.join(other[:8])}"
            _warn(f"columns of {both} are paired by position, as their names differ: {found}")
    return source, target


def _rows_of_ids(table: Table) -> dict[str, int]:
    """Return the row of each id; two rows must not have the same."""
    rows: dict[str, int] = {}
    for row, one in enumerate(table.ids or ()):
        if rows.setdefault(one, row) != row:
            raise ValueError(f"{table.path} must have distinct ids, got {one!r} more than once")
    return rows


def drop_incomplete(tables: list[Table], notes: list[str]) -> list[Table]:
    """Leave out the rows that are not finite in one of the dense tables."""
    if len({len(table.dense) for table in tables}) > 1:
        return tables
    whole = np.logical_and.reduce([np.isfinite(table.dense).all(axis=1) for table in tables])
    if not whole.all():
        notes.append(f"{(~whole).sum()} of {len(whole)} rows were left out, as they have gaps")
    return [table.take(whole) for table in tables]


def warn_of_counter(table: Table) -> None:
    """Warn if the first column only counts the rows."""
    if is_sparse(table.values) or len(table.values) < LEAST_ROWS or table.values.shape[1] < 2:
        return
    first = table.values[:, 0]
    if first[0] in (0, 1) and np.array_equal(first, first[0] + np.arange(len(first))):
        found = f"the first column of {table.path} counts the rows and was taken as a coordinate"
        _warn(f"{found}; if it holds ids, name it id or remove it")


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=2)
