"""Notes on the standard error: lines that fit the terminal, and why the first run waits."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import click

from jorth.terminal import before_compiling, visible

COMPILING = "compiling for this computer, once for each kind of problem; it may take a minute"


def tell(text: str) -> None:
    """Show a note; on a terminal it is wrapped, elsewhere it is one line."""
    line = f"note: {visible(text)}"
    if _on_terminal():
        width = max(40, shutil.get_terminal_size().columns)
        line = textwrap.fill(
            line, width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        line = f"\r\x1b[2K{line}"  # over a line of progress, which is drawn again below
    click.echo(line, err=True)


@contextmanager
def telling_of_compilation() -> Iterator[None]:
    """Say once on a terminal that code is compiled, unless --quiet is given."""
    told = False

    def once() -> None:
        nonlocal told
        context = click.get_current_context(silent=True)
        quiet = context is not None and bool(context.params.get("quiet"))
        if not told and not quiet and _on_terminal():
            tell(COMPILING)
        told = True

    before_compiling.append(once)
    try:
        yield
    finally:
        before_compiling.remove(once)


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
