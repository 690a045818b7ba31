"""The sections of the page on eigenvalue problems, Procrustes and structural probes."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from jorth.bench.core.figures import place_figure
from jorth.bench.core.html import Html, html, html_from, together
from jorth.bench.core.records import Row
from jorth.bench.core.sections import Podium, Section, podium_table
from jorth.bench.core.words import seeds_text
from jorth.bench.matrices import figures, probe, tables
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.groups import Group, group_rows
from jorth.bench.matrices.paper import CITATION
from jorth.bench.matrices.podium import headline, podium, race_sentence, sentence
from jorth.bench.matrices.probe import SeededRuns, seeded_runs

RACE_CAPTION = (
    f"−‖D X‖² at the end of the budget; θ in units of the curvature of f. Paper: {CITATION}."
)
GAP_CAPTION = (
    "Gap, value and violation. First is the smallest gap; where gaps are below 10⁻¹¹, the "
    "shortest time."
)
PODIUM_CAPTION = (
    "The best three methods: the smallest gap or, where gaps are below 10⁻¹¹ (“solved”), the "
    "shortest time. The appendix has all methods."
)
RACE_PODIUM_CAPTION = (
    "The three methods furthest down when their budget was used up; those that left for infinity "
    "are equal. The appendix has all methods."
)
DATA = "data (m-n-p)"
FIGURES = "{% if parts %}<h3>{{ heading }}</h3>{{ parts | join }}{% endif %}"
TITLES = {
    "trace": "The well-posed problem",
    "race": "The problem as printed: a race",
    "procrustes": "Noisy Procrustes",
    "probe": "The structural probe",
}


def sections(rows: list[Row], place: Path) -> list[Section]:
    """The sections on problems over matrices that have rows."""
    race, trace, planted, probes = (
        group_rows(rows, problem) for problem in ("race", "trace", "procrustes", "probe")
    )
    found = []
    if trace:
        found.append(_by_gap("trace", trace, place))
    if race:
        found.append(_race_section(race, place))
    if planted:
        found.append(_by_gap("procrustes", planted, place))
    if probes:
        found.append(_probe_section(seeded_runs(rows), place))
    problems = tables.problems_table(race + trace + planted + probes)
    last = found[-1]
    appendix = [*last.appendix, ("The problems and where they start", problems)]
    return [*found[:-1], replace(last, appendix=appendix)]


def _by_gap(problem: str, groups: list[Group], place: Path) -> Section:
    title = TITLES[problem]
    podium = podium_table(PODIUM_CAPTION, DATA, _podiums(groups))
    text = html_from(f"matrices/{problem}.html")
    return Section(
        problem,
        title,
        together(text, podium, _curves(groups, place)),
        [sentence(groups, title)],
        [headline(group, title) for group in groups],
        [
            (f"{title}: all results", tables.results_table(groups, GAP_CAPTION)),
            (f"{title}: times to a gap", tables.speed_table(groups)),
        ],
    )


def _podiums(groups: list[Group]) -> list[Podium]:
    several = tables.several_seeds(groups)
    return [podium(group, tables.details(group, several)) for group in groups]


def _race_section(groups: list[Group], place: Path) -> Section:
    table = podium_table(RACE_PODIUM_CAPTION, DATA, _podiums(groups))
    title = TITLES["race"]
    results = tables.results_table(groups, RACE_CAPTION)
    return Section(
        "race",
        title,
        html_from("matrices/race.html", podium=table, race=_race(groups, place)),
        [race_sentence(groups)],
        appendix=[(f"{title}: all results", results)],
    )


def _probe_section(found: list[SeededRuns], place: Path) -> Section:
    title = TITLES["probe"]
    return Section(
        "structural-probe",
        title,
        html_from("matrices/probe.html", probe=_probe(found, place)),
        probe.verdict(found),
        [probe.headline(runs, title) for runs in found],
        [(f"{title}: all results", probe.results_table(found))],
    )


def _race(groups: list[Group], place: Path) -> dict[str, Any]:
    problems = [
        list(members)
        for _, members in groupby(groups, key=lambda g: (g.cell.shared_problem, g.budget))
    ]
    nearest_to_one = [min(found, key=lambda g: abs((g.theta or 1.0) - 1.0)) for found in problems]
    many_thetas = [found for found in problems if len(found) > 1]
    orders = tables.comparisons(groups)
    alike = sum(comparison.alike for _, comparison in orders)
    decided = alike + sum(comparison.reversed for _, comparison in orders)
    return {
        "orders": orders and tables.orders_table(orders),
        "agreement": tables.agreement(alike, decided),
        "figures": together(_thetas(many_thetas, place), _curves(nearest_to_one, place)),
    }


def _thetas(problems: list[list[Group]], place: Path) -> Html:
    parts = []
    for groups in problems:
        caption = (
            f"{groups[0].name}: the values of the JOBCD methods at the end of the same budget, and "
            f"the times at which they diverged, for {len(groups)} values of θ between "
            f"{groups[0].theta:g} and {groups[-1].theta:g}. Nothing else was changed. Open "
            "triangles are runs that ended as unbounded, drawn at the upper edge; methods without "
            "θ are horizontal lines."
        )
        name = f"theta-{_slug(groups[0].cell)}"
        parts.append(place_figure(figures.against_theta(groups), name, caption, place))
    return html(FIGURES, heading="The value against θ", parts=parts)


def _probe(found: list[SeededRuns], place: Path) -> Html:
    parts = []
    for runs in found:
        picture = figures.probe_convergence(runs)
        name = f"probe-{_slug(runs.cell)}"
        parts.append(place_figure(picture, name, _probe_caption(runs), place))
    return together(
        podium_table(probe.PODIUM_CAPTION, DATA, map(probe.podium, found)),
        probe.matching_table(found),
        html(FIGURES, heading="Convergence", parts=list(filter(None, parts))),
    )


def _probe_caption(runs: SeededRuns) -> str:
    medians = runs.medians.items()
    ends = [f"{name} {value:.4g}" for name, value in medians if value < float("inf")]
    text = (
        f"{runs.name}, {runs.budget} per run, {seeds_text(runs.rows.seeds)}: f against epochs and "
        "against time."
    )
    return f"{text} Medians at the end: {', '.join(ends)}." if ends else text


def _curves(groups: list[Group], place: Path) -> Html:
    parts = []
    for group in groups:
        name = f"{group.cell.problem}-{_slug(group.cell)}"
        parts.append(place_figure(figures.convergence(group), name, _curve_caption(group), place))
    return html(FIGURES, heading="Convergence", parts=list(filter(None, parts)))


def _curve_caption(group: Group) -> str:
    what = "−f" if group.cell.problem == "race" else "the relative gap"
    theta = "" if group.theta is None else f", θ = {group.theta:g}"
    ends = [
        f"{name} {-row['value'] if row['gap'] is None else row['gap']:.1e}"
        for name, row in group.done.items()
        if row["value"] is not None
    ]
    text = (
        f"{group.name}{theta}, {group.budget} per run: {what} against time and against gradients."
    )
    return f"{text} At the end: {', '.join(ends)}." if ends else text


def _slug(cell: MatrixCell) -> str:
    """The name of a figure's file."""
    is_probe = cell.problem == "probe"
    parts = [
        f"{cell.data}-{cell.m}-{cell.n}-{cell.p}",
        "" if cell.own is None else cell.own.sha256[:8],
        "" if cell.condition is None else f"condition{cell.condition:g}",
        f"alpha{cell.alpha:g}" if cell.alpha not in (None, 1.0) else "",
        f"scale{cell.scale}" if cell.scale not in (None, 1.0) else "",
        f"ridge{cell.ridge:g}" if is_probe and cell.ridge else "",
        f"seed{cell.seed}" if cell.seed and not is_probe else "",
        "" if cell.max_time is None else f"{cell.max_time:g}s",
        "" if cell.max_evaluations is None else f"{cell.max_evaluations}gradients",
    ]
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join(filter(None, parts)))
