"""Errors of a command: one line on the terminal, no traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from jorth.terminal import visible

EXPECTED = (ValueError, TypeError, OSError, ImportError, ArithmeticError, RuntimeError, MemoryError)
"""What files, options and machines can cause; anything else is a bug and keeps its traceback."""


def one_line(error: BaseException) -> str:
    """The message of an error, safe to show on a terminal."""
    return visible(" ".join(str(error).split())) or type(error).__name__


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors into one line and exit code 1."""
    try:
        yield
    except click.exceptions.Exit:  # a RuntimeError by descent
        raise
    except EXPECTED as error:
        raise click.ClickException(one_line(error)) from error
