"""The tables of the eigenvalue and Procrustes problems."""

from __future__ import annotations

from jorth.bench.core.cells import GAPS
from jorth.bench.core.html import Html, badge, html, label, table, table_cell, table_row
from jorth.bench.core.records import Row, reason
from jorth.bench.matrices import paper
from jorth.bench.matrices.groups import Group, columns_of, has_diverged, is_improved, score

STATUS_WORDS = {
    "CONVERGED": "solved",
    "MAX_TIME": "time up",
    "MAX_EVALUATIONS": "gradients up",
    "MAX_ITERATIONS": "iterations up",
    "STALLED": "stalled",
    "NOT_ATTAINED": "not attained",
    "UNBOUNDED": "unbounded",
    "NON_FINITE": "not finite",
}
RUN = """\
{{ badge }}{% if gap %}gap {{ gap }}<br>{% endif %}{{ value }}({{ violation }}){{ marks }}\
<br><small>{{ ended }}, {{ seconds }} s</small>\
{% if doubt %}<br><span class="failed">the solver said {{ doubt }}</span>{% endif %}"""


def results_table(groups: list[Group], caption: str) -> Html:
    """Values with violations in brackets and the best three marked, as in the paper's Table 1."""
    names = columns_of(groups)
    several = several_seeds(groups)
    body = []
    for group, following in zip(groups, [*groups[1:], None], strict=True):
        body.append(table_row(label(group.name, details(group, several)), _cells(group, names)))
        last = following is None or following.size != group.size
        if group.cell.problem == "race" and group.size in paper.PRINTED and last:
            head = html("<small>paper, 90 s</small>")
            body.append(table_row(head, _paper_cells(group, names), "paper"))
    return table(caption, ["data (m-n-p)", *names], body)


def several_seeds(groups: list[Group]) -> bool:
    """Whether the groups differ in their seeds, which are then shown."""
    return len({group.cell.seed for group in groups}) > 1


def details(group: Group, with_seed: bool) -> str:
    """What is shown in small print below the name of a group."""
    theta = "" if group.theta is None else f"θ = {group.theta:g}, "
    seed = f"seed {group.cell.seed}, " if with_seed else ""
    return f"{theta}{seed}{group.budget}"


def _cells(group: Group, names: list[str]) -> list[Html]:
    rows = list(group.rows.values())
    if all(row["outcome"] == "missing" for row in rows):
        return [table_cell(reason(rows[0]), css="text failed", span=len(names))]
    places = group.places
    return [_cell(group.rows.get(name), places.get(name)) for name in names]


def _cell(row: Row | None, place: int | None) -> Html:
    if row is None:
        return table_cell("not run")
    if row["outcome"] != "done":
        return table_cell(reason(row), css="failed")
    content = html(
        RUN,
        badge=badge(place),
        gap="" if row["gap"] is None else f"{row['gap']:.1e}",
        value="not finite" if row["value"] is None else f"{row['value']:.2e}",
        violation=_number(row["violation"]),
        marks=(" (+)" if is_improved(row) else "") + (" ∞" if has_diverged(row) else ""),
        ended=status_words(row),
        seconds=f"{row['time']:.2g}",
        doubt="" if row["claim_holds"] else _number(row["claimed"]),
    )
    return table_cell(content)


def status_words(row: Row) -> str:
    """How a run ended; a status without an entry is shown in lower case."""
    status = str(row["status"])
    return STATUS_WORDS.get(status, status.lower())


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.1e}"


def _paper_cells(group: Group, names: list[str]) -> list[Html]:
    printed = paper.PRINTED[group.size]
    cells = []
    for name in names:
        if name not in printed:
            cells.append(table_cell(""))
            continue
        place = 1 + sum(other.value < printed[name].value for other in printed.values())
        plus = " (+)" if "+" in name else ""
        text = f"{printed[name].value:.2e}({printed[name].violation:.1e}){plus}"
        cells.append(table_cell(html("{{ badge }}{{ text }}", badge=badge(place), text=text)))
    return cells


def speed_table(groups: list[Group]) -> Html:
    """Times to each gap as ratios to the fastest."""
    names = columns_of(groups)
    body = []
    for group in groups:
        for gap in GAPS:
            best, ratios = group.speeds(gap)
            if best is None:
                continue
            known = [ratios.get(name) for name in names]
            cells = [table_cell("–" if ratio is None else f"{ratio:.2f}") for ratio in known]
            head = label(group.name, f"gap {gap:.0e}, fastest {best:.2g} s")
            body.append(table_row(head, cells))
    caption = "Time to a relative gap, over the fastest time; – where it was not reached."
    return table(caption, ["problem", *names], body)


def comparisons(groups: list[Group]) -> list[tuple[Group, paper.OrderComparison]]:
    """The races of the paper's sizes with the paper's order; impossible rows are left out."""
    found = []
    for group in groups:
        scores = {
            name: score(row)[0]
            for name, row in group.done.items()
            if name in paper.PAPER_METHODS and row["value"] is not None
        }
        if group.size in paper.PRINTED and len(scores) > 1 and not paper.impossible(group.size):
            found.append((group, paper.compare_orders(scores, group.size)))
    return found


def orders_table(found: list[tuple[Group, paper.OrderComparison]]) -> Html:
    """Our order and the paper's for each row."""
    body = []
    for group, comparison in found:
        diverged = {name for name, row in group.done.items() if has_diverged(row)}
        ours = " > ".join(name + (" ∞" if name in diverged else "") for name in comparison.ours)
        papers = " > ".join(comparison.papers)
        decided = comparison.alike + comparison.reversed
        cells = [table_cell(order, css="text") for order in (ours, papers)]
        cells.append(table_cell(f"{comparison.alike} of {decided}"))
        body.append(table_row(label(group.name, details(group, False)), cells))
    heads = ["data (m-n-p)", "order here, best first", "order in the paper", "pairs ranked alike"]
    return table("The order of the methods, here and in the paper.", heads, body)


def agreement(alike: int, decided: int) -> str:
    """How many pairs of methods have the same order here and in the paper, as a sentence."""
    if decided == 0:
        return "No pair of methods differs on both sides."
    if decided == 1:
        return f"One pair of methods differs on both sides; it is ranked {_alike(alike)}."
    return f"Of {decided} pairs of methods that differ on both sides, {alike} are ranked alike."


def _alike(number: int) -> str:
    return "alike" if number else "the other way round"


def problems_table(groups: list[Group]) -> Html:
    """What the problems are: subset, norms, start, optimum."""
    notes = ("problem", "subset", "‖D‖²", "‖D X₀‖² / ‖D‖²", "ridge")
    heads = (*notes, "f(X₀)", "optimum", "optimum by", "rows of zeros")
    body = []
    seen = set()
    for group in groups:
        row = next(iter(group.done.values()), None)
        if row is None or group.cell.shared_problem in seen:
            continue
        seen.add(group.cell.shared_problem)
        notes = row["notes"]
        cells = [
            notes.get("subset", "planted"),
            _plain(notes.get("data_norm_squared")),
            _plain(notes.get("start_ratio")),
            _plain(notes.get("ridge")),
            _plain(row["start_value"]),
            _plain(row["optimum"], 7),
            notes.get("optimum_by", "none: unbounded"),
            notes.get("zero_rows", ""),
        ]
        body.append(table_row(f"{group.name}, {group.cell.problem}", map(table_cell, cells)))
    return table("The problems and where they start.", heads, body)


def _plain(value: float | None, digits: int = 4) -> str:
    return "" if value is None else f"{value:.{digits}g}"
