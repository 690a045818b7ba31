"""`jorth report`: the page of a benchmark."""

from __future__ import annotations

from pathlib import Path

import click

from jorth.cli import folder
from jorth.cli.errors import one_line_errors


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=folder, help="Default: report in the folder of the run.")
def report(run: Path, output: Path | None) -> None:
    """Write the page of RUN, a folder or file of `jorth bench`, with tables, curves and comments.

    The page is a single HTML file; its figures are also written as PNG.
    """
    from jorth.bench.kinds import write_report

    place = output or (run if run.is_dir() else run.parent) / "report"
    with one_line_errors():
        page = write_report(run, place)
    click.echo(str(page))
