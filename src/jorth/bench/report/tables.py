"""The tables of the page as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from jorth.bench.methods import NAMES, PAPER
from jorth.bench.paper import TABLE, Comparison, compare_orders, impossible
from jorth.bench.records import Row
from jorth.bench.report.groups import Group, is_away, is_improved, ranks, score
from jorth.bench.report.speed import ratios
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


def table(caption: str, heads: Sequence[str], body: Iterable[str]) -> str:
    """A table with a caption and column heads; ``body`` are its rows."""
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    rows = "\n".join(body)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(heads[0])} table"><table>'
        f"<caption>{caption}</caption>\n<thead><tr>{columns}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def line(head: str, cells: Iterable[str], kind: str = "") -> str:
    """A row of a table from cells that are HTML."""
    opening = f'<tr class="{kind}">' if kind else "<tr>"
    return f'{opening}<th scope="row">{head}</th>{"".join(cells)}</tr>'


def results(groups: list[Group], caption: str) -> str:
    """Value, violation in brackets, the best three marked: the form of the paper's Table 1."""
    names = columns_of(groups)
    several = len({group.cell.seed for group in groups}) > 1
    body = []
    for group, following in zip(groups, [*groups[1:], None], strict=True):
        body.append(line(_label(group, several), _cells(group, names)))
        last = following is None or following.size != group.size
        if group.cell.problem == "race" and group.size in TABLE and last:
            body.append(line("<small>paper, 90 s</small>", _paper_cells(group, names), "paper"))
    return table(caption, ["data (m-n-p)", *names], body)


def columns_of(groups: list[Group]) -> list[str]:
    """The methods of some groups, in the order of the tables."""
    return [name for name in NAMES if any(name in group.rows for group in groups)]


def _label(group: Group, several_seeds: bool) -> str:
    theta = "" if group.theta is None else f"θ = {group.theta:g}, "
    seed = f"seed {group.cell.seed}, " if several_seeds else ""
    return f"{escape(group.name)}<br><small>{theta}{seed}{escape(group.budget)}</small>"


def _cells(group: Group, names: list[str]) -> list[str]:
    if all(row["outcome"] == "missing" for row in group.rows.values()):
        reason = escape(next(iter(group.rows.values()))["error"])
        return [f'<td class="text failed" colspan="{len(names)}">missing: {reason}</td>']
    places = ranks(group)
    return [_cell(group.rows.get(name), places.get(name)) for name in names]


def _cell(row: Row | None, place: int | None) -> str:
    if row is None:
        return "<td>not run</td>"
    if row["outcome"] != "done":
        return f'<td class="failed">{row["outcome"]}: {escape(row["error"])}</td>'
    value = "not finite" if row["value"] is None else f"{row['value']:.2e}"
    marks = (" (+)" if is_improved(row) else "") + (" ∞" if is_away(row) else "")
    gap = "" if row["gap"] is None else f"gap {row['gap']:.1e}<br>"
    doubt = "" if row["claim_holds"] else f'<br><span class="failed">the solver said {_number(row["claimed"])}</span>'
    ended = STATUS.get(row["status"], row["status"].lower())
    head = f"{badge(place)}{gap}{value}({_number(row['violation'])}){marks}"
    return f"<td>{head}<br><small>{ended}, {row['time']:.2g} s</small>{doubt}</td>"


def badge(place: int | None) -> str:
    """The mark of the first three."""
    if place is None:
        return ""
    word = {1: "first", 2: "second", 3: "third"}[place]
    return f'<span class="rank rank{place}" title="{word}">{place}</span>'


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.1e}"


def _paper_cells(group: Group, names: list[str]) -> list[str]:
    entries = TABLE[group.size]
    cells = []
    for name in names:
        if name not in entries:
            cells.append("<td></td>")
            continue
        entry = entries[name]
        place = 1 + sum(other.value < entry.value for other in entries.values())
        plus = " (+)" if "+" in name else ""
        cells.append(f"<td>{badge(place if place <= 3 else None)}{entry.value:.2e}({entry.violation:.1e}){plus}</td>")
    return cells


def comparisons(groups: list[Group]) -> list[tuple[Group, Comparison]]:
    """The races of the paper's sizes with two methods at least, beside the paper's order; impossible rows left out."""
    found = []
    for group in groups:
        scores = {name: score(row)[0] for name, row in group.done.items() if name in PAPER and row["value"] is not None}
        if group.size in TABLE and len(scores) > 1 and not impossible(group.size):
            found.append((group, compare_orders(scores, group.size)))
    return found


def orders(found: list[tuple[Group, Comparison]]) -> str:
    """Our order and the paper's, row by row."""
    body = []
    for group, comparison in found:
        away = {name for name, row in group.done.items() if is_away(row)}
        ours = " &gt; ".join(escape(name) + (" ∞" if name in away else "") for name in comparison.ours)
        papers = " &gt; ".join(map(escape, comparison.papers))
        decided = comparison.alike + comparison.reversed
        cells = [f'<td class="text">{order}</td>' for order in (ours, papers)]
        cells.append(f"<td>{comparison.alike} of {decided}</td>")
        body.append(line(_label(group, False), cells))
    heads = ["data (m-n-p)", "order here, best first", "order in the paper", "pairs ranked alike"]
    return table("The order of the methods, here and in the paper.", heads, body)


def problems(groups: list[Group]) -> str:
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
        body.append(line(f"{escape(group.name)}, {group.cell.problem}", (f"<td>{escape(str(c))}</td>" for c in cells)))
    heads = ["problem", "subset", "‖D‖²", "‖D X₀‖² / ‖D‖²", "ridge", "f(X₀)", "optimum", "optimum by", "rows of zeros"]
    return table("The problems and where they start.", heads, body)


def _plain(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}g}"


def speed(groups: list[Group]) -> str:
    """Times to gaps as ratios to the fastest."""
    names, body = columns_of(groups), []
    for group in groups:
        for gap in GAPS:
            best, found = ratios(group, gap)
            if best is None:
                continue
            cells = (f"<td>{'–' if (r := found.get(name)) is None else f'{r:.2f}'}</td>" for name in names)
            body.append(line(f"{escape(group.name)}<br><small>gap {gap:.0e}, fastest {best:.2g} s</small>", cells))
    caption = "Time to a relative gap, over the fastest time; – where it was not reached."
    return table(caption, ["problem", *names], body)
