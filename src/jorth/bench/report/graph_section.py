"""The section of the page on knowledge graphs: words, tables, captions."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from jorth.bench.graphs.cells import BASE, METHODS, GraphCell
from jorth.bench.graphs.runner import FIGURES
from jorth.bench.records import Row
from jorth.bench.report import graph_figure
from jorth.bench.report.drawing import place_figure
from jorth.bench.report.graph_runs import OURS, RIVAL, GraphRuns
from jorth.bench.report.tables import entry, label, line, reason, table, without_result
from jorth.bench.report.templates import Html, html

LEAK = 0.2
"""The share of test triples with their reverse in training from which the page warns."""
WORDS = html(
    '<h2>Knowledge graphs</h2><div class="note"><p>UltraE with J-orthogonal relations: score −d²(R E_h, E_t) + b_h + '
    "b_t + δ, logistic loss, δ = {{ '%g' % base.delta }}, α = {{ '%g' % base.alpha }}, {{ base.negatives }} "
    "negatives, Adam with {{ '%g' % base.lr }} on entities and biases; {{ base.batch_size }} queries a step, which "
    "share their negatives. Only the "
    "method for the relations differs. A tenth of the training triples is held out by the seed; every method had the "
    "same number of trials on one seed, and the setting with the best MRR on the held-out triples was then run on "
    "all seeds. The model of a run is that of its best evaluation on the held-out triples; the test triples were "
    "ranked once, by it. Ranks are filtered, of both ends, ties at their mean.</p>"
    "<p>An epoch is as many queries as there are training triples, the large batches of VR-J-JOBCD included; its "
    "small batches are differentiated twice, which the clock shows and the epochs do not.</p></div>",
    base=BASE,
)
TESTS = (
    "The chosen settings: training loss in the last epoch, figures of the test triples; medians over the seeds, in "
    "brackets least and largest. ‖R‖₂ and scaled residual max|RᵀJR − J| / ‖R‖₂²: the largest."
)
TRIALS = "All trials: figures of the held-out triples at the best evaluation; * marks the setting that was chosen."


SECTION = "{{ words }}{% for text in verdicts %}<p>{{ text }}</p>{% endfor %}{{ tests }}{{ figure }}{{ trials }}"
LAST = "{{ text }}{% if failed %}<br>{{ failed }}{% endif %}"


def section(found: list[GraphRuns], place: Path) -> Html:
    """Everything on knowledge graphs."""
    drawing = graph_figure.curves(found)
    return html(
        SECTION,
        words=WORDS,
        verdicts=[sentence for runs in found for sentence in verdict(runs)],
        tests=_tests(found),
        figure="" if drawing is None else place_figure(drawing, "kge", _caption(found), place),
        trials=_trials(found),
    )


def verdict(runs: GraphRuns) -> list[str]:
    """How J-JOBCD and VR-J-JOBCD compare with CSDM, and what the graph gives away."""
    sentences = []
    for method in OURS:
        if not runs.done(method) or not runs.done(RIVAL):
            continue
        loss, other_loss = runs.median_loss(method), runs.median_loss(RIVAL)
        mrr, other_mrr = runs.median_test(method, "mrr"), runs.median_test(RIVAL, "mrr")
        sentences.append(
            f"{runs.name}: {method} ends at a {_order(loss, other_loss)} loss than {RIVAL} ({loss:.4g} and "
            f"{other_loss:.4g}) and has a {_order(mrr, other_mrr)} test MRR ({mrr:.4f} and {other_mrr:.4f})."
        )
    leak = runs.notes.get("reverse_in_train", 0.0)
    if leak >= LEAK:
        sentences.append(
            f"{runs.name}: {leak:.0%} of the test triples have their reverse (t, r, h) among the training triples: "
            "a model that takes relations for symmetric ranks these without having learnt anything else."
        )
    return sentences


def _order(mine: float, other: float) -> str:
    return "lower" if mine < other else "higher" if mine > other else "no other"


def _caption(found: list[GraphRuns]) -> str:
    names = "; ".join(f"{runs.name}, seeds {', '.join(map(str, runs.seeds))}" for runs in found)
    return f"Training loss, MRR and Hits@10 of the held-out triples against epochs and seconds. {names}."


def _tests(found: list[GraphRuns]) -> Html:
    body = [
        line(label(runs.name, f"{name}, {_settings(rows)}"), _test_cells(rows))
        for runs in found
        for name, rows in runs.tests.items()
    ]
    heads = [
        "graph",
        "loss",
        "test MRR",
        "Hits@1",
        "Hits@3",
        "Hits@10",
        "seconds",
        "‖R‖₂, residual",
    ]
    return table(TESTS, heads, body) if body else html("")


def _settings(rows: list[Row]) -> str:
    settings = dict.fromkeys(GraphCell.from_json(row["cell"]).setting for row in rows)
    return f"{'; '.join(settings)}; {len(rows)} seeds, {rows[0]['cell']['epochs']} epochs"


def _test_cells(rows: list[Row]) -> list[Html]:
    done = [row for row in rows if row["outcome"] == "done"]
    failed = without_result([row for row in rows if row not in done])
    if not done:
        return [entry(failed, kind="text", span=7)]
    columns = [
        [row["loss"] for row in done],
        *([row["test"][name] for row in done] for name in FIGURES),
    ]
    texts = [spread(column) for column in columns]
    texts += [f"{median(row['time'] for row in done):.3g}"]
    last = f"{max(row['norm'] for row in done):.3g}, {max(row['residual'] for row in done):.1e}"
    return [*map(entry, texts), entry(html(LAST, text=last, failed=failed))]


def spread(values: list[float]) -> str:
    """The median, in brackets the least and the largest."""
    bounds = f" [{min(values):.3g}, {max(values):.3g}]" if len(values) > 1 else ""
    return f"{median(values):.3g}{bounds}"


def _trials(found: list[GraphRuns]) -> Html:
    body = []
    for runs in found:
        for name in METHODS:
            chosen = {GraphCell.from_json(row["cell"]).setting for row in runs.tests.get(name, [])}
            for row in runs.trials.get(name, []):
                setting = GraphCell.from_json(row["cell"]).setting
                mark = "* " if setting in chosen else ""
                body.append(line(label(f"{mark}{runs.name}, {name}", setting), _trial_cells(row)))
    heads = ["trial", "loss", "MRR", "Hits@10", "seconds"]
    return table(TRIALS, heads, body) if body else html("")


def _trial_cells(row: Row) -> list[Html]:
    if row["outcome"] != "done":
        return [entry(reason(row), kind="failed", span=4)]
    figures = (row["loss"], row["valid"]["mrr"], row["valid"]["hits@10"], row["time"])
    return [entry(f"{figure:.3g}") for figure in figures]
