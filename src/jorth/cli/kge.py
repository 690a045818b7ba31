"""`jorth kge`: embed a knowledge graph, and evaluate and use the model."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jorth.cli import Group, folder
from jorth.cli.errors import INTERRUPTED, one_line, one_line_errors
from jorth.cli.kge_use import (
    DATA,
    FILE,
    OUTPUT,
    data_option,
    draw,
    explain,
    model_option,
    nearest,
    predict,
)
from jorth.cli.options import device_option, examples
from jorth.terminal import visible

if TYPE_CHECKING:
    from jorth.kge import Training
    from jorth.kge.session import Request

PRESETS = ("default", "paper", "WN18RR", "FB15k-237")
"""Those of jorth.kge.presets, which is not imported for the help."""


def _preset(ctx: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """The name of a preset as the library spells it."""
    from jorth.kge.presets import preset_named

    try:
        return None if name is None else preset_named(name)
    except ValueError as error:
        raise click.BadParameter(one_line(error), ctx, parameter) from None


def _settings(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    """Settings from texts such as "lr=0.1"; values are those of TOML, or else texts."""
    if not texts:
        return {}
    from jorth.kge.config import changes_from

    try:
        return changes_from(texts)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(one_line(error), ctx, parameter) from None


def _requested(config: Path | None, options: dict[str, Any]) -> Request:
    """The run that the options ask for."""
    from jorth.kge.config import Config
    from jorth.kge.session import Request, read_request

    data, header, preset = (options[name] for name in ("data", "header", "preset"))
    names = ("device", "epochs", "max_time", "seed")
    given = {name: options[name] for name in names if options[name] is not None}
    changes = options["changes"] | given
    if config is None:
        return Request(Config.preset(preset or "default", **changes), data, header)
    return read_request(config, data=data, header=header, preset=preset, changes=changes)


@click.group(
    cls=Group,
    epilog=examples("jorth kge train --data my-graph", 'jorth kge predict Berlin capital_of "?"'),
)
def kge() -> None:
    """Embed knowledge graphs by UltraE, and use the models."""


@kge.command(
    epilog=examples(
        "jorth kge train",
        "jorth kge train --data my-graph --epochs 100 -o models/mine",
        "jorth kge train --data WN18RR --preset WN18RR --device cuda",
        "jorth kge train run.toml --set lr=0.01",
    )
)
@click.argument("config", required=False, type=FILE)
@click.option(
    "--output",
    "-o",
    type=folder,
    default=OUTPUT,
    show_default=True,
    help="Folder of the model. A run that was stopped there goes on.",
)
@click.option(
    "--data",
    type=DATA,
    help="Folder of train, valid and test, or one file, which is split (.txt, .tsv, .csv, .gz).",
)
@click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first line of a file has headings. Default: recognise them.",
)
@click.option(
    "--preset",
    metavar="NAME",
    help=f"Settings to start from: {', '.join(PRESETS)}.",
    callback=_preset,
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any setting, as in a file: --set method=csdm. May be repeated.",
    callback=_settings,
)
@device_option()
@click.option("--epochs", type=click.IntRange(1), help="Passes over the training triples.")
@click.option("--max-time", type=click.FloatRange(0, min_open=True), help="Seconds of training.")
@click.option("--seed", type=click.IntRange(0), help="Seed of everything random.")
@click.option("--dry-run", is_flag=True, help="Print the graph and all settings, and do not train.")
def train(config: Path | None, output: Path, dry_run: bool, **options: Any) -> None:
    """Train a model of a knowledge graph.

    Settings come from CONFIG, a TOML file, from a preset, or from the defaults. Without a file and
    without --data the graph is a generated one, which takes a few seconds. Options override the
    settings of the file. Ctrl-C keeps the best model so far.
    """
    from jorth.kge.session import fitted, run
    from jorth.kge.tables import ProgressBar, ranking_table
    from jorth.tables import show

    with one_line_errors():
        request, triples = fitted(_requested(config, options))
        sizes = request.config
        if dry_run:
            about = "".join(f"# {visible(line)}\n" for line in (str(triples), *triples.notes))
            click.echo(f"{about}{request.as_toml()}")
            return
        for note in triples.notes:
            click.echo(visible(note))
        click.echo(
            f"{triples}\n{sizes.epochs} epochs, batch_size {sizes.batch_size}, "
            f"negatives {sizes.negatives}"
        )
        with _saying_how_to_go_on(output), ProgressBar(sizes.epochs) as bar:
            finished = run(request, triples, output, callback=bar)
    training = finished.training
    if finished.test is None:
        _say_what_is_kept(training, output)
        raise SystemExit(INTERRUPTED)
    title = f"test triples of {request.name}"
    show(ranking_table(finished.test, finished.triples.relations, title))
    ended = visible(_sentence(training.message))
    click.echo(f"{ended} The model is from epoch {training.best_epoch}, the best on validation.")
    click.echo(f"The model, history.csv and test.json are in {output}")


@contextmanager
def _saying_how_to_go_on(output: Path) -> Iterator[None]:
    """Add the option to errors about checkpoints; end with 130 where Ctrl-C left no model."""
    from jorth.solvers import CheckpointMismatch

    try:
        yield
    except CheckpointMismatch as error:
        raise CheckpointMismatch(f"{error} (--output names the folder)") from error
    except KeyboardInterrupt:
        click.echo("Stopped before there was a model to keep.", err=True)
        raise SystemExit(INTERRUPTED) from None


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _say_what_is_kept(training: Training, output: Path) -> None:
    """After Ctrl-C: which model the folder has, how to go on, and how to use it."""
    epoch, mrr = training.best_epoch, training.best_mrr
    best = f"The best model so far (epoch {epoch}, validation MRR {mrr:.3f})"
    if math.isnan(mrr):
        best = "The model as it was then, not yet evaluated,"
    click.echo(f"{visible(_sentence(training.message))} {best} is in {output}", err=True)
    command = shlex.join(["jorth", *sys.argv[1:]])
    click.echo(f"Go on:  {command}", err=True)
    place = shlex.quote(str(output))
    click.echo(f'Use it: jorth kge predict HEAD RELATION "?" -m {place}', err=True)


@kge.command(
    epilog=examples("jorth kge evaluate", "jorth kge evaluate -m models/mine --part valid --json")
)
@model_option
@data_option
@click.option(
    "--part",
    type=click.Choice(["train", "valid", "test"]),
    default="test",
    show_default=True,
    help="Which triples to rank.",
)
@device_option("cpu")
@click.option(
    "--exclude-anchor", is_flag=True, help="Leave the query's own entity out of the candidates."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON with all sides, rules for ties and relations, for both protocols; with "
    "--exclude-anchor, for that one alone.",
)
def evaluate(model: Path, part: str, exclude_anchor: bool, as_json: bool, **options: Any) -> None:
    """Rank the true heads and tails among all entities, filtered.

    Many published figures leave the query's own entity out of the candidates; --exclude-anchor does
    the same.
    """
    import json

    from jorth.kge.session import PROTOCOLS, all_metrics, evaluate_folder
    from jorth.kge.tables import ranking_table
    from jorth.tables import show

    chosen = PROTOCOLS[int(exclude_anchor)]
    protocols = PROTOCOLS if as_json and not exclude_anchor else (chosen,)
    with one_line_errors():
        rankings, named = evaluate_folder(model, part=part, protocols=protocols, **options)
    if as_json:
        click.echo(json.dumps(all_metrics(rankings, named.relations), indent=1))
    else:
        title = f"{part} triples" + (", without the anchor" if exclude_anchor else "")
        show(ranking_table(rankings[chosen], named.relations, title))


for command in (predict, nearest, explain, draw):
    kge.add_command(command)
