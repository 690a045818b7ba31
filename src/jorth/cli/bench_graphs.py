"""`jorth bench kge`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from jorth.bench.core.records import errors_naming, read_rows
from jorth.bench.graphs.cells import GRAPH_METHODS, QUICK_PLAN, Plan
from jorth.cli import folder, with_options
from jorth.cli.bench import RUN_OPTIONS, many, one, run_and_report, seed
from jorth.cli.errors import one_line_errors, suggestion
from jorth.cli.options import examples

NAMES = click.Choice(GRAPH_METHODS, case_sensitive=False)
GRAPH_HELP = "Name of a folder with train.txt and test.txt. Repeatable."
EPOCHS_HELP = (
    f"Passes over the training triples. Default: {Plan.epochs}, quick {QUICK_PLAN.epochs}."
)
TRIALS_HELP = f"Settings to try for each method. Default: {Plan.trials}, quick {QUICK_PLAN.trials}."


@click.command(
    epilog=examples(
        "jorth bench kge --quick --report",
        "jorth bench kge --graph WN18RR-mini --data-dir graphs -o runs/kge",
    )
)
@many("--graph", "graphs", str, GRAPH_HELP, Plan.graphs)
@one("--data-dir", folder, "Folder that has the graphs, or kg with them. Default: $JORTH_DATA.")
@many("--solver", "methods", NAMES, "Method for the relations. Repeatable. Default: all.")
@many("--seed", "seeds", seed, "Seed of a test; trials use the first. Repeatable.", Plan.seeds)
@one("--epochs", click.IntRange(1), EPOCHS_HELP)
@one("--trials", click.IntRange(1, Plan.trials), TRIALS_HELP)
@with_options(*RUN_OPTIONS)
def kge(data_dir: Path | None, quick: bool, **options: Any) -> None:
    """UltraE on knowledge graphs.

    Every method for the relations is tuned on held-out triples and then tested on several seeds.
    """
    names = ("graphs", "methods", "seeds", "epochs", "trials")
    wanted = {name: options[name] for name in names if options[name]}
    plan = replace(QUICK_PLAN if quick else Plan(), **wanted)
    _check_names(plan.graphs, data_dir)
    path = run_and_report(plan.trial_cells(), "kge", options, data_dir, last=False)
    with one_line_errors(), errors_naming(path):
        tests = plan.test_cells(read_rows(path))
    run_and_report(tests, "kge", options, data_dir)


def _check_names(graphs: Sequence[str], data_dir: Path | None) -> None:
    """Refuse names of graphs that are neither known nor in the data."""
    from jorth.bench.graphs.runner import known_graphs

    with one_line_errors():
        known = known_graphs(data_dir)
    for name in graphs:
        if name not in known:
            near = suggestion(name, known)
            listed = ", ".join(known)
            raise click.BadParameter(
                f"there is no graph {name!r}; there are {listed}.{near}", param_hint="--graph"
            )
