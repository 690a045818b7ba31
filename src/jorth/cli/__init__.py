"""The command line. Each command is a file here, named in a table, loaded when it is used."""

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
    """A group that imports a command of COMMANDS only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jorth")
def main() -> None:
    """Compute with J-orthogonal matrices: isometries of hyperbolic and ultrahyperbolic space."""
