"""The command line. What a command needs is imported when it runs, so that the help is quick."""

from __future__ import annotations

import click

from jorth import __version__
from jorth.cli.demo import demo
from jorth.cli.endings import Program
from jorth.cli.kge import kge
from jorth.cli.options import examples
from jorth.cli.solve import apply, solve


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog=examples(
        "jorth demo",
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.npy",
        "jorth kge train --data my-graph",
        "jorth COMMAND --help",
    ),
)
@click.version_option(__version__, prog_name="jorth")
def main() -> None:
    """Compute with J-orthogonal matrices, the isometries of hyperbolic and ultrahyperbolic space.

    JORTH_TRACEBACK=1 shows errors with their tracebacks.
    """


for command in (apply, demo, kge, solve):
    main.add_command(command)
