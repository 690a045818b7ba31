"""A section of the page, its results in brief, and the podium tables that all sections share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jorth.bench.core.html import Html, html, label, table, table_cell, table_row
from jorth.bench.core.words import listed

PLACES = ("first", "second", "third")
STANDING = (
    "{% for name, result in standings %}{% if not loop.first %}<br>{% endif %}"
    "<b>{{ name }}</b><br><small>{{ result }}</small>{% endfor %}"
)


@dataclass(frozen=True)
class Headline:
    """Who won one problem, and by how much; no winner where no run has a result."""

    kind: str  # of the problem
    problem: str
    winners: Sequence[str]
    result: str
    margin: str

    @property
    def cells(self) -> list[Html]:
        winner = table_cell(listed(self.winners), css="winner")
        return [winner, table_cell(self.result), table_cell(self.margin, css="text")]


def headline_of(
    kind: str,
    problem: str,
    scores: dict[str, float],
    show: Callable[[float], str],
    *,
    more: str = "",
) -> Headline:
    """The headline of scores by method, lower is better; ``show`` puts a score into words."""
    if not scores:
        return Headline(kind, problem, [], "no run has a result", "")
    best, *others = sorted(set(scores.values()))
    winners = [name for name, score in scores.items() if score == best]
    if others:
        second = [name for name, score in scores.items() if score == others[0]]
        margin = f"{listed(second)}: {show(others[0])}"
    else:
        margin = nobody_else(winners)
    return Headline(kind, problem, winners, show(best) + more, margin)


def nobody_else(winners: Sequence[str]) -> str:
    """The margin of winners where no other method has a worse result."""
    return "no other method has a result" if len(winners) == 1 else "all methods are equal"


@dataclass(frozen=True)
class Section:
    """A section of the page; the tables of its appendix are shown at the end of the page."""

    anchor: str
    title: str
    body: Html
    sentences: Sequence[str] = ()  # its results in words, for the beginning of the page
    headlines: Sequence[Headline] = ()
    appendix: Sequence[tuple[str, Html]] = ()  # titles and contents


def headlines_table(found: Iterable[Headline]) -> Html:
    """One line for each problem: the winner, its result, and the distance to the next."""
    body = [table_row(label(line.problem, line.kind), line.cells) for line in found]
    heads = ["problem", "winner", "its result", "by how much"]
    return table("Who came first.", heads, body, css="podium") if body else html("")


@dataclass(frozen=True)
class Podium:
    """A line of a podium table: the places of methods on one problem, or why there are none."""

    name: str
    more: str  # details, in small print
    places: dict[str, int]  # 1 to 3; equal methods share a place
    results: dict[str, str]  # by method, in words
    trouble: str = ""

    @property
    def cells(self) -> list[Html]:
        if not self.places:
            return [table_cell(self.trouble or "no run has a result", css="text failed", span=3)]
        cells = []
        for place in range(1, 4):
            names = [name for name, found in self.places.items() if found == place]
            standings = [(name, self.results[name]) for name in names]
            css = "winner" if place == 1 else ""
            cells.append(table_cell(html(STANDING, standings=standings), css=css))
        return cells


def podium_table(caption: str, head: str, found: Iterable[Podium]) -> Html:
    """The best three methods of each problem, the winner beside the problem."""
    body = [table_row(label(line.name, line.more), line.cells) for line in found]
    return table(caption, [head, *PLACES], body, css="podium")
