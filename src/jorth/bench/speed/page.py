"""The page of all times in Markdown, which is docs/results/speed.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import Entry, full_table, group_table, tables

INTRODUCTION = """\
# How many times faster than pymanopt and cdopt

Written by `jorth bench speed`: [how it is run](../background/benchmarks.md#speed), [what it says](performance.md#against-pymanopt-and-cdopt).
An entry is the time of the best outside peer over that of the best method of a group, to a relative gap of 10⁻⁴ / 10⁻⁸: above 1 the group is
faster than pymanopt and cdopt. – stands where no method got there in its budget, > where no peer did. "Solving" is the clock of `minimize`;
"whole call" is from the data to the result. The [appendix](#appendix-every-method) has every method and the problems that fall short.

![gap against time](../images/speed.png)
"""  # noqa: E501
APPENDIX = """\
## Appendix: every method

As above, for each method and to gaps of 10⁻² / 10⁻⁴ / 10⁻⁸. "Left out" are methods that had not come within 10⁻⁴ at the size before.
The last column but one, where there is one, is a peer from our start, which is not among those compared with.
"""  # noqa: E501


def page(found: list[Entry]) -> str:
    """The summary, a short table for each task, and an appendix with every method."""
    parts = tables(found)
    full = {title: members for title, members in parts.items() if members[0].cell.task != "batch"}
    lines = [INTRODUCTION, *_summary(found)]
    for title, members in parts.items():
        lines += _table(f"## {title[0].upper()}{title[1:]}", *group_table(members))
    if full:
        lines.append(APPENDIX)
    for title, members in full.items():
        lines += _table(f"### Every method: {title}", *full_table(members))
    return "\n".join([*lines, *_misses(found)])


def _summary(found: list[Entry]) -> list[str]:
    return ["## Summary\n", *(f"- {claim}" for claim in claims(found)), ""]


def _table(title: str, heads: Sequence[str], lines: list[list[str]]) -> Iterator[str]:
    yield f"{title}\n"
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""


def _misses(found: list[Entry]) -> Iterator[str]:
    """The problems that fall short of each statement of the summary."""
    short = [claim for claim in claims(found) if claim.misses]
    if short:
        yield "## Appendix: what falls short\n"
    for claim in short:
        yield f"- {claim}, except"
        yield from (f"    - {miss}" for miss in claim.misses)
    if short:
        yield ""
