"""One text file of triples: tabs or commas, compressed or not, with or without headings."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

GZIP = b"\x1f\x8b"
MAX_UNPACKED = 2**28
"""The most bytes of text that a packed file may hold: a few kilobytes can pack gigabytes."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
ROLES = ("head", "relation", "tail")
EXPECTED = "expected three names separated by tabs: head, relation, tail"
HEADINGS = (
    {"head", "subject", "subj", "source", "src", "from", "start", "entity1", "e1", "node1"},
    {"relation", "rel", "relationship", "predicate", "pred", "property", "edge", "edgetype", "type",
     "relationtype", "link", "linktype", "interaction", "label"},
    {"tail", "object", "obj", "target", "tgt", "dst", "destination", "to", "end", "entity2", "e2",
     "node2"},
)  # fmt: skip
"""What head, relation and tail are called in the first lines of files."""
LETTERS = (("h", "r", "t"), ("s", "p", "o"))
"""Letters that are headings only together."""
SUFFIX = re.compile(r"(?<=.)(id|name|label|entity|node|uri|iri)$")

Line = tuple[int, str, str, str]
"""The number of a line in its file, then the names of head, relation and tail."""
Fields = tuple[int, list[str]]
"""The number of a line in its file, and what its separators leave."""
Columns = tuple[int, int, int]
"""Which columns are head, relation and tail."""


@dataclass(frozen=True)
class Lines:
    """The triples of a file, and its line of headings if it has one."""

    triples: list[Line]
    headings: tuple[str, ...] = ()
    """What head, relation and tail are called there."""


def read_lines(path: Path, header: bool | None = None) -> Lines:
    """The triples of a file; blank lines and lines that begin with "# " are left out.

    Args:
        path: The file. One that ends in .csv has commas and quotes, others have tabs.
        header: Whether the first line has headings; None finds out.

    Raises:
        ValueError: The file is damaged or a line has no three names. The message names the line.
    """
    lines = list(_split(path))
    if not lines:
        raise ValueError(f"{path} is empty: {EXPECTED}")
    _, first = lines[0]
    columns = None if header is False else columns_of(first)
    if columns is None and header:
        columns = (0, 1, 2)
    if columns is None:
        return Lines(_named(path, lines, (0, 1, 2), 3))
    triples = _named(path, lines[1:], columns, len(first))
    if header is None and _is_triple(first, columns, triples):
        return Lines(_named(path, lines, (0, 1, 2), 3))
    if not triples:
        raise ValueError(f"{path} has headings and no triples below them")
    return Lines(triples, tuple(first[column] for column in columns))


def columns_of(headings: Sequence[str]) -> Columns | None:
    """Which columns are head, relation and tail by their headings; None if these are none."""
    plain = [_plain(heading) for heading in headings]
    if tuple(plain) in LETTERS:
        return 0, 1, 2
    places = [[at for at, name in enumerate(plain) if name in names] for names in HEADINGS]
    if len(headings) == 3 and [len(found) for found in places] == [1, 0, 1]:
        places[1] = [3 - places[0][0] - places[2][0]]  # whatever the third is called
    if any(len(found) != 1 for found in places):
        return None
    head, relation, tail = (found[0] for found in places)
    return head, relation, tail


def _plain(heading: str) -> str:
    """In small letters without signs, and without endings such as in ``head_id``."""
    return SUFFIX.sub("", re.sub(r"[^a-z0-9]", "", heading.lower()))


def _is_triple(first: list[str], columns: Columns, triples: list[Line]) -> bool:
    """Whether names of the first line are used below it, so that it is no line of headings."""
    head, relation, tail = (first[column] for column in columns)
    used = any(r == relation or {h, t} & {head, tail} for _, h, r, t in triples)
    return used and len(first) == 3


def _split(path: Path) -> Iterator[Fields]:
    """The fields of all lines that are neither blank nor comments."""
    separator, quotes, count = "", False, 0
    for number, line in _decoded(path):
        if not line.strip() or line.startswith("# "):
            continue
        if not separator:
            is_csv = path.name.lower().removesuffix(".gz").endswith(".csv")
            separator = max(",;\t", key=line.count) if is_csv else "\t"
            quotes = is_csv or all(re.fullmatch(r'\s*".*"\s*', part) for part in line.split("\t"))
        try:
            parts = next(csv.reader([line], delimiter=separator, strict=True)) if quotes else None
        except csv.Error as error:
            raise ValueError(f"{path}, line {number}: {error}; {EXPECTED}") from None
        fields = [part.strip() for part in parts or line.split(separator)]
        if line.startswith("#") and len(fields) not in (3, count):
            continue
        count = count or len(fields)
        yield number, fields


def _decoded(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers.

    Only line feeds end lines: names may have other breaks, such as U+2028.
    """
    content = path.read_bytes()
    if content.startswith(GZIP):
        try:
            with gzip.open(io.BytesIO(content)) as stream:
                content = stream.read(MAX_UNPACKED + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is no complete gzip file: {error}") from None
        if len(content) > MAX_UNPACKED:
            raise ValueError(f"{path} holds more than {MAX_UNPACKED} bytes; unpack it first")
    if content.startswith(UTF_16):
        raise ValueError(f"{path} is UTF-16 text; save it as UTF-8")
    for number, raw in enumerate(content.split(b"\n"), start=1):
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            where = f"{path}, line {number}"
            raise ValueError(f"{where}: not UTF-8 ({error.reason}); {EXPECTED}") from None


def _named(path: Path, lines: Sequence[Fields], columns: Columns, count: int) -> list[Line]:
    """Head, relation and tail of all lines, which must have ``count`` fields."""
    head, relation, tail = columns
    found: list[Line] = []
    for number, fields in lines:
        if len(fields) != count or not all(fields[column] for column in columns):
            expected = EXPECTED if count == 3 else f"expected {count} fields, as line 1 has"
            got = f"{expected}; got {' | '.join(fields)[:100]!r}{_hint(fields)}"
            raise ValueError(f"{path}, line {number}: {got}")
        found.append((number, fields[head], fields[relation], fields[tail]))
    return found


def _hint(fields: list[str]) -> str:
    """What may be wrong with a line."""
    if len(fields) != 1:
        return f", {len(fields)} fields" if all(fields) else ", where a name is empty"
    if fields[0].count(",") == 2:
        return ", with commas: a file with commas must end in .csv"
    return ", with spaces instead of tabs" if len(fields[0].split()) > 2 else ", without a tab"
