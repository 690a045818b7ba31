"""Queries and labels from text files, and answers as text, JSON and CSV, for the command line."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from jorth._files import to_json
from jorth.kge.answers import Answer, Explanation, predict
from jorth.kge.export import NamedModel
from jorth.kge.lines import columns_of
from jorth.tables import NumberTable
from jorth.terminal import visible

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


COLUMNS = ("head", "relation", "tail", "asked", "rank", "score", "probability")
HEADINGS = ("relation", "boost", "translation", "angles", "Rx", "RRx", "SRx", "S")
MEANING = (
    "boost: largest rapidity; translation: what no change of origin removes; angles: mean "
    "angle of the rotations; Rx, RRx, SRx: median distance from x over that of two entities "
    "(RRx = 0: symmetric; SRx = 0: S undoes R); S: the relation that undoes R best"
)


def answer_queries(
    named: NamedModel, queries: Sequence[Query], k: int, known: Tensor | None
) -> list[list[Answer]]:
    """The k best answers to every query, those for tails and those for heads at once."""
    found: dict[int, list[Answer]] = {}
    for tails in (True, False):
        own = [place for place, query in enumerate(queries) if (query[2] == "?") == tails]
        head, relation, tail = ([queries[place][column] for place in own] for column in range(3))
        ends = {"head": head} if tails else {"tail": tail}
        answers = predict(named, relation=relation, k=k, known=known, **ends) if own else []
        found |= dict(zip(own, answers, strict=True))
    return [found[place] for place in range(len(queries))]


def answers_as_text(queries: Sequence[Query], answers: Sequence[Sequence[Answer]]) -> str:
    """A small table per query, the query above it if there are several."""
    parts = []
    for query, found in zip(queries, answers, strict=True):
        lines = [f"{'score':>10}  {'probability':>11}  {'tail' if query[2] == '?' else 'head'}"]
        if len(queries) > 1:
            lines.insert(0, visible(" ".join(query)))
        lines += [
            f"{score:10.3f}  {probability:11.3g}  {visible(str(entity))}"
            for entity, score, probability in found
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def answers_as_csv(queries: Sequence[Query], answers: Sequence[Sequence[Answer]]) -> str:
    """Return one line per answer, with the answer in place of the question mark.

    Names come from files of others: control characters are escaped, and a name that a spreadsheet
    would take for a formula has an apostrophe before it. JSON has the names as they are.
    """
    text = StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (head, relation, tail), found in zip(queries, answers, strict=True):
        asked = "tail" if tail == "?" else "head"
        for rank, (entity, score, probability) in enumerate(found, start=1):
            ends = (head, relation, entity) if tail == "?" else (entity, relation, tail)
            writer.writerow([*map(_as_text, ends), asked, rank, score, probability])
    return text.getvalue().rstrip("\n")


def _as_text(name: object) -> str:
    """Return a name without control characters that no spreadsheet takes for a formula."""
    shown = visible(str(name))
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def answers_as_json(queries: Sequence[Query], answers: Sequence[Sequence[Answer]]) -> str:
    """A list with one entry per query."""
    return as_json(
        [
            dict(zip(COLUMNS[:3], query, strict=True))
            | {"answers": [answer._asdict() for answer in found]}
            for query, found in zip(queries, answers, strict=True)
        ]
    )


def explanations_as_json(explanations: Sequence[Explanation]) -> str:
    """A list with one entry per relation."""
    return as_json([dataclasses.asdict(one) for one in explanations])


def as_json(value: list[dict[str, Any]]) -> str:
    """Records as JSON, arrays as lists."""
    plain = [
        {key: part.tolist() if isinstance(part, np.ndarray) else part for key, part in one.items()}
        for one in value
    ]
    return to_json(plain, indent=1).decode()


def explanation_table(explanations: Sequence[Explanation]) -> NumberTable:
    """One line per relation."""
    table = NumberTable(HEADINGS, names=(0, len(HEADINGS) - 1), caption=MEANING)
    for one in explanations:
        largest = float(one.rapidities.max(initial=0.0))
        angles = np.concatenate([one.angles, one.negative_angles])
        mean = f"{angles.mean():.2f}" if len(angles) else "-"
        numbers = (one.from_identity, one.from_involution, one.from_inverse)
        table.add(
            str(one.relation),
            f"{largest:.3f}",
            f"{one.translation:.3f}",
            mean,
            *("-" if math.isnan(number) else f"{number:.2f}" for number in numbers),
            "" if one.inverse is None else str(one.inverse),
        )
    return table
