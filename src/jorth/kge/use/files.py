"""Queries and labels from text files, one per line, separated by tabs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jorth.kge.lines import columns_of

QUERY = "head, relation and tail, separated by tabs, one of head and tail a ?"
LABEL = "an entity and its label, separated by a tab"
Query = tuple[str, str, str]
"""Head, relation and tail, one of head and tail a "?"."""


def check_query(query: Query, where: str = "") -> None:
    """Raise a ValueError unless one of head and tail is asked for."""
    head, _, tail = query
    if (head == "?") == (tail == "?"):
        given = f"{head!r} and {tail!r}"
        message = "one of head and tail must be '?', the thing asked for"
        raise ValueError(f"{where}{message}; got {given}")


def read_queries(path: Path) -> list[Query]:
    """Head, relation and tail of every line below the headings, if there are some."""
    found: list[Query] = []
    for number, (where, (head, relation, tail)) in enumerate(_lines(path, 3, QUERY)):
        asks = "?" in (head, tail)
        if number == 0 and not asks and columns_of((head, relation, tail)) == (0, 1, 2):
            continue
        check_query((head, relation, tail), f"{where}: ")
        found.append((head, relation, tail))
    return found


def read_labels(path: Path) -> dict[str, str | float]:
    """The labels of entities; numbers if all of them are."""
    texts = {entity: label for _, (entity, label) in _lines(path, 2, LABEL)}
    try:
        return {entity: float(label) for entity, label in texts.items()}
    except ValueError:
        return dict(texts)


def _lines(path: Path, fields: int, expected: str) -> Iterator[tuple[str, list[str]]]:
    """Where a line is, and its fields; blank lines are skipped.

    As in `load_triples` only line feeds end lines: names may have other breaks, such as U+2028.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 ({error.reason}); expected {expected}") from None
    for number, line in enumerate((line.rstrip("\r") for line in lines), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        found = [field.strip() for field in line.split("\t")]
        if len(found) != fields or not all(found):
            raise ValueError(f"{where}: expected {expected}; got {line[:100]!r}")
        yield where, found
