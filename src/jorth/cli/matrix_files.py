"""Options of every command that reads matrices from text files."""

from __future__ import annotations

from typing import Any

import click

from jorth.cli import with_options
from jorth.storage.text_matrices import Layout

HEADER = "Whether the first line of text files has names of columns. auto decides, and says so."
INDEX = "Whether the first column of text files is an index, not data. auto decides, and says so."

choices = dict(type=click.Choice(["auto", "yes", "no"]), default="auto", show_default=True)
option: Any = click.option
text_options = with_options(
    option("--header", **choices, help=HEADER), option("--index", **choices, help=INDEX)
)


def pop_layout(options: dict[str, Any]) -> Layout:
    """The layout that the options of `text_options` describe, which are removed."""
    return Layout(header=options.pop("header"), index=options.pop("index"))
