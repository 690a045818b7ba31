"""The page of all times in Markdown, which is docs/results/speed.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jorth.bench.speed.summary import claims
from jorth.bench.speed.table import DEEP_GAPS, NONE, Entry, full_table, group_table, tables

INTRODUCTION = """\
# How many times faster than pymanopt and cdopt

This page compares the time that jorth takes with that of other libraries, problem by problem.
`jorth bench speed` writes it. [How the runs are made](../background/benchmarks.md#speed) describes
problems, methods and clocks; [performance](performance.md#against-pymanopt-and-cdopt) explains
the results. Iterations and times of Newton's method, L-BFGS and pymanopt's trust regions to the
last digit are on [a page of their own](second_order.md).

![gap against time](../images/speed.png)

## How to read the tables

An entry is the time of the best peer divided by the time of the best method of a group, to
relative gaps of 10⁻⁴ / 10⁻⁸. Above 1 the group is faster than pymanopt and cdopt.

- – means that no method of the group reached the gap in its budget.
- \\> means that no peer did. The entry is then a lower bound.
- An empty entry means that no method of the group was run.
- "Cond." is the condition number of the source. "Best peer, s" is its time to 10⁻⁸ in seconds.
- "Solving" is the clock of `minimize`. "Whole call" is the time from the data to the result.

The [appendix](#appendix-every-method) has every method, and the cases in which a statement of the
summary does not hold.
"""
APPENDIX = """\
## Appendix: every method

These tables have the same ratios for each method, to gaps of 10⁻² / 10⁻⁴ / 10⁻⁸.

- "Left out" marks a method that did not come within 10⁻⁴ at the size before.
- "Missing" marks a library that was not installed.
- The column of a peer with "data start", where there is one, gives that peer our start. It does
  not count as a peer in the other columns.
"""
EXCEPTIONS = """\
## Appendix: where a statement does not hold

A line has the task, n, p, the condition of the source, the number of threads and the clock. Then
follows the ratio with our best method in brackets, or what `auto` chose and how it compares with
the best method.
"""


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


def _summary(found: list[Entry]) -> Iterator[str]:
    """A table: how often each statement holds, by the gap."""
    counts: dict[str, dict[float, str]] = {}
    for claim in claims(found):
        counts.setdefault(claim.text, {})[claim.gap] = f"{claim.holds} of {claim.total}"
    yield "## Summary\n"
    yield "A case is a problem, a number of threads and a clock. In how many cases is this true?\n"
    yield "| statement | to 10⁻⁴ | to 10⁻⁸ |"
    yield "|---|---|---|"
    for text, by_gap in counts.items():
        yield f"| {text} | {' | '.join(by_gap.get(gap, NONE) for gap in DEEP_GAPS)} |"
    yield ""


def _table(title: str, heads: Sequence[str], lines: list[list[str]]) -> Iterator[str]:
    yield f"{title}\n"
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""


def _misses(found: list[Entry]) -> Iterator[str]:
    """The cases in which a statement of the summary does not hold."""
    short = [claim for claim in claims(found) if claim.misses]
    if short:
        yield EXCEPTIONS
    for claim in short:
        yield f"- {claim}. The exceptions:"
        yield from (f"    - {miss}" for miss in claim.misses)
    if short:
        yield ""
