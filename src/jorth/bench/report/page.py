"""The page: words, tables and figures put together."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from jorth.bench.cells import Cell
from jorth.bench.records import Row, is_graph, is_speed, read_rows
from jorth.bench.report import bands, colophon, figures, graph_section, probe_tables, speed_section, tables, words
from jorth.bench.report.drawing import place_figure
from jorth.bench.report.families import Family, families
from jorth.bench.report.graph_runs import graph_runs
from jorth.bench.report.groups import Group, group_rows
from jorth.bench.report.style import CSS

NAME = "index.html"


def write_report(run: str | Path, folder: str | Path) -> Path:
    """Write the page of a run, a folder or file of `jorth bench`, into ``folder``, its figures as PNG beside it.

    The page is one file: styles inline, figures as data, nothing from the network. Runs that are not complete, cells
    that failed and data that are missing are shown as they are.
    """
    rows = read_rows(run)
    if not rows:
        raise ValueError(f"no rows in {run}: nothing to report yet")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    graphs, times = [row for row in rows if is_graph(row)], [row for row in rows if is_speed(row)]
    matrices = [row for row in rows if not is_graph(row) and not is_speed(row)]
    parts = [_summary(rows)]
    parts += [_matrices(matrices, place)] if matrices else []
    parts += [graph_section.section(graph_runs(graphs), place)] if graphs else []
    parts += [speed_section.section(times, place)] if times else []
    parts += [colophon.troubles(rows)]
    page = place / NAME
    page.write_text(_document("".join(parts), colophon.footer(rows)), encoding="utf-8")
    return page


def _document(body: str, footer: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>jorth benchmark</title><style>{CSS}</style></head>\n<body><main><h1>Benchmark of methods over "
        f"J-orthogonal matrices</h1>\n{body}</main>\n<footer>{footer}</footer></body></html>\n"
    )


def _summary(rows: list[Row]) -> str:
    counts = {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in ("done", "failed", "missing")}
    return f"<p>{counts['done']} runs done, {counts['failed']} failed, {counts['missing']} missing.</p>"


def _matrices(rows: list[Row], place: Path) -> str:
    race, trace, planted, probe = (group_rows(rows, name) for name in ("race", "trace", "procrustes", "probe"))
    parts = [words.READING]
    parts += [_well_posed(trace, place)] if trace else []
    parts += [_race(race, place)] if race else []
    parts += [_planted(planted, place)] if planted else []
    parts += [_probe(families(rows, "probe"), place)] if probe else []
    return "".join([*parts, f"<h2>The problems</h2>{tables.problems(race + trace + planted + probe)}"])


def _well_posed(groups: list[Group], place: Path) -> str:
    table = tables.results(groups, words.GAP_CAPTION)
    return f"{words.WELL_POSED}{table}{tables.speed(groups)}{_curves(groups, place)}"


def _race(groups: list[Group], place: Path) -> str:
    table = tables.results(groups, words.RACE_CAPTION)
    return f"{words.RACE}{table}{_orders(groups)}{_thetas(groups, place)}{_curves(_first_theta(groups), place)}"


def _orders(groups: list[Group]) -> str:
    found = tables.comparisons(groups)
    return words.on_orders([comparison for _, comparison in found]) + tables.orders(found) if found else ""


def _thetas(groups: list[Group], place: Path) -> str:
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
        parts.append(place_figure(figures.against_theta(several), f"theta-{_slug(several[0].cell)}", caption, place))
    return f"<h3>The value against θ</h3>{''.join(parts)}" if parts else ""


def _first_theta(groups: list[Group]) -> list[Group]:
    """Of each problem the group whose theta is nearest to 1, for the curves."""
    chosen = []
    for _, members in groupby(groups, key=lambda group: (group.cell.problem_key, group.budget)):
        chosen.append(min(members, key=lambda group: abs((group.theta or 1.0) - 1.0)))
    return chosen


def _planted(groups: list[Group], place: Path) -> str:
    table = tables.results(groups, words.GAP_CAPTION)
    return f"{words.PROCRUSTES}{table}{tables.speed(groups)}{_curves(groups, place)}"


def _probe(found: list[Family], place: Path) -> str:
    parts = []
    for family in found:
        drawing = bands.convergence(family)
        if drawing is not None:
            caption = words.on_curves(family)
            parts.append(place_figure(drawing, f"probe-{_slug(family.cell)}", caption, place))
    drawn = f"<h3>Convergence</h3>{''.join(parts)}" if parts else ""
    return f"{words.PROBE}{words.on_probes(found)}{probe_tables.ends(found)}{probe_tables.matching(found)}{drawn}"


def _curves(groups: list[Group], place: Path) -> str:
    parts = []
    for group in groups:
        drawing = figures.convergence(group)
        if drawing is None:
            continue
        parts.append(place_figure(drawing, f"{group.cell.problem}-{_slug(group.cell)}", _curve_caption(group), place))
    return f"<h3>Convergence</h3>{''.join(parts)}" if parts else ""


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
