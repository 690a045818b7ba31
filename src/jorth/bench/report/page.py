"""The page: words, tables and figures put together."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from jorth.bench.cells import Cell
from jorth.bench.records import Row, is_graph, is_speed, naming, read_rows
from jorth.bench.report import (
    bands,
    colophon,
    figures,
    graph_section,
    probe_tables,
    speed_section,
    tables,
    words,
)
from jorth.bench.report.drawing import place_figure
from jorth.bench.report.families import Family, families
from jorth.bench.report.graph_runs import graph_runs
from jorth.bench.report.groups import Group, group_rows
from jorth.bench.report.style import CSS
from jorth.bench.report.templates import Html, html, together
from jorth.storage.atomic import replacing

NAME = "index.html"
DOCUMENT = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">\
<meta name="viewport" content="width=device-width, initial-scale=1">\
<link rel="icon" href="data:,">\
<title>jorth benchmark</title><style>{{ css }}</style></head>
<body><main><h1>Benchmark of methods over J-orthogonal matrices</h1>
{{ body }}</main>
<footer>{{ footer }}</footer></body></html>
"""
SUMMARY = (
    "<p>{{ counts.done }} runs done, {{ counts.failed }} failed, {{ counts.missing }} missing.</p>"
)
FIGURES = "{% if parts %}<h3>{{ heading }}</h3>{{ parts | join }}{% endif %}"


def write_report(run: str | Path, folder: str | Path) -> Path:
    """Write the page of a run, a folder or file of `jorth bench`, into ``folder``, its figures as PNG beside it.

    The page is one file: styles inline, figures as data, nothing from the network. Runs that are not complete, cells
    that failed and data that are missing are shown as they are. Whatever stands in a row is shown as text.

    Raises:
        ValueError: There is no row, or one that `jorth bench` cannot have written. The message names ``run``.
    """
    rows = read_rows(run)
    if not rows:
        raise ValueError(f"no rows in {run}: nothing to report yet")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    with naming(run):
        text = html(DOCUMENT, css=CSS, body=_body(rows, place), footer=colophon.footer(rows))
    page = place / NAME
    with replacing(page) as stream:
        stream.write(text.encode(errors="replace"))  # JSON has halves of characters too
    return page


def _body(rows: list[Row], place: Path) -> Html:
    graphs = [row for row in rows if is_graph(row)]
    times = [row for row in rows if is_speed(row)]
    matrices = [row for row in rows if not is_graph(row) and not is_speed(row)]
    parts = [_summary(rows)]
    parts += [_matrices(matrices, place)] if matrices else []
    parts += [graph_section.section(graph_runs(graphs), place)] if graphs else []
    parts += [speed_section.section(times, place)] if times else []
    return together(*parts, colophon.troubles(rows))


def _summary(rows: list[Row]) -> Html:
    outcomes = [row["outcome"] for row in rows]
    return html(
        SUMMARY,
        counts={outcome: outcomes.count(outcome) for outcome in ("done", "failed", "missing")},
    )


def _matrices(rows: list[Row], place: Path) -> Html:
    race, trace, planted, probe = (
        group_rows(rows, name) for name in ("race", "trace", "procrustes", "probe")
    )
    parts = [words.READING]
    parts += [_well_posed(trace, place)] if trace else []
    parts += [_race(race, place)] if race else []
    parts += [_planted(planted, place)] if planted else []
    parts += [_probe(families(rows, "probe"), place)] if probe else []
    listed = tables.problems(race + trace + planted + probe)
    return together(*parts, html("<h2>The problems</h2>{{ listed }}", listed=listed))


def _well_posed(groups: list[Group], place: Path) -> Html:
    table = tables.results(groups, words.GAP_CAPTION)
    return together(words.WELL_POSED, table, tables.speed(groups), _curves(groups, place))


