"""`jorth kge`: embed a knowledge graph, and evaluate and use the model."""

from __future__ import annotations

import json
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jorth._files import to_json
from jorth.cli.endings import INTERRUPTED, one_line
from jorth.cli.options import device_option, examples, file, folder, new_file, with_options
from jorth.terminal import visible

if TYPE_CHECKING:
    from jorth.kge import Training

OUTPUT = Path("out") / "kge"
FAITHFUL = 0.9
"""The rank correlation of distances from which a picture needs no warning."""
# those of jorth.kge.config, which is not imported for the help
presets = click.Choice(["default", "WN18RR", "FB15k-237"], case_sensitive=False)
parts = click.Choice(["train", "valid", "test"])
place, positive = click.Path(exists=True, path_type=Path), click.IntRange(1)
option = click.option
model_option = option("--model", "-m", type=folder, default=OUTPUT, help="Folder of the model.")
data_option = option("--data", type=place, help="Folder or file of triples; else the training's.")
json_option = option("--json", "as_json", is_flag=True, help="Print JSON.")
count_option = option("--count", "-k", type=positive, default=10, help="How many to print.")


@click.group(
    epilog=examples("jorth kge train --data my-graph", 'jorth kge predict Berlin capital_of "?"')
)
def kge() -> None:
    """Embed knowledge graphs by UltraE, and use the models."""


@kge.command(
    epilog=examples(
        "jorth kge train",
        "jorth kge train --data my-graph --epochs 100 -o models/mine",
        "jorth kge train --data WN18RR --preset WN18RR --device cuda",
        "jorth kge train --set lr=0.01 --set method=csdm",
    )
)
@option("--output", "-o", type=folder, default=OUTPUT, help="Folder of the model.")
@option("--data", type=place, help="Folder of train, valid and test, or one file, which is split.")
@option("--preset", type=presets, default="default", help="Settings to start from.")
@option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="A setting; repeatable.")
@device_option()
@option("--epochs", type=positive, help="Passes over the training triples.")
@option("--max-time", type=click.FloatRange(0, min_open=True), help="Seconds of training.")
@option("--seed", type=click.IntRange(0), help="Seed of everything random.")
def train(
    output: Path, data: Path | None, preset: str, changes: tuple[str, ...], **options: Any
) -> None:
    """Train a model of a knowledge graph.

    Without --data the graph is a generated one, which takes a few seconds; files end in .txt, .tsv,
    .csv or .gz. Options override the settings of the preset, --set any of jorth.kge.Config. Ctrl-C
    keeps the best model so far, and a run stopped in a folder goes on there.
    """
    from jorth.kge import Config
    from jorth.kge.config import changes_from
    from jorth.kge.session import load_graph, run
    from jorth.kge.tables import ProgressBar, ranking_table
    from jorth.terminal import show

    try:
        settings = changes_from(changes)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(one_line(error), param_hint="--set") from None
    settings |= {name: value for name, value in options.items() if value is not None}
    config = Config.preset(preset, **settings)
    triples = load_graph(data, config.seed)
    config = config.fitted(triples)
    for note in triples.notes:
        click.echo(visible(note))
    batch = f"batch_size {config.batch_size}, negatives {config.negatives}"
    click.echo(f"{triples}\n{config.epochs} epochs, {batch}")
    with ProgressBar(config.epochs) as bar:
        training, ranking = run(config, triples, data, output, bar)
    if ranking is None:
        _say_what_is_kept(training, output)
        raise SystemExit(INTERRUPTED)
    name = "generated hierarchy with cycles" if data is None else data.name
    show(ranking_table(*ranking, triples.relations, f"test triples of {name}"))
    best = f"The model is from epoch {training.best_epoch}, the best on validation."
    click.echo(f"{_sentence(training.message)} {best}")
    click.echo(f"The model, history.csv and test.json are in {output}")


def _sentence(text: str) -> str:
    return visible(f"{text[:1].upper()}{text[1:]}.".replace("max_time", "--max-time"))


