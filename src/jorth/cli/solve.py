"""`jorth solve`: problems whose matrices are in files."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from jorth.cli.errors import EXPECTED, one_line

if TYPE_CHECKING:
    from jorth.file_problems import Request

NOT_CONVERGED = 3
INTERRUPTED = 130

CODES = """\b
Exit codes:
  0    converged, or solved directly
  1    a file or a matrix is not what the problem needs; one line says why
  2    an option is wrong
  3    ended without convergence (a limit, stalled, unbounded); X is written
  130  interrupted by Ctrl-C; X is written where there was a run"""

METHODS = "gs-jobcd, j-jobcd, vr-j-jobcd, umcm, admm, csdm, exponential, riemannian-sd, riemannian-cg, riemannian-lbfgs"

Problem = Literal["eigen", "procrustes", "quadratic"]
in_file = click.Path(exists=True, dir_okay=False, path_type=Path)
out_file = click.Path(dir_okay=False, path_type=Path)


class Recorded(click.Command):
    """A command that remembers its words, for the record."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the words, then parse them."""
        ctx.meta["words"] = shlex.join(["jorth", "solve", str(self.name), *args])
        return super().parse_args(ctx, args)


def _at_least_zero(
    ctx: click.Context, parameter: click.Parameter, value: float | None
) -> float | None:
    if value is not None and not value >= 0:  # NaN too
        raise click.BadParameter(f"it must be a number of at least 0, got {value}")
    return value


def _common(default_method: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that every problem has."""
    direct = "direct (jorth.eigh), " if default_method == "direct" else ""
    options: list[Callable[[Any], Any]] = [
        click.option(
            "--signature",
            "-s",
            required=True,
            help="The signs of J: p,q (12,8), signs one by one (++--+), lorentz or lorentz-first (-+++), lorentz-last "
            "(+++-), or a file of +1 and -1.",
        ),
        click.option(
            "--output",
            "-o",
            type=out_file,
            required=True,
            help="X: .npy, .csv or .mat; its record is .json.",
        ),
        click.option(
            "--method",
            "methods",
            multiple=True,
            default=[default_method],
            show_default=True,
            help=f"A method, or several for a chain: repeated, or with commas. {direct}{METHODS}.",
        ),
        click.option("--start", type=in_file, help="File with the start. Default: the identity."),
        click.option("--max-time", type=float, callback=_at_least_zero, help="Seconds of solving."),
        click.option(
            "--max-iterations", type=click.IntRange(min=0), help="Sweeps or gradient steps."
        ),
        click.option("--max-evaluations", type=click.IntRange(min=0), help="Gradients."),
        click.option(
            "--tolerance",
            type=float,
            default=1e-6,
            show_default=True,
            callback=_at_least_zero,
            help="Stop when the gradient norm is at most this.",
        ),
        click.option(
            "--seed",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Of everything random.",
        ),
        click.option(
            "--checkpoint",
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder to save to and resume from.",
        ),
        click.option("--float32", is_flag=True, help="Compute in single precision."),
        click.option(
            "--key",
            "keys",
            multiple=True,
            help="Variable of a .npz or .mat file that holds several; once for all such files, or once for each.",
        ),
        click.option(
            "--option",
            "options",
            multiple=True,
            metavar="NAME=VALUE",
            help="Of the method; repeatable.",
        ),
        click.option(
            "--history", type=out_file, help="A .csv file for the history, one row an iteration."
        ),
        click.option("--progress", is_flag=True, help="Show a line while solving."),
        click.option("--quiet", is_flag=True, help="Print nothing but errors."),
    ]
    return lambda command: reduce(
        lambda decorated, option: option(decorated), reversed(options), command
    )


@click.group(epilog=CODES)
def solve() -> None:
    """Solve problems over X^T J X = J whose matrices are in files.

    Files are .npy, .npz, .mat (up to -v7), or text: .csv, .tsv, .txt with semicolons, commas or white space; a first
    line without numbers is a header. X.npy gets a record beside it, X.json.
    """


@solve.command(cls=Recorded, epilog=CODES)
@click.argument("matrix", type=in_file)
@click.option(
    "--data", is_flag=True, help="The file holds D (m x n), dense or sparse, and A = D^T D."
)
@_common("direct")
@click.pass_context
def eigen(ctx: click.Context, /, matrix: Path, data: bool, **common: Any) -> None:
    """Eigenvalues of A x = lambda J x, and the X that makes X^T A X diagonal and tr(X^T A X) least.

    MATRIX holds A. The eigenvalues go to X_eigenvalues.npy beside X. Iterative methods find the same trace, but an X
    that need not be diagonalising, and no eigenvalues.
    """
    _run(ctx, "eigen", {"data" if data else "A": matrix}, **common)


@solve.command(cls=Recorded, epilog=CODES)
@click.argument("source", type=in_file)
@click.argument("target", type=in_file)
@_common("riemannian-lbfgs")
@click.pass_context
def procrustes(ctx: click.Context, /, source: Path, target: Path, **common: Any) -> None:
    """Align SOURCE (m x n, dense or sparse) with TARGET (m x n): min 1/2m ||SOURCE X - TARGET||^2."""
    _run(ctx, "procrustes", {"source": source, "target": target}, **common)


@solve.command(cls=Recorded, epilog=CODES)
@click.argument("a", type=in_file)
@click.argument(
    "c",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    required=False,
)
@click.argument("d", type=in_file, required=False)
@_common("riemannian-lbfgs")
@click.pass_context
def quadratic(
    ctx: click.Context, /, a: Path, c: Path | None, d: Path | None, **common: Any
) -> None:
    """Minimise 1/2 tr(X^T A X D) + <C, X>. A - in place of C stands for C = 0; D is the identity when omitted."""
    given = {"A": a, "C": None if c == Path("-") else c, "D": d}
    _run(
        ctx, "quadratic", {name: path for name, path in given.items() if path is not None}, **common
    )


def _run(
    ctx: click.Context, problem: Problem, matrices: dict[str, Path], *, quiet: bool, **common: Any
) -> None:
    """Solve, write, print; the exit code says how it ended."""
    from jorth.file_problems import OptionError, Request, solve, write
    from jorth.solvers import Interrupt, Status

    limits = {name: common.pop(name) for name in ("max_iterations", "max_time", "max_evaluations")}
    methods = tuple(name.strip() for text in common.pop("methods") for name in text.split(","))
    request = Request(
        problem, matrices, methods=methods, limits=limits, command=ctx.meta["words"], **common
    )
    try:
        with ExitStack() as home:
            # from here on there are results to bring home, and Ctrl-C ends the iterations alone
            outcome = solve(
                request, before_iterations=lambda: home.enter_context(Interrupt()).hold()
            )
            home.enter_context(Interrupt()).hold()
            write(request, outcome)
    except KeyboardInterrupt:
        click.echo("Interrupted before all was written.", err=True)
        ctx.exit(INTERRUPTED)
    except OptionError as error:
        raise click.UsageError(one_line(error), ctx) from error
    except EXPECTED as error:
        raise click.ClickException(one_line(error)) from error
    if not quiet:
        _print(request, outcome)
    if outcome.result.status is not Status.CONVERGED:
        ctx.exit(INTERRUPTED if outcome.result.status is Status.INTERRUPTED else NOT_CONVERGED)


def _print(request: Request, outcome: Any) -> None:
    from rich.console import Console

    from jorth.file_problems import table

    Console().print(table(request, outcome))
    click.echo(outcome.result.message)
    click.echo(f"written: {', '.join(str(path) for path in request.outputs().values())}")
