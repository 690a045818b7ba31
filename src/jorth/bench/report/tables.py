"""The tables of the page as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jorth.bench.methods import NAMES, PAPER
from jorth.bench.paper import TABLE, Comparison, compare_orders, impossible
from jorth.bench.records import Row
from jorth.bench.report.groups import Group, is_away, is_improved, ranks, score
from jorth.bench.report.speed import ratios
from jorth.bench.report.templates import Html, html
from jorth.bench.scoring import GAPS

STATUS = {
    "CONVERGED": "solved",
    "MAX_TIME": "time up",
    "MAX_EVALUATIONS": "gradients up",
    "MAX_ITERATIONS": "iterations up",
    "STALLED": "stalled",
    "UNBOUNDED": "unbounded",
    "NON_FINITE": "not finite",
}


TABLE_OF_ROWS = """\
<div class="scroll" tabindex="0" role="region" aria-label="{{ heads[0] }} table"><table>\
<caption>{{ caption }}</caption>
<thead><tr>{% for head in heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{{ rows | join("\n") }}
</tbody></table></div>"""
LINE = """\
<tr{% if kind %} class="{{ kind }}"{% endif %}><th scope="row">{{ head }}</th>{{ cells | join }}</tr>"""
ENTRY = """\
<td{% if kind %} class="{{ kind }}"{% endif %}{% if span %} colspan="{{ span }}"{% endif %}>{{ content }}</td>"""
LABEL = "{{ name }}<br><small>{{ more }}</small>"
BADGE = """\
{% if place in words %}\
<span class="rank rank{{ place }}" title="{{ words[place] }}">{{ place }}</span>\
{% endif %}"""
RUN = """\
{{ badge }}{% if gap %}gap {{ gap }}<br>{% endif %}{{ value }}({{ violation }}){{ marks }}\
<br><small>{{ ended }}, {{ seconds }} s</small>\
{% if doubt %}<br><span class="failed">the solver said {{ doubt }}</span>{% endif %}"""
WITHOUT_RESULT = """\
{% for why in reasons %}{% if not loop.first %}<br>{% endif %}\
<span class="failed">{{ why }}</span>{% endfor %}"""


def table(caption: str, heads: Sequence[str], body: Iterable[Html]) -> Html:
    """A table with a caption and column heads; ``body`` are its rows."""
    return html(TABLE_OF_ROWS, caption=caption, heads=heads, rows=body)


def line(head: str, cells: Iterable[Html], kind: str = "") -> Html:
    """A row of a table; its cells are from `entry`."""
    return html(LINE, head=head, cells=cells, kind=kind)


def entry(content: Any, *, kind: str = "", span: int = 0) -> Html:
    """A cell of a table, over ``span`` columns where that is not 0."""
    return html(ENTRY, content=content, kind=kind, span=span)


def label(name: str, more: str) -> Html:
    """The head of a row: a name, and under it in small letters what is more to say."""
    return html(LABEL, name=name, more=more)


def without_result(rows: list[Row]) -> Html:
    """Why some runs have no result, a line each."""
    return html(WITHOUT_RESULT, reasons=map(reason, rows))


def reason(row: Row) -> str:
    """Why a run has no result."""
    return f"{row['outcome']}: {error_of(row)}"


def error_of(row: Row) -> str:
    """The error of a run, where one was recorded."""
    return str(row.get("error", "no error was recorded"))


def results(groups: list[Group], caption: str) -> Html:
    """Value, violation in brackets, the best three marked: the form of the paper's Table 1."""
    names = columns_of(groups)
    several = len({group.cell.seed for group in groups}) > 1
    body = []
    for group, following in zip(groups, [*groups[1:], None], strict=True):
        body.append(line(_label(group, several), _cells(group, names)))
        last = following is None or following.size != group.size
        if group.cell.problem == "race" and group.size in TABLE and last:
            body.append(
                line(html("<small>paper, 90 s</small>"), _paper_cells(group, names), "paper")
            )
    return table(caption, ["data (m-n-p)", *names], body)


def columns_of(groups: list[Group]) -> list[str]:
    """The methods of some groups, in the order of the tables."""
    return [name for name in NAMES if any(name in group.rows for group in groups)]


def _label(group: Group, several_seeds: bool) -> Html:
    theta = "" if group.theta is None else f"θ = {group.theta:g}, "
    seed = f"seed {group.cell.seed}, " if several_seeds else ""
    return label(group.name, f"{theta}{seed}{group.budget}")


def _cells(group: Group, names: list[str]) -> list[Html]:
    if all(row["outcome"] == "missing" for row in group.rows.values()):
        return [entry(reason(next(iter(group.rows.values()))), kind="text failed", span=len(names))]
    places = ranks(group)
    return [_cell(group.rows.get(name), places.get(name)) for name in names]


def _cell(row: Row | None, place: int | None) -> Html:
    if row is None:
        return entry("not run")
    if row["outcome"] != "done":
        return entry(reason(row), kind="failed")
    content = html(
        RUN,
        badge=badge(place),
        gap="" if row["gap"] is None else f"{row['gap']:.1e}",
        value="not finite" if row["value"] is None else f"{row['value']:.2e}",
        violation=_number(row["violation"]),
        marks=(" (+)" if is_improved(row) else "") + (" ∞" if is_away(row) else ""),
        ended=status_words(row, STATUS),
        seconds=f"{row['time']:.2g}",
        doubt="" if row["claim_holds"] else _number(row["claimed"]),
    )
    return entry(content)


def status_words(row: Row, said: dict[str, str]) -> str:
    """How a run ended, in words; a status that has none is shown as it is, in small letters."""
    status = str(row["status"])
    return said.get(status, status.lower())


def badge(place: int | None) -> Html:
    """The mark of the first three."""
    return html(BADGE, place=place, words={1: "first", 2: "second", 3: "third"})


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.1e}"