def _say_what_is_kept(training: Training, output: Path) -> None:
    """Say after Ctrl-C which model the folder has, how to go on, and how to use it."""
    epoch, mrr = training.best_epoch, training.best_mrr
    best = f"The best model so far (epoch {epoch}, validation MRR {mrr:.3f})"
    if math.isnan(mrr):
        best = "The model as it was then, not yet evaluated,"
    message = f"{_sentence(training.message)} {best} is in {output}"
    go_on, use = shlex.join(["jorth", *sys.argv[1:]]), shlex.quote(str(output))
    use = f'jorth kge predict HEAD RELATION "?" -m {use}'
    click.echo(f"{message}\nGo on:  {go_on}\nUse it: {use}", err=True)


@kge.command(
    epilog=examples("jorth kge evaluate", "jorth kge evaluate -m models/mine --part valid --json")
)
@with_options(model_option, data_option)
@option("--part", type=parts, default="test", help="Which triples to rank.")
@device_option("cpu")
@option("--irreflexive", is_flag=True, help="Leave the query's entity out by the rule below.")
@json_option
def evaluate(model: Path, part: str, irreflexive: bool, as_json: bool, **options: Any) -> None:
    """Rank the true heads and tails among all entities, filtered.

    With --irreflexive the query's own entity is no candidate for relations that relate no entity to
    itself in training, and ranks last where it is the answer. This is not the standard protocol.
    --json has both protocols, every side, rule for ties and relation.
    """
    from jorth.kge.session import PROTOCOLS, all_metrics, evaluate_folder
    from jorth.kge.tables import ranking_table
    from jorth.terminal import show

    chosen = PROTOCOLS[int(irreflexive)]
    protocols = PROTOCOLS if as_json else (chosen,)
    rankings, named = evaluate_folder(model, part=part, protocols=protocols, **options)
    if as_json:
        click.echo(json.dumps(all_metrics(rankings, named.relations), indent=1))
    else:
        title = f"{part} triples" + (", by the rule on irreflexive relations" * irreflexive)
        show(ranking_table(*rankings[chosen], named.relations, title))


@kge.command(
    epilog=examples(
        'jorth kge predict Berlin capital_of "?"',
        'jorth kge predict "?" capital_of Germany -k 3 --new --json',
        'jorth kge predict Berlin "?" Germany',
    )
)
@click.argument("head")
@click.argument("relation")
@click.argument("tail", default="?")
@with_options(model_option, count_option)
@option("--new", is_flag=True, help="Leave out answers that are in the training triples.")
@with_options(data_option, json_option)
def predict(
    head: str, relation: str, tail: str, model: Path, count: int, new: bool, **options: Any
) -> None:
    """Print the best answers to a query, with probabilities.

    Ask for tails by HEAD RELATION "?", for heads by "?" RELATION TAIL, for relations by HEAD "?"
    TAIL. The probability is the softmax of the scores over all of them. The entity of the query is
    no answer if the relation relates no entity to itself in training. For a triple without "?",
    print its score and the ranks of its head and its tail.
    """
    from jorth.kge import load_model
    from jorth.kge import predict as best
    from jorth.kge.session import graph_of
    from jorth.kge.tables import answers_as_text

    query = {"head": head, "relation": relation, "tail": tail}
    asked = [name for name, key in query.items() if key == "?"]
    if len(asked) > 1:
        raise click.UsageError("one of HEAD, RELATION and TAIL may be '?', the thing asked for")
    named = load_model(model)
    known = graph_of(named, model, options["data"]).train if new else None
    given = {name: key for name, key in query.items() if name not in asked}
    found = best(named, **given, k=count, known=known)
    if options["as_json"]:
        figures = {"answers": [one._asdict() for one in found]} if asked else found._asdict()
        click.echo(to_json(query | figures, indent=1).decode())
    elif asked:
        click.echo(answers_as_text(found, asked[0]))
    else:
        ranks = f"rank {found.head_rank:g} of the head, {found.tail_rank:g} of the tail"
        click.echo(f"score {found.score:.3f}, {ranks} among {len(named.entities)} entities")


