"""The page: contents, results in brief, sections, runs without a result, and an appendix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from jorth.bench.core.html import Html, html_from, table, table_cell, table_row
from jorth.bench.core.records import Row, error_of
from jorth.bench.core.runs import Kind
from jorth.bench.core.sections import Section, headlines_table
from jorth.bench.core.words import counted, listed
from jorth.storage.atomic import replacing

OUTCOMES = {
    "failed": "{} failed",
    "missing": "{} lacked their data or a library",
    "left out": "{} left out",
}
"""The outcomes of runs without a result, in words."""


def write_page(rows: list[Row], kinds: Sequence[Kind], order: Sequence[Kind], place: Path) -> Path:
    """Write the page and its figures into the folder ``place``.

    ``kinds`` has the kind of each row, ``order`` the kinds in the order of their sections.
    """
    place.mkdir(parents=True, exist_ok=True)
    sections: list[Section] = []
    for kind in order:
        members = [row for row, found in zip(rows, kinds, strict=True) if found is kind]
        sections += kind.sections(members, place)
    text = html_from(
        "core/page.html",
        counts=_counts(rows),
        sections=sections,
        sentences=[sentence for section in sections for sentence in section.sentences],
        headlines=headlines_table(line for section in sections for line in section.headlines),
        appendix=[part for section in sections for part in section.appendix],
        unfinished=_unfinished(rows, kinds),
        footer=_footer(rows),
    )
    page = place / "index.html"
    with replacing(page) as stream:
        stream.write(text.encode(errors="replace"))  # JSON may hold unpaired surrogates
    return page


def _counts(rows: list[Row]) -> str:
    """How many runs finished, and how many did not, as a sentence."""
    numbers = Counter(row["outcome"] for row in rows)
    done = numbers.pop("done", 0)
    others = [OUTCOMES.get(name, name).format(number) for name, number in numbers.items()]
    return listed([f"{counted(done, 'run')} finished", *others]) + "."


def _unfinished(rows: list[Row], kinds: Sequence[Kind]) -> Html | None:
    """A table of failed runs one by one, and of missing ones once per data set."""
    body = []
    missing = set()
    for row, kind in zip(rows, kinds, strict=True):
        cell = kind.cell_of(row)
        if row["outcome"] == "done" or (row["outcome"] == "missing" and cell.size in missing):
            continue
        head = cell.size
        if row["outcome"] == "missing":
            missing.add(cell.size)
        else:
            head += f", {cell.problem}, {cell.method}"
        cells = [table_cell(row["outcome"]), table_cell(error_of(row), css="text")]
        body.append(table_row(head, cells))
    caption = "Runs without a result. The next call looks for missing data again."
    return table(caption, ["run", "outcome", "why"], body) if body else None


def _footer(rows: list[Row]) -> dict[str, str]:
    versions = (", ".join(f"{name} {v}" for name, v in row["versions"].items()) for row in rows)
    dates = sorted(str(row["date"]) for row in rows)
    return {
        "Machine": _distinct(map(_machine, rows)),
        "Versions": _distinct(versions),
        "Commit": _distinct(str(row["commit"] or "unknown") for row in rows),
        "Runs": f"{dates[0]} to {dates[-1]}",
    }


def _machine(row: Row) -> str:
    hardware = row["hardware"]
    parts = [
        str(hardware["cpu"]),
        f"{hardware['usable_cores']} of {hardware['cores']} cores usable",
        f"{hardware['threads']} torch thread{'' if hardware['threads'] == 1 else 's'}",
        str(hardware["system"]),
    ]
    if hardware["gpu"]:
        parts.append(f"GPU {hardware['gpu']} (not used)")
    return ", ".join(parts)


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(texts))