def _paper_cells(group: Group, names: list[str]) -> list[Html]:
    printed = TABLE[group.size]
    cells = []
    for name in names:
        if name not in printed:
            cells.append(entry(""))
            continue
        place = 1 + sum(other.value < printed[name].value for other in printed.values())
        plus = " (+)" if "+" in name else ""
        text = f"{printed[name].value:.2e}({printed[name].violation:.1e}){plus}"
        cells.append(entry(html("{{ badge }}{{ text }}", badge=badge(place), text=text)))
    return cells


def comparisons(groups: list[Group]) -> list[tuple[Group, Comparison]]:
    """The races of the paper's sizes with two methods at least, beside the paper's order; impossible rows left out."""
    found = []
    for group in groups:
        scores = {
            name: score(row)[0]
            for name, row in group.done.items()
            if name in PAPER and row["value"] is not None
        }
        if group.size in TABLE and len(scores) > 1 and not impossible(group.size):
            found.append((group, compare_orders(scores, group.size)))
    return found


def orders(found: list[tuple[Group, Comparison]]) -> Html:
    """Our order and the paper's, row by row."""
    body = []
    for group, comparison in found:
        away = {name for name, row in group.done.items() if is_away(row)}
        ours = " > ".join(name + (" ∞" if name in away else "") for name in comparison.ours)
        papers = " > ".join(comparison.papers)
        decided = comparison.alike + comparison.reversed
        cells = [entry(order, kind="text") for order in (ours, papers)]
        cells.append(entry(f"{comparison.alike} of {decided}"))
        body.append(line(_label(group, False), cells))
    heads = ["data (m-n-p)", "order here, best first", "order in the paper", "pairs ranked alike"]
    return table("The order of the methods, here and in the paper.", heads, body)


def problems(groups: list[Group]) -> Html:
    """What the problems are: subset, norms, start, optimum."""
    body, seen = [], set()
    for group in groups:
        row = next(iter(group.done.values()), None)
        if row is None or group.cell.problem_key in seen:
            continue
        seen.add(group.cell.problem_key)
        notes = row["notes"]
        cells = [
            notes.get("subset", "planted"), _plain(notes.get("data_norm_squared")), _plain(notes.get("start_ratio"), 4),
            _plain(notes.get("ridge")), _plain(row["start_value"]), _plain(row["optimum"], 7),
            notes.get("optimum_by", "none: unbounded"), notes.get("zero_rows", ""),
        ]  # fmt: skip
        body.append(line(f"{group.name}, {group.cell.problem}", map(entry, cells)))
    heads = [
        "problem",
        "subset",
        "‖D‖²",
        "‖D X₀‖² / ‖D‖²",
        "ridge",
        "f(X₀)",
        "optimum",
        "optimum by",
        "rows of zeros",
    ]
    return table("The problems and where they start.", heads, body)


def _plain(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def speed(groups: list[Group]) -> Html:
    """Times to gaps as ratios to the fastest."""
    names, body = columns_of(groups), []
    for group in groups:
        for gap in GAPS:
            best, found = ratios(group, gap)
            if best is None:
                continue
            cells = [entry("–" if (r := found.get(name)) is None else f"{r:.2f}") for name in names]
            body.append(line(label(group.name, f"gap {gap:.0e}, fastest {best:.2g} s"), cells))
    caption = "Time to a relative gap, over the fastest time; – where it was not reached."
    return table(caption, ["problem", *names], body)
