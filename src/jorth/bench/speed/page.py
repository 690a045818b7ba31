"""The page of all times in Markdown, which is docs/results/speed.md."""

from __future__ import annotations

from collections.abc import Iterator

from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import Entry, full_table, tables

INTRODUCTION = """\
# How many times faster than pymanopt and cdopt

Written by `jorth bench speed`: [how it is run](../howto/bench.md#the-problems), [what it says](performance.md#against-pymanopt-and-cdopt).
An entry is the time of the best outside peer over that of the method, to a relative gap of 10⁻² / 10⁻⁴ / 10⁻⁸: above 1 the method is
faster than pymanopt and cdopt. – stands where a method did not get there in its budget, > where no peer did. "Left out" are methods
that had not come within 10⁻⁴ at the size before. The last column but one, where there is one, is a peer from our start, which is not
among those compared with. "Solving" is the clock of `minimize`; "whole call" is from the data to the result.

![gap against time](../images/speed.png)
"""  # noqa: E501


def page(found: list[Entry]) -> str:
    """The summary with all that is short of it, and a table for each task."""
    return "\n".join([INTRODUCTION, *_summary(found), *_tables(found)])


def _summary(found: list[Entry]) -> Iterator[str]:
    yield "## Summary\n"
    for claim in claims(found):
        yield f"- {claim}"
        yield from (f"    - except {miss}" for miss in claim.misses)
    yield ""


def _tables(found: list[Entry]) -> Iterator[str]:
    for title, members in tables(found).items():
        heads, lines = full_table(members)
        yield f"## {title[0].upper()}{title[1:]}\n"
        yield f"| {' | '.join(heads)} |"
        yield "|" + "---|" * len(heads)
        yield from (f"| {' | '.join(line)} |" for line in lines)
        yield ""
