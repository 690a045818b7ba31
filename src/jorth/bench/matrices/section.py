"""The sections of the page on eigenvalue problems, Procrustes and structural probes."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from jorth.bench.core.figures import place_figure
from jorth.bench.core.html import Html, html, together
from jorth.bench.core.records import Row
from jorth.bench.matrices import figures, probe, tables
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.groups import Group, group_rows
from jorth.bench.matrices.paper import CITATION
from jorth.bench.matrices.probe import SeededRuns, seeded_runs

READING = html(
    "<p>Every value was computed anew from the returned X through the objective; clocks leave out "
    "recording, compilation and warm-up. An entry of a table is the value, then in brackets "
    "Σ|XᵀJX − J|; <b>1</b>, <b>2</b>, <b>3</b> mark the best three of a row (equal ones share a "
    "place), and (+) marks a chain whose second method lowered f by more than 0.1%.</p>"
)
WELL_POSED = html(
    '<h2>The well-posed problem: the table to read</h2><div class="note"><p>min tr(Xᵀ(DᵀD + '
    "ridge·I)X) over XᵀJX = J. Its least value is known: the sum of |λ| over the eigenvalues of "
    "A x = λ J x, found directly by <code>jorth.eigh</code>. The gap is (f − f*) / (f(X₀) − f*); "
    "here a smaller value is a better answer, and runs end at a gap of 10⁻¹². Right steps change "
    "columns: on this problem they are the J-Jacobi method.</p></div>"
)
RACE = html(
    '<h2>The problem as printed: a race</h2><div class="warning"><p>The paper states '
    "min −tr(XᵀDᵀDX) over XᵀJX = J. <b>This problem is unbounded below</b>: along a boost f falls "
    "like −e^(2μ), so there is no best value, and a run never ends by itself. The table shows "
    "where each method stood when its budget was used up, ‖X‖ had grown to 10⁶, or the next step "
    "would have gone beyond what floating point keeps feasible (∞: the run left for infinity, and "
    "its value only says how far the last step went).</p>"
    "<p><b>What the race means.</b> f is concave, so its linear part bounds it from above, and the "
    "proximal weight θ alone limits the steps of the JOBCD methods: θ alone decides how fast they "
    "go. A value at a fixed time compares step rules, not optimisers. The well-posed table shows "
    "which method is better.</p></div>"
)
RACE_CAPTION = (
    f"−‖D X‖² at the end of the budget; θ in units of the curvature of f. Paper: {CITATION}."
)
GAP_CAPTION = (
    "Gap, value and violation. First is the smallest gap; where gaps are below 10⁻¹¹, the "
    "shortest time."
)
PROCRUSTES = html(
    "<h2>Noisy Procrustes</h2><p>min ‖S X − T‖² / 2m for a planted X and noise on T, from the "
    "identity. The optimum is that of a reference run of the preconditioned Riemannian L-BFGS to a "
    "gradient norm of 10⁻¹² or a stall: the best known, not certified.</p>"
)
PROBE = html(
    '<h2>The structural probe</h2><div class="note"><p>min 1/m² Σ (T_ij − c d(q_i, q_j))² + '
    "ridge/2 ‖X‖² over XᵀJX = J: T are the Euclidean distances of the rows of D, q_i = φ(d_i X) "
    "the points that X and the lift make of them, d geodesic distances on the pseudo-hyperboloid. "
    "(The paper lifts first and maps afterwards, Q = φ(D) X; that f is constant for feasible X.) "
    "Rows of zeros stay at the base point. The least value is not known. f is at least 0, so a "
    "smaller value is a better answer; but it can go on falling while ‖X‖ runs away, and a run "
    "ends when ‖X‖ has grown to 10⁴: the tables say “left”, the figures show an open triangle.</p>"
    "<p>Epochs are full gradients: m sample gradients count as one, a value without its gradient "
    "as a half. A sweep of GS-JOBCD takes a gradient for each of its n(n − 1)/2 pairs and is "
    "recorded when it is complete.</p></div>"
)
ORDERS = (
    "<h3>The order of the methods, here and in the paper</h3>"
    "<p>Of {{ decided }} pairs of methods that differ on both sides, {{ alike }} are ranked alike. "
    "In the paper UMCM and ADMM have equal values in every row, the value at the start: they did "
    "not move there. The paper does not say which θ it used, and another θ gives another order. "
    "Row randn(10-10-5) of the paper is not compared: it has positive values, which −‖D X‖² cannot "
    "take.</p>"
)
FIGURES = "{% if parts %}<h3>{{ heading }}</h3>{{ parts | join }}{% endif %}"


def section(rows: list[Row], place: Path) -> Html:
    """All sections on problems over matrices."""
    race = group_rows(rows, "race")
    trace = group_rows(rows, "trace")
    planted = group_rows(rows, "procrustes")
    probes = group_rows(rows, "probe")
    parts = [READING]
    if trace:
        parts.append(_by_gap(WELL_POSED, trace, place))
    if race:
        parts.append(_race(race, place))
    if planted:
        parts.append(_by_gap(PROCRUSTES, planted, place))
    if probes:
        parts.append(_probe(seeded_runs(rows, "probe"), place))
    problems = tables.problems_table(race + trace + planted + probes)
    return together(*parts, html("<h2>The problems</h2>"), problems)


def _by_gap(introduction: Html, groups: list[Group], place: Path) -> Html:
    results = tables.results_table(groups, GAP_CAPTION)
    return together(introduction, results, tables.speed_table(groups), _curves(groups, place))


def _race(groups: list[Group], place: Path) -> Html:
    problems = [
        list(members)
        for _, members in groupby(groups, key=lambda g: (g.cell.shared_problem, g.budget))
    ]
    nearest_to_one = [min(found, key=lambda g: abs((g.theta or 1.0) - 1.0)) for found in problems]
    return together(
        RACE,
        tables.results_table(groups, RACE_CAPTION),
        _orders(groups),
        _thetas([found for found in problems if len(found) > 1], place),
        _curves(nearest_to_one, place),
    )


def _orders(groups: list[Group]) -> Html:
    found = tables.comparisons(groups)
    if not found:
        return html("")
    alike = sum(comparison.alike for _, comparison in found)
    decided = alike + sum(comparison.reversed for _, comparison in found)
    return together(html(ORDERS, alike=alike, decided=decided), tables.orders_table(found))


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
        parts.append(
            place_figure(picture, f"probe-{_slug(runs.cell)}", _probe_caption(runs), place)
        )
    return together(
        PROBE,
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
