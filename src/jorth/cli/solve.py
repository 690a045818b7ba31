"""`jorth solve`: problems whose matrices are in files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from jorth.cli import Group, folder, with_options
from jorth.cli.errors import EXPECTED, INTERRUPTED, one_line
from jorth.cli.notes import tell
from jorth.cli.options import DIRECT, EVERY, examples

NOT_CONVERGED = 3

CODES = """\b
Exit codes:
  0    converged, or solved directly
  1    a file or a matrix does not fit the problem; one line says why
  2    an option is wrong
  3    not converged (a limit, stalled, no minimum, unbounded); X is written
  130  interrupted by Ctrl-C (143: SIGTERM); X is written if there was a run"""

# as in jorth.solvers, which is not imported here because it loads torch
METHODS = (
    "auto, gs-jobcd, j-jobcd, vr-j-jobcd, umcm, admm, csdm, exponential, riemannian-sd, "
    "riemannian-cg, riemannian-lbfgs, riemannian-newton"
)

SIGNATURE = (
    "The signs of J: p,q (12,8), signs one by one (++--+), lorentz or lorentz-first (-+++), "
    "lorentz-last (+++-), or a file of +1 and -1."
)
KEY = "Variable to read from a .npz file; once for all such files, or once for each."
OUTPUT = "File for X: .npy or .csv; a .json file beside it records the run."
TOLERANCE = "Stop when the gradient norm is at most this part of its scale."
START = (
    "File with the start; only its component is searched. Default: the identity, or with "
    "every-component a start in each component."
)
OPTION = "Option of the method; repeatable."

in_file = click.Path(exists=True, dir_okay=False, path_type=Path)
in_file_or_dash = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
out_file = click.Path(dir_okay=False, path_type=Path)
count = click.IntRange(min=0)


class Recorded(click.Command):
    """A command that notes its command line for the record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["command"] = shlex.join(["jorth", "solve", str(self.name), *args])
        return super().parse_args(ctx, args)


def _at_least_zero(_ctx: click.Context, _parameter: click.Parameter, value: Any) -> Any:
    if value is not None and not value >= 0:  # also NaN
        raise click.BadParameter(f"it must be a number of at least 0, got {value}")
    return value


