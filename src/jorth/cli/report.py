"""`jorth report`: the page of a benchmark."""

from __future__ import annotations

from pathlib import Path

import click

from jorth.cli import folder
from jorth.cli.errors import one_line_errors
from jorth.cli.options import examples


@click.command(
    epilog=examples("jorth report out/bench/hevp", "jorth report runs/paper/runs.jsonl -o page")
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--output", "-o", type=folder, help="Folder of the page. Default: report in that of RUN."
)
def report(run: Path, output: Path | None) -> None:
    """Make the page of a benchmark.

    RUN is a folder or file of `jorth bench`. The page, with tables, curves and comments, is a
    single HTML file; its figures are also written as PNG.
    """
    from jorth.bench.kinds import write_report

    place = output or (run if run.is_dir() else run.parent) / "report"
    with one_line_errors():
        page = write_report(run, place)
    click.echo(str(page))