@kge.command(epilog=examples("jorth kge nearest Berlin", "jorth kge nearest Berlin -k 3 --json"))
@click.argument("entity")
@with_options(model_option, count_option, json_option)
def nearest(entity: str, model: Path, count: int, as_json: bool) -> None:
    """Print the entities nearest to an entity, by geodesic distance.

    With q > 1 there are two kinds of distances: spacelike ones are unbounded, timelike ones are
    angles.
    """
    from jorth.kge import load_model
    from jorth.kge import nearest as find

    named = load_model(model)
    found = find(named, entity, count)
    if as_json:
        click.echo(to_json([neighbour._asdict() for neighbour in found], indent=1).decode())
        return
    for name, distance, kind in found:
        shown = "" if named.model.signature.q == 1 else f"  {kind:>9}"
        click.echo(f"{distance:10.4f}{shown}  {visible(name)}")


@kge.command(epilog=examples("jorth kge explain", "jorth kge explain capital_of --json"))
@click.argument("relations", nargs=-1)
@model_option
@json_option
def explain(relations: tuple[str, ...], model: Path, as_json: bool) -> None:
    """Show how much relations boost and rotate.

    Also whether they undo themselves or others. Without RELATIONS all of them are shown.
    """
    from jorth.kge import explain as explanations_of
    from jorth.kge import load_model, tables
    from jorth.terminal import show

    found = explanations_of(load_model(model), list(relations) or None)
    if as_json:
        click.echo(tables.explanations_as_json(found))
    else:
        show(tables.explanation_table(found))


@kge.command(
    epilog=examples("jorth kge draw", "jorth kge draw --depth part_of --label Berlin -o map.svg")
)
@model_option
@option("--output", "-o", type=new_file, help="Default: entities.png beside the model.")
@option("--colours", type=file, help="File of colours: entity, tab, label or number.")
@option("--depth", help="Colour by the depth under a relation that leads upwards.")
@option("--lines", help="Draw a line for every triple of this relation.")
@option("--label", multiple=True, help="Write the name of this entity. May be repeated.")
@data_option
def draw(model: Path, output: Path | None, label: tuple[str, ...], **options: Any) -> None:
    """Draw the entities in the Poincare disc.

    The entities of the generated graph are coloured by depth, others on request.
    """
    from jorth.kge import depths, draw_entities, load_model
    from jorth.kge.answers import triples_of
    from jorth.kge.session import graph_of
    from jorth.kge.tables import read_labels

    named = load_model(model)
    depth, lines, colours = options["depth"], options["lines"], options["colours"]
    if depth is not None and colours is not None:
        raise click.UsageError("--colours and --depth exclude each other")
    if colours is None and depth is None and "data" in named.about:
        depth = "parent" if named.about["data"] is None else None
    triples = graph_of(named, model, options["data"]) if depth or lines else None
    labels: Any = None if colours is None else read_labels(colours)
    path = output or model / "entities.png"
    disc = draw_entities(
        named,
        path,
        colours=depths(triples, depth) if triples and depth else labels,
        lines=triples_of(triples, lines) if triples and lines else None,
        label=list(label) or 10,
        title="" if depth is None else f"depth under {depth}",
    )
    click.echo(
        f"{disc.kept:.0%} of the squared distances from the centroid, rank correlation "
        f"{disc.agreement:.2f}\nPicture: {path}"
    )
    if named.model.signature.n > 3 and disc.agreement < FAITHFUL:
        data = named.about.get("data")
        graph = f" --data {shlex.quote(str(data))}" if data else ""
        click.echo(
            "The picture distorts distances. For a true one, train in the plane:\n"
            f"  jorth kge train{graph} --set p=2 --set q=1 -o FOLDER"
        )