def _common(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of every problem; ``default`` is the default method."""
    methods = f"{default}, or a method for one run: {METHODS}."
    shown = dict(show_default=True)
    several = dict(multiple=True)
    number = dict(type=float, callback=_at_least_zero)
    option: Any = click.option
    return with_options(
        option("--signature", "-s", required=True, help=SIGNATURE),
        option("--output", "-o", type=out_file, required=True, help=OUTPUT),
        option("--method", default=default, **shown, help=methods),
        option("--start", type=in_file, help=START),
        option("--max-time", **number, help="Seconds of solving."),
        option("--max-iterations", type=count, help="Sweeps or gradient steps to make."),
        option("--tolerance", **number, default=1e-7, **shown, help=TOLERANCE),
        option("--seed", type=count, default=0, **shown, help="Seed of everything random."),
        option("--checkpoint", type=folder, help="Folder to save to and resume from."),
        option("--key", "keys", **several, help=KEY),
        option("--option", "options", **several, metavar="NAME=VALUE", help=OPTION),
        option("--progress", is_flag=True, help="Show a line while solving."),
        option("--quiet", is_flag=True, help="Print nothing but errors."),
    )


@click.group(
    cls=Group,
    epilog=examples(
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.npy",
        "jorth solve eigen A.npy -s 12,8 -o X.npy",
        after=CODES,
    ),
)
def solve() -> None:
    """Solve problems whose matrices are in files.

    Files are .npy, .npz, or text: .csv, .tsv, .txt, also with .gz, separated by semicolons, tabs,
    commas or white space. A first line without any number has the names of the columns.
    A record X.json is written beside X.npy.
    """


@solve.command(
    cls=Recorded,
    epilog=examples(
        "jorth solve eigen A.npy -s 12,8 -o X.npy",
        "jorth solve eigen rows.csv --data -s lorentz -o X.csv",
        "jorth solve eigen A.npy -s 12,8 -o X.npy --method gs-jobcd --max-time 60",
        after=CODES,
    ),
)
@click.argument("matrix", type=in_file)
@click.option("--data", is_flag=True, help="The file holds D (m x n), dense or sparse; A = D^T D.")
@_common(DIRECT)
@click.pass_context
def eigen(ctx: click.Context, /, matrix: Path, data: bool, **common: Any) -> None:
    """Find the eigenvalues of A x = lambda J x.

    MATRIX holds A. X has the eigenvectors: X^T A X is diagonal and tr(X^T A X) is least. The
    eigenvalues go to X_eigenvalues.npy beside X. Iterative methods find the same trace, but no
    eigenvalues, and their X need not diagonalise A.
    """
    _run(ctx, "eigen", {"data" if data else "A": matrix}, **common)


@solve.command(
    cls=Recorded,
    epilog=examples(
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.npy",
        "jorth solve procrustes S.npz T.npz --key X -s 3,1 -o X.npy",
        after=CODES,
    ),
)
@click.argument("source", type=in_file)
@click.argument("target", type=in_file)
@_common(EVERY)
@click.pass_context
def procrustes(ctx: click.Context, /, source: Path, target: Path, **common: Any) -> None:
    """Align the rows of SOURCE with those of TARGET.

    This minimises 1/2m ||SOURCE X - TARGET||^2. SOURCE is m x n, dense or sparse. By default this
    is jorth.procrustes: every component of O(p, q) is searched, unless a bound shows that it holds
    nothing better. With --method or --start there is one run, which searches one component. TARGET
    may have fewer columns, k < n; then X is n x k.
    """
    _run(ctx, "procrustes", {"source": source, "target": target}, **common)


@solve.command(
    cls=Recorded,
    epilog=examples(
        "jorth solve quadratic A.npy C.npy -s 12,8 -o X.npy",
        "jorth solve quadratic A.npy - D.npy -s ++-- -o X.npy --method gs-jobcd",
        after=CODES,
    ),
)
@click.argument("a", type=in_file)
@click.argument("c", type=in_file_or_dash, required=False)
@click.argument("d", type=in_file, required=False)
@_common(EVERY)
@click.pass_context
def quadratic(
    ctx: click.Context, /, a: Path, c: Path | None, d: Path | None, **common: Any
) -> None:
    """Minimise 1/2 tr(X^T A X D) + <C, X>.

    C may be - for zero; D is the identity when omitted. By default there is one run from each
    component of O(p, q), or a single one if all components are alike; limits apply to each run.
    With --method or --start there is one run, which searches one component. What is found need not
    be the lowest minimum.
    """
    given = {"A": a, "C": None if c == Path("-") else c, "D": d}
    matrices = {name: path for name, path in given.items() if path is not None}
    _run(ctx, "quadratic", matrices, **common)


def _run(
    ctx: click.Context, problem: Any, matrices: dict[str, Path], *, quiet: bool, **common: Any
) -> None:
    """Solve, write the files and print the table; the exit code says how it ended."""
    from jorth.cli.solve_report import show, write
    from jorth.cli.solving import OptionError, Request, solve
    from jorth.solvers import Interrupt, Status

    limits = {name: common.pop(name) for name in ("max_iterations", "max_time")}
    given = ctx.get_parameter_source("method") is not ParameterSource.DEFAULT
    if common["start"] is not None and problem != "eigen" and not given:
        common["method"] = "auto"  # a start means a run from there
    request = Request(problem, matrices, limits=limits, command=ctx.meta["command"], **common)
    try:
        with ExitStack() as stack:
            # from here on there are results to save, so Ctrl-C only ends the iterations
            solved = solve(
                request,
                before_iterations=lambda: stack.enter_context(Interrupt()).hold(),
                tell=(lambda note: None) if quiet else tell,
            )
            stack.enter_context(Interrupt()).hold()
            write(request, solved)
    except KeyboardInterrupt:
        click.echo("Interrupted before everything was written.", err=True)
        ctx.exit(INTERRUPTED)
    except OptionError as error:
        raise click.UsageError(one_line(error), ctx) from error
    except EXPECTED as error:
        raise click.ClickException(one_line(error)) from error
    status = solved.result.status
    if not quiet:
        show(request, solved)
    if status is not Status.CONVERGED:
        ctx.exit(INTERRUPTED if status is Status.INTERRUPTED else NOT_CONVERGED)
