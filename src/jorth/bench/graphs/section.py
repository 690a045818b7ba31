"""The section of the page on knowledge graphs: verdicts, tables and the figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from jorth.bench.core.figures import (
    Numbers,
    handles_of,
    legend_below,
    line_style,
    log_axis,
    new_figure,
    place_figure,
    png,
)
from jorth.bench.core.html import (
    Html,
    html,
    html_from,
    label,
    table,
    table_cell,
    table_row,
    without_result,
)
from jorth.bench.core.places import best_three
from jorth.bench.core.records import MethodRows, Row, reason
from jorth.bench.core.sections import Headline, Podium, Section, headline_of, podium_table
from jorth.bench.core.words import compared, counted, seeds_text
from jorth.bench.graphs.cells import GRAPH_METHODS, GraphCell
from jorth.bench.graphs.runner import BASE_CONFIG, RANKING_METRICS

TITLE = "Knowledge graphs"
OURS = ("J-JOBCD", "VR-J-JOBCD")
RIVAL = "CSDM"
LEAK = 0.2  # the page warns from this share of test triples whose reverse is a training triple
PODIUM = "The methods by their test MRR, the median over the seeds; equal ones share a place."
TESTS = (
    "The chosen settings: training loss in the last epoch, metrics of the test triples; medians "
    "over the seeds, with the range in brackets. ‖R‖₂ and scaled residual "
    "max|RᵀJR − J| / ‖R‖₂²: the largest."
)
TRIALS = "All trials: metrics of the held-out triples at the best evaluation; * marks the choice."
LAST_CELL = "{{ text }}{% if failed %}<br>{{ failed }}{% endif %}"
DRAWN = (("loss", "training loss"), ("mrr", "MRR, held out"), ("hits@10", "Hits@10, held out"))
DRAWN_AGAINST = (("passes", "epochs"), ("time", "seconds"))
GRID_POINTS = 120  # the number of points at which the curves of the seeds are compared


@dataclass
class GraphRuns:
    """The rows of one graph, signature and budget, by method."""

    cell: GraphCell
    trials: MethodRows
    tests: MethodRows

    @property
    def name(self) -> str:
        return f"{self.cell.graph}, p = {self.cell.p}, q = {self.cell.q}"

    @property
    def leak(self) -> float:
        """The share of test triples whose reverse is a training triple; 0 if nothing was run."""
        rows = [row for members in (*self.tests.values(), *self.trials.values()) for row in members]
        notes: dict[str, float] = next((row["notes"] for row in rows if "notes" in row), {})
        return notes.get("reverse_in_train", 0.0)

    def median_loss(self, method: str) -> float:
        """The median of the last training losses; a run without one counts as infinite."""
        losses = [row.get("loss") for row in self.tests.get(method, [])]
        return median(math.inf if loss is None else loss for loss in losses)

    def median_mrr(self, method: str) -> float:
        """The median MRR on the test triples; a failed run counts as zero, NaN if none has one."""
        found = [row.get("test", {}).get("mrr") for row in self.tests.get(method, [])]
        if all(number is None for number in found):
            return math.nan
        return median(0.0 if number is None else number for number in found)


def sections(rows: list[Row], place: Path) -> list[Section]:
    """The section on knowledge graphs."""
    found = graph_runs(rows)
    body = html_from(
        "graphs/section.html",
        base=BASE_CONFIG,
        podium=podium_table(PODIUM, "graph", map(_podium, found)),
        tests=_tests_table(found),
        figure=place_figure(_figure(found), "kge", _caption(found), place),
    )
    sentences = [sentence for runs in found for sentence in verdict(runs)]
    headlines = [headline(runs) for runs in found]
    trials = _trials_table(found)
    appendix = [("Knowledge graphs: all trials", trials)] if trials else []
    return [Section("graphs", TITLE, body, sentences, headlines, appendix)]


def graph_runs(rows: list[Row]) -> list[GraphRuns]:
    """The runs of every graph in the order of their first rows, methods as in the tables."""
    shared: dict[tuple[str, int, int, int], list[tuple[GraphCell, Row]]] = {}
    for row in rows:
        cell = GraphCell.from_json(row["cell"])
        key = cell.graph, cell.p, cell.q, cell.epochs
        shared.setdefault(key, []).append((cell, row))
    found = []
    for members in shared.values():
        trials = [row for cell, row in members if cell.stage == "trial"]
        tests = [row for cell, row in members if cell.stage == "test"]
        cell = members[0][0]
        by_method = [MethodRows(stage, GRAPH_METHODS) for stage in (trials, tests)]
        found.append(GraphRuns(cell, *by_method))
    return found


def verdict(runs: GraphRuns) -> list[str]:
    """How J-JOBCD and VR-J-JOBCD compare with CSDM, and a warning if the graph leaks answers."""
    sentences = []
    if not runs.tests:
        sentences.append(f"Knowledge graph {runs.name}: no method has been tested yet.")
    elif not any(runs.tests.done(name) for name in runs.tests):
        sentences.append(f"Knowledge graph {runs.name}: no test has a result.")
    for method in OURS:
        if runs.tests.done(method) and runs.tests.done(RIVAL):
            sentences.append(f"Knowledge graph {runs.name}: {_comparison(runs, method)}.")
    if runs.leak >= LEAK:
        sentences.append(
            f"Knowledge graph {runs.name}: {runs.leak:.0%} of the test triples have their reverse "
            "(t, r, h) among the training triples: a model that treats relations as symmetric "
            "ranks these without having learnt anything else."
        )
    return sentences


def _comparison(runs: GraphRuns, method: str) -> str:
    loss, other_loss = (runs.median_loss(name) for name in (method, RIVAL))
    mrr, other_mrr = (runs.median_mrr(name) for name in (method, RIVAL))
    trained = compared("training loss", loss, other_loss, RIVAL, ".4g")
    return f"{method} {trained} and {compared('test MRR', mrr, other_mrr, RIVAL, '.4f')}"


def standings(runs: GraphRuns) -> dict[str, float]:
    """The median test MRR of every method with a result, the best first."""
    known = {name: runs.median_mrr(name) for name in runs.tests if runs.tests.done(name)}
    finite = {name: mrr for name, mrr in known.items() if math.isfinite(mrr)}
    return dict(sorted(finite.items(), key=lambda pair: -pair[1]))


def headline(runs: GraphRuns) -> Headline:
    """The best test MRR, and how far it is above the next."""
    scores = {name: -mrr for name, mrr in standings(runs).items()}
    return headline_of(TITLE, runs.name, scores, lambda score: f"test MRR {-score:.3f}")


def _podium(runs: GraphRuns) -> Podium:
    found = standings(runs)
    places = best_three({name: -mrr for name, mrr in found.items()})
    results = {name: f"test MRR {mrr:.3f}" for name, mrr in found.items()}
    tests = [row for rows in runs.tests.values() for row in rows]
    trouble = dict.fromkeys(reason(row) for row in tests if row["outcome"] != "done")
    details = f"{counted(runs.cell.epochs, 'epoch')}, {seeds_text(runs.tests.seeds)}"
    return Podium(runs.name, details, places, results, "; ".join(trouble))


def _tests_table(found: list[GraphRuns]) -> Html:
    metrics = ("test MRR", "Hits@1", "Hits@3", "Hits@10")
    heads = ("graph", "loss", *metrics, "seconds", "‖R‖₂, residual")
    body = [
        table_row(label(runs.name, f"{name}, {_settings(rows)}"), _test_cells(rows))
        for runs in found
        for name, rows in runs.tests.items()
    ]
    return table(TESTS, heads, body) if body else html("")


def _settings(rows: list[Row]) -> str:
    settings = dict.fromkeys(GraphCell.from_json(row["cell"]).setting for row in rows)
    return f"{'; '.join(settings)}; {counted(len(rows), 'seed')}"


def _test_cells(rows: list[Row]) -> list[Html]:
    done = [row for row in rows if row["outcome"] == "done"]
    failed = without_result([row for row in rows if row not in done])
    if not done:
        return [table_cell(failed, css="text", span=7)]
    texts = [_spread([row["loss"] for row in done])]
    texts += [_spread([row["test"][name] for row in done]) for name in RANKING_METRICS]
    texts.append(f"{median(row['time'] for row in done):.3g}")
    last = f"{max(row['norm'] for row in done):.3g}, {max(row['residual'] for row in done):.1e}"
    return [*map(table_cell, texts), table_cell(html(LAST_CELL, text=last, failed=failed))]


def _spread(values: list[float]) -> str:
    """The median, followed by the smallest and the largest value in brackets."""
    bounds = f" [{min(values):.3g}, {max(values):.3g}]" if len(values) > 1 else ""
    return f"{median(values):.3g}{bounds}"


def _trials_table(found: list[GraphRuns]) -> Html:
    body = []
    for runs in found:
        for name, rows in runs.trials.items():
            chosen = {GraphCell.from_json(row["cell"]).setting for row in runs.tests.get(name, [])}
            for row in rows:
                setting = GraphCell.from_json(row["cell"]).setting
                mark = "* " if setting in chosen else ""
                head = label(f"{mark}{runs.name}, {name}", setting)
                body.append(table_row(head, _trial_cells(row)))
    heads = ["trial", "loss", "MRR", "Hits@10", "seconds"]
    return table(TRIALS, heads, body) if body else html("")


def _trial_cells(row: Row) -> list[Html]:
    if row["outcome"] != "done":
        return [table_cell(reason(row), css="failed", span=4)]
    numbers = (row["loss"], row["valid"]["mrr"], row["valid"]["hits@10"], row["time"])
    return [table_cell(f"{number:.3g}") for number in numbers]


def _caption(found: list[GraphRuns]) -> str:
    names = "; ".join(f"{runs.name}, {seeds_text(runs.tests.seeds)}" for runs in found)
    return (
        "Training loss, MRR and Hits@10 of the held-out triples against epochs and seconds. "
        f"{names}."
    )


def _figure(found: list[GraphRuns]) -> bytes | None:
    """Loss, MRR and Hits@10 as PNG, two columns per graph; None if no test has a result."""
    drawn = [runs for runs in found if any(runs.tests.done(name) for name in runs.tests)]
    if not drawn:
        return None
    figure = new_figure(2 * 3.4 * len(drawn), 7.6)
    sharey = "row" if len(drawn) == 1 else False
    axes = figure.subplots(len(DRAWN), 2 * len(drawn), squeeze=False, sharey=sharey)
    for number, runs in enumerate(drawn):
        columns = axes.T[2 * number : 2 * number + 2]
        for (against, x_label), panels in zip(DRAWN_AGAINST, columns, strict=True):
            for (name, y_label), panel in zip(DRAWN, panels, strict=True):
                _panel(panel, runs, against, name)
                panel.set_ylabel(y_label if against == "passes" else "")
            heading = runs.name if against == "passes" else "the same against time"
            panels[0].set_title(heading, fontsize=9, parse_math=False)
            panels[-1].set_xlabel(x_label)
    legend_below(figure, handles_of(axes.flat))
    return png(figure)


def _panel(panel: Any, runs: GraphRuns, against: str, name: str) -> None:
    for method in runs.tests:
        rows = runs.tests.done(method)
        if not rows:
            continue
        grid, values = on_grid(rows, against, name)
        line = line_style(method)
        panel.plot(grid, np.median(values, axis=0), label=method, **line)
        if len(rows) > 1:
            extremes = values.min(axis=0), values.max(axis=0)
            panel.fill_between(grid, *extremes, color=line["color"], alpha=0.12, linewidth=0)
    if name == "loss":
        log_axis(panel, "y")
    panel.grid(alpha=0.3)
    panel.tick_params(labelsize=8)


def on_grid(rows: list[Row], against: str, name: str) -> tuple[Numbers, Numbers]:
    """Points (g,) that all runs cover, and a column (runs, g) there, interpolated linearly."""
    lines = []
    for row in rows:
        x = np.array(row["history"][against], dtype=float)
        y = np.array(row["history"][name], dtype=float)  # null if there was no evaluation
        lines.append((x[np.isfinite(y)], y[np.isfinite(y)]))
    grid = np.linspace(max(x[0] for x, _ in lines), min(x[-1] for x, _ in lines), GRID_POINTS)
    return grid, np.array([np.interp(grid, x, y) for x, y in lines])
