"""`jorth bench speed`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from jorth.bench.core.records import errors_naming, read_rows
from jorth.bench.speed.cells import BUDGETS, ONE_SEED, QUICK_PLAN, SIZES, TASKS, Plan
from jorth.bench.speed.methods import SPEED_METHODS
from jorth.cli import with_options
from jorth.cli.bench import RUN_OPTIONS, many, positive, run_and_report, seed, share
from jorth.cli.errors import one_line_errors
from jorth.cli.options import examples
from jorth.storage.atomic import replacing

SEEDS_HELP = f"Seed of a problem; from n = {ONE_SEED} on only the first counts. Repeatable."
LIMITS = f"{min(BUDGETS.values()):g} to {max(BUDGETS.values()):g}"
LIMIT_HELP = f"Seconds per run. Default: {LIMITS}, by size."
SIZES_HELP = (
    f"Size of X. Default: {min(SIZES['procrustes'])} to {max(SIZES['procrustes'])}, by task."
)
NAMES = click.Choice(SPEED_METHODS, case_sensitive=False)
SOLVER_HELP = f"Method. Repeatable. Default: all, which are {', '.join(map(repr, SPEED_METHODS))}."
SHORT_HELP = "Leave out what cannot be the fastest: UMCM, plain JOBCD and cdopt for large n."


@click.command(
    epilog=examples(
        "jorth bench speed --quick",
        "jorth bench speed --task procrustes --n 100 --threads 1 -o runs/speed",
    )
)
@many("--task", "tasks", click.Choice(TASKS), "What is minimised. Repeatable.", TASKS)
@many("--n", "sizes", click.IntRange(2), SIZES_HELP)
@many("--p-share", "shares", share, "Share p / n of plus signs. Repeatable.", Plan.shares)
@many(
    "--condition",
    "conditions",
    click.FloatRange(1),
    "Condition number of the source.",
    Plan.conditions,
)
@many(
    "--threads",
    "threads",
    click.IntRange(1),
    "Number of threads, the same for all methods.",
    Plan.threads,
)
@many("--seed", "seeds", seed, SEEDS_HELP, Plan.seeds)
@click.option("--solver", "methods", multiple=True, type=NAMES, metavar="NAME", help=SOLVER_HELP)
@click.option("--short", is_flag=True, help=SHORT_HELP)
@click.option("--time-limit", "max_time", type=positive, help=LIMIT_HELP)
@with_options(*RUN_OPTIONS)
def speed(quick: bool, **options: Any) -> None:
    """Times to given accuracies, beside pymanopt and cdopt.

    The accuracies are relative gaps of 1e-2, 1e-4 and 1e-8. The full table is written to speed.md
    and the picture to speed.png, beside the rows.
    """
    from jorth.bench.speed.page import page
    from jorth.bench.speed.picture import picture
    from jorth.bench.speed.table import entries
    from jorth.bench.speed.terminal import shown
    from jorth.tables import show

    cells = chosen_plan(quick, options).cells()
    path = run_and_report(cells, "speed", options)
    keys = {cell.key for cell in cells}
    with one_line_errors(), errors_naming(path):
        rows = [row for row in read_rows(path) if row["key"] in keys]
        found = entries(rows)
        files = {"speed.md": page(found).encode(), "speed.png": picture(found)}
        for name, content in files.items():
            if content is not None:
                with replacing(path.with_name(name)) as stream:
                    stream.write(content)
        show(shown(rows, found))


def chosen_plan(quick: bool, options: dict[str, Any]) -> Plan:
    """The plan with what was given in place of its defaults."""
    names = ("tasks", "sizes", "shares", "conditions", "threads", "seeds", "methods", "max_time")
    wanted = {name: options[name] for name in (*names, "short") if options[name]}
    return replace(QUICK_PLAN if quick else Plan(), **wanted)