def _race(groups: list[Group], place: Path) -> Html:
    table = tables.results(groups, words.RACE_CAPTION)
    curves = _curves(_first_theta(groups), place)
    return together(words.RACE, table, _orders(groups), _thetas(groups, place), curves)


def _orders(groups: list[Group]) -> Html:
    found = tables.comparisons(groups)
    if not found:
        return html("")
    return together(words.on_orders([comparison for _, comparison in found]), tables.orders(found))


def _thetas(groups: list[Group], place: Path) -> Html:
    parts = []
    for _, members in groupby(groups, key=lambda group: (group.cell.problem_key, group.budget)):
        several = list(members)
        if len(several) < 2:
            continue
        name = several[0].name
        caption = (
            f"{name}: where the JOBCD methods stood at the end of the same budget, and how soon they had left for "
            f"infinity, for {len(several)} values of θ between {several[0].theta:g} and {several[-1].theta:g}. Nothing "
            "else was changed. Open triangles ended as unbounded and are drawn at the upper edge; methods without θ "
            "are horizontal lines."
        )
        parts.append(
            place_figure(
                figures.against_theta(several), f"theta-{_slug(several[0].cell)}", caption, place
            )
        )
    return html(FIGURES, heading="The value against θ", parts=parts)


def _first_theta(groups: list[Group]) -> list[Group]:
    """Of each problem the group whose theta is nearest to 1, for the curves."""
    chosen = []
    for _, members in groupby(groups, key=lambda group: (group.cell.problem_key, group.budget)):
        chosen.append(min(members, key=lambda group: abs((group.theta or 1.0) - 1.0)))
    return chosen


def _planted(groups: list[Group], place: Path) -> Html:
    table = tables.results(groups, words.GAP_CAPTION)
    return together(words.PROCRUSTES, table, tables.speed(groups), _curves(groups, place))


def _probe(found: list[Family], place: Path) -> Html:
    parts = []
    for family in found:
        drawing = bands.convergence(family)
        if drawing is not None:
            caption = words.on_curves(family)
            parts.append(place_figure(drawing, f"probe-{_slug(family.cell)}", caption, place))
    drawn = html(FIGURES, heading="Convergence", parts=parts)
    told = probe_tables.ends(found), probe_tables.matching(found)
    return together(words.PROBE, words.on_probes(found), *told, drawn)


def _curves(groups: list[Group], place: Path) -> Html:
    parts = []
    for group in groups:
        drawing = figures.convergence(group)
        if drawing is None:
            continue
        parts.append(
            place_figure(
                drawing, f"{group.cell.problem}-{_slug(group.cell)}", _curve_caption(group), place
            )
        )
    return html(FIGURES, heading="Convergence", parts=parts)


def _curve_caption(group: Group) -> str:
    what = "−f" if group.cell.problem == "race" else "the relative gap"
    theta = "" if group.theta is None else f", θ = {group.theta:g}"
    ends = ", ".join(
        f"{name} {-row['value'] if row['gap'] is None else row['gap']:.1e}"
        for name, row in group.done.items()
        if row["value"] is not None
    )
    return f"{group.name}{theta}, {group.budget} a run: {what} against time and against gradients. At the end: {ends}."


def _slug(cell: Cell) -> str:
    probe = cell.problem == "probe"
    parts = [
        f"{cell.data}-{cell.m}-{cell.n}-{cell.p}",
        "" if cell.condition is None else f"condition{cell.condition:g}",
        f"alpha{cell.alpha:g}" if cell.alpha not in (None, 1.0) else "",
        f"scale{cell.scale}" if cell.scale not in (None, 1.0) else "",
        f"ridge{cell.ridge:g}" if probe and cell.ridge else "",
        f"seed{cell.seed}" if cell.seed and not probe else "",
        "" if cell.max_time is None else f"{cell.max_time:g}s",
        "" if cell.max_evaluations is None else f"{cell.max_evaluations}gradients",
    ]
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join(filter(None, parts)))
