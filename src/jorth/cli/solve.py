"""`jorth solve`: problems whose matrices are in files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from jorth.cli.endings import INTERRUPTED
from jorth.cli.options import F, examples, file, file_or_dash, folder, new_file, with_options

NOT_CONVERGED = 3

CODES = """\b
Exit codes:
  0    converged, or solved directly
  1    a file or a matrix does not fit the problem; one line says why
  2    an option is wrong
  3    not converged (a limit, stalled, no minimum, unbounded); X is written
  130  interrupted by Ctrl-C (143: SIGTERM); X is written if there was a run"""
option = click.option


def _files(command: F) -> F:
    """Add the options of every problem."""
    signs = "p,q (12,8), signs one by one (++--+), lorentz (-+++), or lorentz-last (+++-)"
    written = "File for X: .npy or .csv; a .json file beside it records the run."
    return with_options(
        option("--signature", "-s", required=True, help=f"The signs of J: {signs}."),
        option("--output", "-o", type=new_file, required=True, help=written),
        option("--key", help="Variable to read from .npz files."),
        option("--quiet", is_flag=True, help="Print nothing but errors."),
    )(command)


def _iterations(command: F) -> F:
    """Add the options of problems that are solved by iterations."""
    number, count = click.FloatRange(0), click.IntRange(0)
    method = "A method of jorth.minimize, for a single run; a wrong name lists them."
    start = "File with the start of a single run; only its component is searched."
    stop = "Stop when the gradient norm is at most this part of its scale; by default 1e-7."
    own = "Option of the method; repeatable."
    return with_options(
        option("--method", help=method),
        option("--start", type=file, help=start),
        option("--max-time", type=number, help="Seconds of solving."),
        option("--max-iterations", type=count, help="Sweeps or gradient steps to make."),
        option("--tolerance", type=number, help=stop),
        option("--seed", type=count, default=0, help="Seed of the method."),
        option("--checkpoint", type=folder, help="Folder to save to and resume from."),
        option("--option", "options", multiple=True, metavar="NAME=VALUE", help=own),
        option("--progress", is_flag=True, help="Show a line while solving."),
    )(command)


@click.group(
    epilog=examples(
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.npy",
        "jorth solve eigen A.npy -s 12,8 -o X.npy",
        after=CODES,
    )
)
def solve() -> None:
    """Solve problems whose matrices are in files.

    Files are .npy, .npz, or text: .csv, .tsv, .txt, separated by semicolons, tabs, commas or white
    space. A first line that does not begin with a number has the names of the
    columns. A record X.json is written beside X.npy.
    """


@solve.command(
    epilog=examples(
        "jorth solve eigen A.npy -s 12,8 -o X.npy",
        "jorth solve eigen rows.csv --data -s lorentz -o X.csv",
    )
)
@click.argument("matrix", type=file)
@click.option("--data", is_flag=True, help="The file holds D (m x n), dense or sparse; A = D^T D.")
@_files
def eigen(matrix: Path, data: bool, **options: Any) -> None:
    """Find the eigenvalues of A x = lambda J x.

    MATRIX holds A. X has the eigenvectors: X^T A X is diagonal and tr(X^T A X) is least. The
    eigenvalues go to X_eigenvalues.npy beside X.
    """
    _run("eigen", {"data" if data else "A": matrix}, **options)


@solve.command(
    epilog=examples(
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.npy",
        "jorth solve procrustes S.npz T.npz --key X -s 3,1 -o X.npy",
    )
)
@click.argument("source", type=file)
@click.argument("target", type=file)
@with_options(_files, _iterations)
def procrustes(source: Path, target: Path, **options: Any) -> None:
    """Align the rows of SOURCE with those of TARGET.

    This minimises 1/2m ||SOURCE X - TARGET||^2. SOURCE is m x n, dense or sparse. By default this
    is jorth.procrustes: every component of O(p, q) is searched, unless a bound shows that it holds
    nothing better. With --method or --start there is one run, which searches one component. TARGET
    may have fewer columns, k < n; then X is n x k.
    """
    _run("procrustes", {"source": source, "target": target}, **options)


@solve.command(
    epilog=examples(
        "jorth solve quadratic A.npy C.npy -s 12,8 -o X.npy",
        "jorth solve quadratic A.npy - D.npy -s ++-- -o X.npy --method gs-jobcd",
    )
)
@click.argument("a", type=file)
@click.argument("c", type=file_or_dash, required=False)
@click.argument("d", type=file, required=False)
@with_options(_files, _iterations)
def quadratic(a: Path, c: Path | None, d: Path | None, **options: Any) -> None:
    """Minimise 1/2 tr(X^T A X D) + <C, X>.

    C may be - for zero; D is the identity when omitted. There is one run, from --start or the
    identity, which searches one component of O(p, q). What is found need not be the lowest minimum.
    """
    given = {"A": a, "C": None if c == Path("-") else c, "D": d}
    matrices = {name: path for name, path in given.items() if path is not None}
    _run("quadratic", matrices, **options)


def _run(problem: Any, matrices: dict[str, Path], **options: Any) -> None:
    """Solve, write the files and print the answer; the exit code says how it ended."""
    from jorth.cli.solving import Request, run
    from jorth.solvers import Status

    command = shlex.join(["jorth", *sys.argv[1:]])
    status = run(Request(problem, matrices, command, **options))
    if status is not Status.CONVERGED:
        raise SystemExit(INTERRUPTED if status is Status.INTERRUPTED else NOT_CONVERGED)
