"""`jorth kge predict`, `nearest`, `explain` and `draw`: what a trained model is good for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jorth.cli import folder, with_options
from jorth.cli.errors import one_line_errors
from jorth.cli.options import examples
from jorth.terminal import visible

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
PICTURE = click.Path(dir_okay=False, path_type=Path)
OUTPUT = Path("out") / "kge"
model_option = click.option(
    "--model", "-m", type=folder, default=OUTPUT, show_default=True, help="Folder of the model."
)
DATA = click.Path(path_type=Path)
data_option = click.option(
    "--data", type=DATA, help="Folder or file of the triples. Default: those of the training."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
count_option = click.option(
    "--count",
    "-k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="How many entities to print.",
)


@click.command(
    epilog=examples(
        'jorth kge predict Berlin capital_of "?"',
        'jorth kge predict "?" capital_of Germany -k 3 --new',
        "jorth kge predict --queries queries.tsv --json -m models/mine",
    )
)
@click.argument("head", required=False)
@click.argument("relation", required=False)
@click.argument("tail", default="?")
@click.option("--queries", type=FILE, help="File of queries: head, relation, tail; ? asks.")
@with_options(model_option, count_option)
@click.option("--new", is_flag=True, help="Leave out answers that are in the training triples.")
@with_options(data_option, json_option)
def predict(head: str | None, relation: str | None, tail: str, **options: Any) -> None:
    """Print the best answers to a query, with probabilities.

    Ask for tails by HEAD RELATION "?", for heads by "?" RELATION TAIL, or for both in a file of
    queries. The probability is the softmax of the scores over all entities.
    """
    from jorth.kge import load_model, tables
    from jorth.kge.session import graph_of

    with one_line_errors():
        queries = [] if options["queries"] is None else tables.read_queries(options["queries"])
        if head is not None and relation is not None:
            tables.check_query((head, relation, tail))
            queries.append((head, relation, tail))
        elif head is not None or not queries:
            raise click.UsageError("give HEAD and RELATION, or queries in a file by --queries")
        named = load_model(options["model"])
        graph = graph_of(named, options["model"], options["data"]) if options["new"] else None
        known = None if graph is None else graph.train
        found = tables.answer_queries(named, queries, options["count"], known)
    if options["as_json"]:
        click.echo(tables.answers_as_json(queries, found))
    else:
        click.echo(tables.answers_as_text(queries, found))


@click.command(epilog=examples("jorth kge nearest Berlin", "jorth kge nearest Berlin -k 3 --json"))
@click.argument("entity")
@with_options(model_option, count_option, json_option)
def nearest(entity: str, model: Path, count: int, as_json: bool) -> None:
    """Print the entities nearest to an entity, by geodesic distance.

    With q > 1 there are two kinds of distances: spacelike ones are unbounded, timelike ones are
    angles.
    """
    from jorth.kge import load_model, tables
    from jorth.kge import nearest as find

    with one_line_errors():
        named = load_model(model)
        found = find(named, entity, count)
    if as_json:
        click.echo(tables.as_json([neighbour._asdict() for neighbour in found]))
        return
    for name, distance, kind in found:
        shown = "" if named.model.signature.q == 1 else f"  {kind:>9}"
        click.echo(f"{distance:10.4f}{shown}  {visible(name)}")


@click.command(
    epilog=examples("jorth kge explain", "jorth kge explain capital_of -o relations.png")
)
@click.argument("relations", nargs=-1)
@model_option
@click.option("--output", "-o", type=PICTURE, help="Draw a picture: .png, .pdf or .svg.")
@json_option
def explain(relations: tuple[str, ...], model: Path, output: Path | None, as_json: bool) -> None:
    """Show how much relations boost and rotate.

    Also whether they undo themselves or others. Without RELATIONS all of them are shown.
    """
    from jorth.kge import draw_relations, load_model, tables
    from jorth.kge import explain as explanations_of
    from jorth.tables import show

    with one_line_errors():
        named = load_model(model)
        chosen = list(relations) or None
        found = explanations_of(named, chosen)
        if output is not None:
            draw_relations(named, output, chosen)
    if as_json:
        click.echo(tables.explanations_as_json(found))
    else:
        show(tables.explanation_table(found))
        if output is not None:
            click.echo(f"Picture: {output}")


@click.command(
    epilog=examples("jorth kge draw", "jorth kge draw --depth part_of --label Berlin -o map.svg")
)
@model_option
@click.option(
    "--output", "-o", type=PICTURE, help="The picture. Default: entities.png beside the model."
)
@click.option("--colours", type=FILE, help="File of colours: entity, tab, label or number.")
@click.option("--depth", help="Colour by the depth under a relation that leads upwards.")
@click.option("--lines", help="Draw a line for every triple of this relation.")
@click.option("--label", multiple=True, help="Write the name of this entity. May be repeated.")
@data_option
def draw(model: Path, output: Path | None, label: tuple[str, ...], **options: Any) -> None:
    """Draw the entities in the Poincare disc.

    The entities of the generated graph are coloured by depth, others on request.
    """
    from jorth.kge import depths, draw_entities, load_model
    from jorth.kge.predict import triples_of
    from jorth.kge.session import graph_of
    from jorth.kge.tables import read_labels

    with one_line_errors():
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
