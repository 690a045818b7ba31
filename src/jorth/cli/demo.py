"""`jorth demo`."""

from __future__ import annotations

from pathlib import Path

import click

from jorth.cli.errors import one_line_errors


@click.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Folder for the picture.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
def demo(output: Path, seed: int) -> None:
    """Solve two problems with known answers by the three strategies; a table and a picture, in under a minute."""
    from jorth.demo import run

    with one_line_errors():
        run(output, seed)
