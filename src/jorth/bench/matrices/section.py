"""The sections of the page on eigenvalue problems, Procrustes and structural probes."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from jorth.bench.core.figures import place_figure
from jorth.bench.core.html import Html, html, html_from, together
from jorth.bench.core.records import Row
from jorth.bench.matrices import figures, probe, tables
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.groups import Group, group_rows
from jorth.bench.matrices.paper import CITATION
from jorth.bench.matrices.probe import SeededRuns, seeded_runs

RACE_CAPTION = (
    f"−‖D X‖² at the end of the budget; θ in units of the curvature of f. Paper: {CITATION}."
)
GAP_CAPTION = (
    "Gap, value and violation. First is the smallest gap; where gaps are below 10⁻¹¹, the "
    "shortest time."
)
FIGURES = "{% if parts %}<h3>{{ heading }}</h3>{{ parts | join }}{% endif %}"


def section(rows: list[Row], place: Path) -> Html:
    """All sections on problems over matrices."""
    race = group_rows(rows, "race")
    trace = group_rows(rows, "trace")
    planted = group_rows(rows, "procrustes")
    probes = group_rows(rows, "probe")
    return html_from(
        "matrices/section.html",
        trace=trace and _by_gap(trace, place),
        race=race and _race(race, place),
        procrustes=planted and _by_gap(planted, place),
        probe=probes and _probe(seeded_runs(rows), place),
        problems=tables.problems_table(race + trace + planted + probes),
    )


def _by_gap(groups: list[Group], place: Path) -> Html:
    results = tables.results_table(groups, GAP_CAPTION)
    return together(results, tables.speed_table(groups), _curves(groups, place))


def _race(groups: list[Group], place: Path) -> dict[str, Any]:
    problems = [
        list(members)
        for _, members in groupby(groups, key=lambda g: (g.cell.shared_problem, g.budget))
    ]
    nearest_to_one = [min(found, key=lambda g: abs((g.theta or 1.0) - 1.0)) for found in problems]
    many_thetas = [found for found in problems if len(found) > 1]
    orders = tables.comparisons(groups)
    alike = sum(comparison.alike for _, comparison in orders)
    return {
        "results": tables.results_table(groups, RACE_CAPTION),
        "orders": orders and tables.orders_table(orders),
        "alike": alike,
        "decided": alike + sum(comparison.reversed for _, comparison in orders),
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
        probe.verdict(found),
        probe.results_table(found),
        probe.matching_table(found),
        html(FIGURES, heading="Convergence", parts=list(filter(None, parts))),
    )


def _probe_caption(runs: SeededRuns) -> str:
    medians = runs.medians.items()
    ends = ", ".join(f"{name} {value:.4g}" for name, value in medians if value < float("inf"))
    seeds = ", ".join(map(str, runs.rows.seeds))
    return (
        f"{runs.name}, {runs.budget} per run, seeds {seeds}: f against epochs and against time. "
        f"Medians at the end: {ends}."
    )


def _curves(groups: list[Group], place: Path) -> Html:
    parts = []
    for group in groups:
        name = f"{group.cell.problem}-{_slug(group.cell)}"
        parts.append(place_figure(figures.convergence(group), name, _curve_caption(group), place))
    return html(FIGURES, heading="Convergence", parts=list(filter(None, parts)))


def _curve_caption(group: Group) -> str:
    what = "−f" if group.cell.problem == "race" else "the relative gap"
    theta = "" if group.theta is None else f", θ = {group.theta:g}"
    ends = ", ".join(
        f"{name} {-row['value'] if row['gap'] is None else row['gap']:.1e}"
        for name, row in group.done.items()
        if row["value"] is not None
    )
    return (
        f"{group.name}{theta}, {group.budget} per run: {what} against time and against gradients. "
        f"At the end: {ends}."
    )


def _slug(cell: MatrixCell) -> str:
    """The name of a figure's file."""
    is_probe = cell.problem == "probe"
    parts = [
        f"{cell.data}-{cell.m}-{cell.n}-{cell.p}",
        "" if cell.condition is None else f"condition{cell.condition:g}",
        f"alpha{cell.alpha:g}" if cell.alpha not in (None, 1.0) else "",
        f"scale{cell.scale}" if cell.scale not in (None, 1.0) else "",
        f"ridge{cell.ridge:g}" if is_probe and cell.ridge else "",
        f"seed{cell.seed}" if cell.seed and not is_probe else "",
        "" if cell.max_time is None else f"{cell.max_time:g}s",
        "" if cell.max_evaluations is None else f"{cell.max_evaluations}gradients",
    ]
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join(filter(None, parts)))
