"""`jorth data`: list the data sets, download them, show what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from jorth.cli import Group, folder
from jorth.cli.errors import one_line_errors
from jorth.cli.options import examples

MAX_BYTES = "Largest size of the file. Default: $JORTH_MAX_BYTES or 2^31."
folder_option: Callable[[Any], Any] = click.option(
    "--folder",
    type=folder,
    help="Folder of the data sets. Default: $JORTH_DATA, or the cache of jorth.",
)


@click.group(
    cls=Group,
    epilog=examples("jorth data list", "jorth data fetch w1a --trust", "jorth data show w1a"),
)
def data() -> None:
    """List, download and inspect the data sets of the paper."""


@data.command("list", epilog=examples("jorth data list", "jorth data list --folder data"))
@folder_option
def list_sets(folder: Path | None) -> None:
    """List the data sets: size, file or how to get it, terms of use."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from jorth.datasets import REGISTRY
    from jorth.datasets.files import data_folder, find

    with one_line_errors():
        place = data_folder(folder)
    title = f"Data sets in {escape(str(place))}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("size", no_wrap=True, justify="right")
    table.add_column("found or to get by")
    table.add_column("terms")
    for entry in REGISTRY.values():
        size = f"{entry.shape[0]} x {entry.shape[1]}" if entry.shape else "unknown"
        path = find(entry, place)
        how = "jorth data fetch" if entry.url else "no public address"
        table.add_row(entry.name, size, f"[bold]{path.name}[/bold]" if path else how, entry.terms)
    console = Console()
    console.print(table)
    console.print("The size is that of the complete set; a file may hold less.")


@data.command(
    epilog=examples(
        "jorth data fetch w1a --trust",
        "jorth data fetch w1a --url https://example.org/w1a.bz2 --sha256 DIGEST",
    )
)
@click.argument("name")
@folder_option
@click.option("--url", help="Address to download from; its ending gives the format.")
@click.option("--sha256", help="The checksum that the file must have.")
@click.option("--trust", is_flag=True, help="Accept a first download without a checksum.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for an answer.")
@click.option(
    "--max-time", default=3600.0, show_default=True, help="Seconds for the whole download."
)
@click.option("--max-bytes", type=click.IntRange(1), help=MAX_BYTES)
def fetch(name: str, **options: Any) -> None:
    """Download the data set NAME and check it.

    This needs a checksum, or --trust the first time.
    """
    from jorth.datasets import fetch as fetch_set
    from jorth.datasets.download import recorded

    with one_line_errors():
        path = fetch_set(name, **options)
        digest = recorded(path)
    click.echo(path)
    click.echo(f"sha256 {digest}" if digest else "found there; no checksum is recorded for it")


@data.command(epilog=examples("jorth data show mnist", "jorth data show tdt2 --sparse"))
@click.argument("name")
@folder_option
@click.option("--sparse", is_flag=True, help="Look for sparse files first.")
def show(name: str, folder: Path | None, sparse: bool) -> None:
    """Show shape, sparsity, range and norm of the data set NAME."""
    from jorth.datasets.loading import summarise

    with one_line_errors():
        lines = summarise(name, folder=folder, sparse_first=sparse)
    for label, text in lines.items():
        click.echo(f"{label:<12}{text}")
