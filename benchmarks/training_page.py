"""The page docs/results/optimisers.md and its picture, from the results of `training.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean, median, pstdev
from typing import Any

from benchmarks.training_methods import DEFAULT_RATE, HEAD_RATE, METHODS
from benchmarks.training_results import OFF_THE_GROUP, OURS, Record, Results, failure, final

NEARLY = 1.01
"""Losses that are as good as equal."""
WITHIN = 1.10
CHANGE = 0.20
SHARES = (1.0, 0.5)
"""Of the time of JOBCD with its defaults."""
DEFAULT = f"{OURS}, default"

INTRODUCTION = """\
# Ways to train J-orthogonal parameters

Which optimiser should train J-orthogonal parameters, and does [`optim.JOBCD`](../howto/training.md) need tuning? This page compares eight
ways on [five small tasks](#tasks-and-methods) in float32: {runs:,} runs, {seeds}.

- Every method has its best learning rate for each task, chosen from a grid.
- **JOBCD, default** is `jorth.optim.JOBCD(params, signature)` without any options, with lr = {default:g} on every task.
- The learning rate and options of the defaults were chosen on other seeds.
- A method is *feasible* if its matrices stay J-orthogonal. Adam without the constraint does not. It solves another problem and is shown for
  comparison only.

![loss against steps and against time](../images/optimisers.png)

The picture shows the loss on all data, as means over the seeds, against steps (above) and against seconds of training (below). Adam without
the constraint may leave the picture at the bottom.

To make the page: `python benchmarks/training.py --workers 16 --docs docs`.
"""  # noqa: E501

TASKS_AND_METHODS = """\
## Tasks and methods

| task | what is trained | steps |
|---|---|---|
| digits | a classifier of handwritten digits: 3 isometries of the hyperboloid (n = 33), with relu in the tangent space between them, and a linear head; batches of 128 | {digits} |
| tree | an embedding of a binary tree with 63 nodes: 62 Lorentz matrices (n = 8), one per edge, whose products place the nodes; mean square relative error of all distances | {tree} |
| align | one Lorentz matrix (n = 51) that maps 2000 points to noisy images, of which a tenth are shuffled; mean distance, batches of 128 | {align} |
| deep | the classifier of digits with 10 isometries, n = 17 | {deep} |
| boosts | 16 matrices of O(6, 2) with norms from 2 to 1000, found from images of 64 vectors; mean square error relative to the images | {boosts} |

| method | what it is | learning rates |
|---|---|---|
{methods}

- **Head:** for every method, Adam with lr = {head:g} trains the head of digits and deep.
- **Failed runs:** a run failed if it raised an error, if its parameters or its last loss are not finite, or if it left the group. The last
  means a residual max |XᵀJX − J| / ‖X‖² above {off:.1e}; it is not checked for Adam without the constraint. A rate at which one seed failed
  cannot be the best one.
- **Clock:** every run has one thread{cores}. The clock is stopped while a run is scored.
- **Machine:** {cpu}, torch {torch}, {workers} runs at a time.
"""  # noqa: E501

WHAT = {
    "JOBCD": "`jorth.optim.JOBCD`, all defaults",
    "JOBCD, left": '`side="left", gain_rate=0.0`: steps on rows only, no gain',
    "JOBCD, embedding per plane": '`metric="embedding", curvature="per-plane", momentum=0.9`',
    "JOBCD, paper's step": '`metric="embedding", curvature="scheduled", momentum=0.0`',
    "geoopt RiemannianAdam on our manifold": "`jorth.adapters.geoopt.JOrthogonal`",
    "CS form + Adam": "`jorth.nn.cs_parametrization`",
    "exp form + Adam": "`jorth.nn.exponential_parametrization`",
    "Adam, unconstrained": "the matrices as plain parameters; not feasible",
}


def page(found: Results) -> str:
    return "\n".join(
        [
            *_introduction(found),
            *_summary(found),
            *_equal_steps(found),
            *_equal_time(found),
            *_sensitivity(found),
            *_setting(found),
        ]
    )


def number(value: float) -> str:
    return "failed" if math.isinf(value) else "–" if math.isnan(value) else f"{value:.3g}"


def table(heads: list[str], rows: Iterator[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _introduction(found: Results) -> Iterator[str]:
    runs = sum(len(runs) for rates in found.runs.values() for runs in rates.values())
    seeds = f"{len(found.seeds)} seeds" if len(found.seeds) > 1 else "one seed"
    if found.made["quick"]:
        seeds += ". **This is a quick run: few rates and steps, which compare nothing**"
    yield INTRODUCTION.format(runs=runs, seeds=seeds, default=DEFAULT_RATE)


def steps_ratio(found: Results, task: str) -> float:
    """The final loss of the default over the best of any feasible method."""
    best = found.best(task, found.best_feasible(task)).loss
    return fmean(map(final, found.default(task))) / best


def time_ratio(found: Results, task: str, share: float) -> tuple[float, str]:
    """The loss of the default at that share of its time over that of the best other method."""
    score = found.at(task, share)
    others = [name for name in found.feasible if name != OURS]
    best, name = min((found.best(task, name, score).loss, name) for name in others)
    return fmean(map(score, found.default(task))) / best, name


def largest_change(found: Results, task: str) -> float:
    """Of the loss, from the default rate to those beside it; NaN if they are not there."""
    ratios = [ratio for ratio in found.around(task, OURS, DEFAULT_RATE) if not math.isnan(ratio)]
    return max((abs(ratio - 1) for ratio in ratios), default=math.nan)


def percent(share: float) -> str:
    return number(share) if not math.isfinite(share) else f"{share:.0%}"


def _summary(found: Results) -> Iterator[str]:
    yield "## Summary\n"
    yield (
        "The table shows how JOBCD with its defaults does on each task. Variants of JOBCD count "
        "as other methods.\n"
    )
    heads = ["", *found.tasks]
    names = {1.0: "the whole run", 0.5: "half of the run"}

    def rows() -> Iterator[list[str]]:
        yield [
            "equal steps: final loss, relative to the best feasible method and rate "
            "(goal: at most 1.1)",
            *(number(steps_ratio(found, task)) for task in found.tasks),
        ]
        for share in SHARES:
            yield [
                f"equal time: loss after {names[share]}, relative to the best other feasible "
                "method at that time (goal: below 1)",
                *(number(time_ratio(found, task, share)[0]) for task in found.tasks),
            ]
        yield [
            f"learning rate: change of the final loss at lr = 0.003 or 0.03 instead of "
            f"{DEFAULT_RATE:g} (goal: below 20%)",
            *(percent(largest_change(found, task)) for task in found.tasks),
        ]

    yield from table(heads, rows())
    missed = "\n".join(misses(found))
    yield f"The goals that are missed:\n\n{missed}" if missed else "All goals are met."
    yield ""


def misses(found: Results) -> Iterator[str]:
    """A sentence for each goal that is missed."""
    for task in found.tasks:
        ratio = steps_ratio(found, task)
        if not ratio <= WITHIN:
            name = found.best_feasible(task)
            best = found.best(task, name)
            yield (
                f"- {task}: after equal steps the default ends at {number(ratio)} times the loss "
                f"of {name} with lr = {best.lr:g}."
            )
        for share in SHARES:
            ratio, name = time_ratio(found, task, share)
            if not ratio < 1:
                when = "equal time" if share == 1 else "half of that time"
                behind = f"; the loss of the default is {number(ratio)} times as large"
                if ratio < NEARLY:
                    behind = f" by less than {NEARLY - 1:.0%}"
                yield f'- {task}: after {when}, "{name}" is ahead{behind}.'
        change = largest_change(found, task)
        if change >= CHANGE:
            low, high = found.around(task, OURS, DEFAULT_RATE)
            yield (
                f"- {task}: within a factor of 3 of the default rate the loss changes by "
                f"{percent(change)}. It is {number(low)} times as large at the lower rate and "
                f"{number(high)} times at the higher one."
            )


def _equal_steps(found: Results) -> Iterator[str]:
    yield "## Equal steps\n"
    yield (
        "Each method runs the same number of steps at its best rate. The tables have the mean "
        "final loss ± the standard deviation over the seeds.\n\n"
        '- "Over the best" is the loss divided by that of the best feasible method.\n'
        '- "Residual" and "norm" are the largest at the end of these runs.\n'
        '- "Failed" counts the runs at all rates.\n'
        "- Adam without the constraint, in italics, is not feasible.\n"
    )
    heads = ["method", "lr", "loss", "over the best", "ms per step", "residual", "norm", "failed"]
    for task in found.tasks:
        yield f"### {task}\n"
        yield from table(heads, _final_rows(found, task))


def _final_rows(found: Results, task: str) -> Iterator[list[str]]:
    least = found.best(task, found.best_feasible(task)).loss
    default = found.default(task)
    failed = sum(failure(record) is not None for record in default)
    yield [
        f"**{DEFAULT}**",
        *_final_cells(default, DEFAULT_RATE, least),
        f"{failed} of {len(default)}",
    ]
    for name in METHODS:
        best = found.best(task, name)
        failed, runs = found.failed(task, name)
        shown = name if name != OURS else f"{OURS}, best rate"
        shown = shown if METHODS[name].feasible else f"*{name}*"
        cells = _final_cells(found.runs[task, name][best.lr], best.lr, least)
        yield [shown, *cells, f"{failed} of {runs}"]


def _final_cells(records: list[Record], lr: float, least: float) -> list[str]:
    losses = [final(record) for record in records]
    if math.inf in losses:
        return ["–", "failed", "–", "–", "–", "–"]
    loss = fmean(losses)
    return [
        f"{lr:g}",
        f"{number(loss)} ± {pstdev(losses):.1g}",
        f"{loss / least:.2f}",
        f"{median(record['ms_per_step'] for record in records):.2f}",
        f"{max(record['residual'] for record in records):.0e}",
        f"{max(record['norm'] for record in records):.2g}",
    ]


def _rows_by_task(
    found: Results, entry: Callable[[str, str, bool], str], names: list[str]
) -> Iterator[list[str]]:
    """A row for the default of JOBCD and for every method; an entry for each task."""
    yield [f"**{DEFAULT}**", *(entry(task, OURS, True) for task in found.tasks)]
    for name in names:
        shown = f"{OURS}, best rate" if name == OURS else name
        shown = shown if METHODS[name].feasible else f"*{name}*"
        yield [shown, *(entry(task, name, False) for task in found.tasks)]


def _equal_time(found: Results) -> Iterator[str]:
    yield "## Equal time\n"
    yield (
        "How low is the loss when JOBCD with its defaults has finished (median time over the "
        "seeds), and after half of that time?\nEach method has the rate that is best at that time, "
        "in brackets. A run that has finished earlier keeps its last loss.\nThe best feasible loss "
        "is bold.\n"
    )
    for share in SHARES:
        seconds = {task: share * found.milliseconds[task] / 1e3 for task in found.tasks}
        heads = ["method", *(f"{task}, {number(seconds[task])} s" for task in found.tasks)]
        yield from table(heads, _rows_by_task(found, _time_entry(found, share), list(METHODS)))


def _time_entry(found: Results, share: float) -> Callable[[str, str, bool], str]:
    def entry(task: str, name: str, default: bool) -> str:
        score = found.at(task, share)
        best = found.best(task, name, score)
        if default:
            best = best._replace(loss=fmean(map(score, found.default(task))), lr=DEFAULT_RATE)
        if math.isinf(best.loss):
            return "failed"
        least = found.best(task, found.best_feasible(task, score), score).loss
        mark = "**" if METHODS[name].feasible and best.loss <= least else ""
        return f"{mark}{number(best.loss)}{mark} ({best.lr:g})"

    return entry


def _sensitivity(found: Results) -> Iterator[str]:
    yield "## Learning rates\n"
    yield (
        "How sensitive is the final loss to the learning rate? Each entry has two ratios:\nthe "
        "loss at the next lower and at the next higher rate of the grid (a factor of about 3), "
        "divided by the loss at the rate in brackets.\nThat is the default for the first row, and "
        "the best rate of the method for the others. – means the end of the grid.\n"
    )

    def entry(task: str, name: str, default: bool) -> str:
        lr = DEFAULT_RATE if default else found.best(task, name).lr
        if math.isinf(found.best(task, name).loss):
            return "failed"
        low, high = found.around(task, name, lr)
        return f"{number(low)}, {number(high)} ({lr:g})"

    yield from table(["method", *found.tasks], _rows_by_task(found, entry, list(METHODS)))


def _setting(found: Results) -> Iterator[str]:
    def grid(name: str) -> str:
        rates = sorted({lr for task in found.tasks for lr in found.runs[task, name]})
        return ", ".join(f"{lr:g}" for lr in rates)

    methods = [f"| {name} | {WHAT[name]} | {grid(name)} |" for name in METHODS]
    made: dict[str, Any] = found.made
    alone = made["workers"] <= made["hardware"]["usable_cores"]
    yield TASKS_AND_METHODS.format(
        **found.steps,
        methods="\n".join(methods),
        head=HEAD_RATE,
        off=OFF_THE_GROUP,
        cores=" on a core of its own" if alone else "",
        cpu=made["hardware"]["cpu"],
        torch=made["versions"]["torch"],
        workers=made["workers"],
    )
