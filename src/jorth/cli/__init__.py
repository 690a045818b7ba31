"""The command line. A command is loaded when it is named; to add one, write it in `jorth.cli` and name it here."""

from __future__ import annotations

import importlib

import click

from jorth import __version__

# name: module and the click command in it
COMMANDS = {
    "bench": "jorth.cli.bench:bench",
    "data": "jorth.cli.data:data",
    "demo": "jorth.cli.demo:demo",
    "kge": "jorth.cli.kge:kge",
    "report": "jorth.cli.report:report",
    "solve": "jorth.cli.solve:solve",
}


class LazyGroup(click.Group):
    """A group that imports a command of COMMANDS only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jorth")
def main() -> None:
    """Compute with J-orthogonal matrices, the isometries of hyperbolic and ultrahyperbolic space."""
