"""The command line. Each command is a file here that is loaded when it is used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from jorth import __version__
from jorth.cli.errors import INTERRUPTED, ending_the_program, suggestion
from jorth.cli.notes import telling_of_compilation

F = TypeVar("F", bound=Callable[..., Any])
folder = click.Path(file_okay=False, path_type=Path)
# name: module and the click command in it
COMMANDS = {
    "demo": "jorth.cli.demo:demo",
    "kge": "jorth.cli.kge:kge",
    "solve": "jorth.cli.solve:solve",
}

EXAMPLES = """\b
Examples:
  jorth demo
  jorth solve procrustes source.csv target.csv -s lorentz -o X.npy
  jorth kge train --data my-graph
  jorth COMMAND --help"""


class Group(click.Group):
    """A group that suggests a command where the name of one is wrong."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = suggestion(name, known) or f" There are {', '.join(known)}."
            ctx.fail(f"No such command {name!r}.{near}")
        return super().resolve_command(ctx, args)


class LazyGroup(Group):
    """A group that imports a command only when it is needed; ``lazy`` has "module:attribute"."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return None
        module, attribute = self.lazy[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


class Program(LazyGroup):
    """The command line as a whole: however a command ends, there is no traceback."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """The same as in `click.Command`; ``standalone_mode=False`` leaves errors to the caller."""
        standalone = options.pop("standalone_mode", True)
        run: Any = super().main
        if not standalone:
            return run(*arguments, standalone_mode=False, **options)
        with ending_the_program() as ctrl_c, telling_of_compilation():
            code = run(*arguments, standalone_mode=False, **options)
            code = ctrl_c.code if code == INTERRUPTED else code
        sys.exit(code if isinstance(code, int) else 0)


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(
    cls=Program,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
@click.version_option(__version__, prog_name="jorth")
def main() -> None:
    """Compute with J-orthogonal matrices, the isometries of hyperbolic and ultrahyperbolic space.

    JORTH_TRACEBACK=1 shows errors with their tracebacks.
    """
