"""`jorth kge`: embed a knowledge graph, evaluate the model, ask it."""

from __future__ import annotations

from pathlib import Path

import click

from jorth.cli.errors import one_line_errors
from jorth.terminal import visible

folder = click.Path(file_okay=False, path_type=Path)
OUTPUT = Path("out") / "kge"
seconds = click.FloatRange(0, min_open=True)


@click.group()
def kge() -> None:
    """Knowledge graphs by UltraE: train, evaluate, predict."""


@kge.command()
@click.argument(
    "config", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--output",
    "-o",
    type=folder,
    default=OUTPUT,
    show_default=True,
    help="Folder; a second call goes on.",
)
@click.option(
    "--data",
    type=folder,
    help="Folder of train, valid, test (.txt or .tsv), in place of the file's.",
)
@click.option("--device", help="cpu, cuda, cuda:1, in place of the file's.")
@click.option("--epochs", type=click.IntRange(1), help="In place of the file's.")
@click.option("--max-time", type=seconds, help="Seconds of training, in place of the file's.")
@click.option("--seed", type=click.IntRange(0), help="In place of the file's.")
def train(
    config: Path | None,
    output: Path,
    data: Path | None,
    device: str | None,
    epochs: int | None,
    max_time: float | None,
    seed: int | None,
) -> None:
    """Train by the settings of a TOML file; without one, on a generated graph, in ten seconds."""
    from rich.console import Console

    from jorth.kge.display import ProgressBar, ranking_table
    from jorth.kge.session import Request, changed, read_request, run

    with one_line_errors():
        request = Request() if config is None else read_request(config)
        request = changed(
            request, data=data, device=device, epochs=epochs, max_time=max_time, seed=seed
        )
        with ProgressBar(request.config.epochs) as bar:
            outcome = run(request, output, callback=bar)
    console = Console()
    console.print(
        ranking_table(outcome.test, outcome.triples.relations, f"test triples of {request.name}")
    )
    click.echo(
        f"{visible(outcome.training.message)}; the model is that of epoch {outcome.training.best_epoch}."
    )
    click.echo(f"Model, history.csv, history.png and test.json are in {output}")


@kge.command()
@click.option(
    "--model",
    "-m",
    type=folder,
    default=OUTPUT,
    show_default=True,
    help="Folder of a trained model.",
)
@click.option(
    "--data", type=folder, help="Folder of the triples. Default: those it was trained on."
)
@click.option(
    "--part", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True
)
@click.option("--device", default="cpu", show_default=True)
@click.option(
    "--json", "as_json", is_flag=True, help="All figures as JSON: sides, rules for ties, relations."
)
def evaluate(model: Path, data: Path | None, part: str, device: str, as_json: bool) -> None:
    """Rank the true heads and tails among all entities, filtered."""
    import json

    from rich.console import Console

    from jorth.kge.display import ranking_table
    from jorth.kge.session import evaluate_folder, figures

    with one_line_errors():
        ranking, named = evaluate_folder(model, data=data, part=part, device=device)
    if as_json:
        click.echo(json.dumps(figures(ranking, named.relations), indent=1))
    else:
        Console().print(ranking_table(ranking, named.relations, f"{part} triples"))


@kge.command()
@click.argument("head")
@click.argument("relation")
@click.argument("tail", default="?")
@click.option(
    "--model",
    "-m",
    type=folder,
    default=OUTPUT,
    show_default=True,
    help="Folder of a trained model.",
)
@click.option("--count", "-k", type=click.IntRange(1), default=10, show_default=True)
def predict(head: str, relation: str, tail: str, model: Path, count: int) -> None:
    """Print the best entities in the place of the "?": predict HEAD RELATION "?" or predict "?" RELATION TAIL."""
    from jorth.kge.export import load_model
    from jorth.kge.session import answers

    with one_line_errors():
        found = answers(load_model(model), head, relation, tail, count)
    for name, score in found:
        click.echo(f"{score:10.3f}  {visible(name)}")
