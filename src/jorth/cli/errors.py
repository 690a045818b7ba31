"""Errors of a command, shown in one line without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from jorth.terminal import visible

EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, RuntimeError, MemoryError)
"""Errors that files, options and machines cause; others are bugs and show a traceback."""


def one_line(error: BaseException) -> str:
    """The message of an error, safe to show on a terminal."""
    return visible(" ".join(str(error).split())) or type(error).__name__


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Show expected errors in one line, with exit code 1."""
    try:
        yield
    except click.exceptions.Exit:  # which is a RuntimeError
        raise
    except EXPECTED as error:
        raise click.ClickException(one_line(error)) from error
