"""`jorth solve` and `jorth apply`: the table of problems whose matrices are in files."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from jorth.cli.endings import INTERRUPTED
from jorth.cli.options import examples, file, file_or_dash, folder, new_file, with_options

NOT_CONVERGED = 3
option = click.option
CODES = """\b
Exit codes:
  0    converged, or solved directly
  1    a file or a matrix does not fit the problem; one line says why
  2    an option is wrong
  3    not converged (a limit, stalled, no minimum, unbounded); X is written
  130  interrupted by Ctrl-C (143: SIGTERM); X is written if there was a run"""

signs = "p,q (12,8), signs one by one (++--+), lorentz (-+++), or lorentz-last (+++-)"
signature = option("--signature", "-s", required=True, help=f"The signs of J: {signs}.")
output = option(
    "--output", "-o", type=new_file, required=True, help="Output: .npy, .csv, .tsv or .txt."
)
shared = [
    option("--key", help="Variable to read from .npz files."),
    option("--quiet", is_flag=True, help="Print nothing but errors."),
]
choices = click.Choice(["error", "drop"])
gaps = option("--missing", type=choices, default="error", help="What to do with incomplete rows.")
method = "A method of jorth.minimize, for a single run; a wrong name lists them."
start = "File with the start of a single run; only its component is searched."
stop = "Stop when the gradient norm is at most this part of its scale; by default 1e-7."
number, count = click.FloatRange(0), click.IntRange(0)
iterations = [
    option("--method", help=method),
    option("--start", type=file, help=start),
    option("--max-time", type=number, help="Seconds of solving."),
    option("--max-iterations", type=count, help="Sweeps or gradient steps to make."),
    option("--tolerance", type=number, help=stop),
    option("--seed", type=count, default=0, help="Seed of the method."),
    option("--checkpoint", type=folder, help="Folder to save to and resume from."),
    option("--progress", is_flag=True, help="Show a line while solving."),
]


class Problem(NamedTuple):
    """A command of `jorth solve`; `jorth.cli.solving` has the function of the same name.

    The arguments are matrices by their names in the formulas, in brackets if they may be omitted.
    Names of files beside the output end in the ``outputs``.
    """

    arguments: str
    outputs: tuple[str, ...]
    options: list[Any]
    examples: tuple[str, ...]
    help: str


PROBLEMS = {
    "eigen": Problem(
        "A",
        ("eigenvalues",),
        [],
        ("A.npy -s 12,8 -o X.npy",),
        "Find the eigenvalues of A x = lambda J x.\n\nX has the eigenvectors: X^T A X is diagonal "
        "and tr(X^T A X) is least. The eigenvalues go to X_eigenvalues.npy beside X.",
    ),
    "svd": Problem(
        "G",
        ("singular_values", "U"),
        [gaps],
        ("G.npy -s 3,1 -o X.npy",),
        "Find the hyperbolic singular values of G (m x n).\n\nG X = U diag(S) with J-orthogonal X. "
        "S and U go to X_singular_values.npy and X_U.npy beside X.",
    ),
    "qr": Problem(
        "A",
        ("R",),
        [],
        ("A.npy -s 20,10 -o X.npy",),
        "Factorise A = X R with J-orthogonal X.\n\nThe signature has a sign for each row of A "
        "(m x k), and A^T J A is positive definite. R (k x k), its Cholesky factor, goes to "
        "X_R.npy beside X; it belongs to the first k columns of X with a plus.",
    ),
    "lstsq": Problem(
        "A b",
        (),
        [gaps],
        ("A.csv b.csv -s 20,10 -o x.csv",),
        "Find the x that minimises (b - A x)^T J (b - A x).\n\nThe signature has a sign for each "
        "row of A (m x k), and A^T J A is positive definite.",
    ),
    "procrustes": Problem(
        "source target",
        (),
        [
            option("--aligned", type=new_file, help="File for SOURCE X."),
            option("--plot", type=new_file, help="Picture of both clouds, before and after."),
            gaps,
            *iterations,
        ],
        (
            "source.csv target.csv -s lorentz -o X.csv",
            "S.npz T.npz --key X -s 3,1 -o X.npy",
            "S.csv T.csv -s lorentz -o X.csv --plot X.png",
        ),
        "Align the rows of SOURCE with those of TARGET.\n\nThis minimises 1/2m ||SOURCE X - "
        "TARGET||^2. SOURCE is m x n, dense or sparse. By default this is jorth.procrustes: every "
        "component of O(p, q) is searched, unless a bound shows that it holds nothing better. "
        "With --method or --start there is one run, which searches one component. TARGET may have "
        "fewer columns, k < n; then X is n x k. Rows with ids are matched by them.",
    ),
    "quadratic": Problem(
        "A [C] [D]",
        (),
        iterations,
        ("A.npy C.npy -s 12,8 -o X.npy", "A.npy - D.npy -s ++-- -o X.npy --method gs-jobcd"),
        "Minimise 1/2 tr(X^T A X D) + <C, X>.\n\nC may be - for zero; D is the identity when "
        "omitted. There is one run, from --start or the identity, which searches one component of "
        "O(p, q). What is found need not be the lowest minimum.",
    ),
}


@click.group(
    epilog=examples(
        "jorth solve procrustes source.csv target.csv -s lorentz -o X.csv",
        "jorth solve eigen A.npy -s 12,8 -o X.npy",
        after=CODES,
    )
)
def solve() -> None:
    """Solve problems whose matrices are in files.

    Files are .npy, .npz, or text: .csv, .tsv, .txt, separated by semicolons, tabs, commas or white
    space. The first line may have the names of the columns, and the first column ids of the rows. A
    record X.json is written beside X.npy.
    """


def _run(problem: str, **options: Any) -> None:
    """Solve, write the files and print the answer; the exit code says how it ended."""
    from jorth.cli.solving import run
    from jorth.solvers import Status

    row = PROBLEMS[problem]
    words = row.arguments.split()
    given = {word.strip("[]"): options.pop(word.strip("[]").lower()) for word in words}
    files = {name: path for name, path in given.items() if path not in (None, Path("-"))}
    command = shlex.join(["jorth", *sys.argv[1:]])
    status = run(problem, files, row.outputs, command=command, **options)
    if status is not Status.CONVERGED:
        raise SystemExit(INTERRUPTED if status is Status.INTERRUPTED else NOT_CONVERGED)


for name, row in PROBLEMS.items():
    arguments: list[click.Parameter] = [
        click.Argument(
            [word.strip("[]").lower()],
            type=file_or_dash if word == "[C]" else file,
            required=word[0] != "[",
        )
        for word in row.arguments.split()
    ]
    command = click.Command(
        name,
        callback=partial(_run, name),
        params=arguments,
        help=row.help,
        epilog=examples(*(f"jorth solve {name} {line}" for line in row.examples)),
    )
    for add in (signature, output, *shared, *row.options):
        command = add(command)
    solve.add_command(command)


@click.command(epilog=examples("jorth apply X.csv points.csv -o moved.csv"))
@click.argument("matrix", type=file)
@click.argument("points", type=file)
@with_options(output, *shared, gaps)
def apply(matrix: Path, points: Path, **options: Any) -> None:
    """Move the rows of POINTS by MATRIX, such as the X of `jorth solve`.

    The product POINTS MATRIX is written in the format of POINTS, with its ids and names.
    """
    from jorth.cli.solving import apply as move

    move(matrix, points, **options)
