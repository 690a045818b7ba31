"""Options that several commands share, and the examples in their help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
folder = click.Path(file_okay=False, path_type=Path)
file = click.Path(exists=True, dir_okay=False, path_type=Path)
file_or_dash = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
new_file = click.Path(dir_okay=False, path_type=Path)


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def examples(*lines: str, after: str = "") -> str:
    """Return the epilog of a command: lines to copy, and then other text."""
    block = "\n".join(f"  {line}" for line in lines)
    return f"\b\nExamples:\n{block}\n\n{after}".strip()


def device_option(default: str | None = None) -> Callable[[F], F]:
    """Return the option --device, which is refused unless torch has the device here."""
    text = "Where to compute: cpu, cuda, cuda:1, mps."
    return click.option("--device", default=default, callback=_available, help=text)


def _available(_ctx: click.Context, _option: click.Parameter, value: str | None) -> Any:
    if value is not None:
        from jorth._inputs import check_device

        try:
            check_device(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return value
