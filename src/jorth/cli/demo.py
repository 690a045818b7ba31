"""`jorth demo`: three methods on two problems with known answers; tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jorth.cli.endings import INTERRUPTED
from jorth.cli.options import examples, folder
from jorth.extras import needs

if TYPE_CHECKING:
    from jorth.objectives import AbstractObjective
    from jorth.signature import Signature
    from jorth.solvers import Result


class DemoProblem(NamedTuple):
    """A problem with its optimal value; ``finite_sum`` is the objective as a mean over samples."""

    name: str
    objective: AbstractObjective
    finite_sum: AbstractObjective
    signature: Signature
    optimum: float

    def gaps(self, result: Result) -> Any:
        """Return the relative gaps over the history of a run."""
        values = result.history["value"]
        return (values - self.optimum).clip(0) / (values[0] - self.optimum)


@click.command(epilog=examples("jorth demo", "jorth demo --seed 1 -o pictures"))
@click.option("--output", "-o", type=folder, default="out", help="Folder of the picture.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of everything random.")
def demo(output: Path, seed: int) -> None:
    """Solve two problems with known answers.

    Three methods run on each, in under a minute. Tables are printed, and a picture is drawn.
    """
    from jorth._files import make_folder

    make_folder(output, "--output")
    runs: list[tuple[DemoProblem, dict[str, Result]]] = []
    try:
        runs += ((problem, _solve(problem, seed)) for problem in _problems(seed))
    except ImportError as missing:  # scikit-learn, for the digits
        click.echo(str(missing))
    click.echo("gap: (f - optimum) / (f(I) - optimum); time in seconds")
    try:
        _draw(output / "convergence.png", runs)
    except ImportError as missing:
        click.echo(str(missing))


def _problems(seed: int) -> Iterator[DemoProblem]:
    """Yield an alignment in R^30 with a planted answer, then tr(X^T A X) for second moments A."""
    import numpy as np
    import scipy.linalg

    from jorth import FiniteSum, Procrustes, Quadratic, Signature, datasets

    signature = Signature(20, 10)
    source, target, _ = datasets.planted_procrustes(500, signature, seed=seed)
    objective = Procrustes(source, target)
    yield DemoProblem("planted Procrustes, O(20, 10)", objective, objective, signature, 0.0)
    signature = Signature(48, 16)
    images = datasets.digits()
    # A = mean of x x^T + 0.05 I as a mean over rows; without the ridge A is singular
    rows = np.vstack([images, np.sqrt(0.05 * (len(images) + 64)) * np.eye(64)])
    A = rows.T @ rows / len(rows)
    inverse = scipy.linalg.eigh(np.diag(signature.signs.astype(float)), A, eigvals_only=True)
    optimum = float(np.abs(1 / inverse).sum())  # the sum of |lambda| over A x = lambda J x
    terms = FiniteSum(lambda X, batch: (batch @ X).square().sum() / len(batch), rows)
    yield DemoProblem("digits, trace over O(48, 16)", Quadratic(2 * A), terms, signature, optimum)


def _solve(problem: DemoProblem, seed: int) -> dict[str, Result]:
    """Run the three methods and print their table."""
    from jorth import minimize
    from jorth.terminal import number_table, show

    found: dict[str, Result] = {}
    for method in ("gs-jobcd", "j-jobcd", "vr-j-jobcd"):
        objective = problem.finite_sum if method == "vr-j-jobcd" else problem.objective
        settings: dict[str, Any] = dict(gradient_tolerance=1e-8, max_time=6.0, seed=seed)
        settings |= dict(signature=problem.signature, method=method, progress=True)
        found[method] = minimize(objective, **settings)
        interrupted = found[method].status.name == "INTERRUPTED"
        if interrupted:
            break
    rows = [
        [
            method,
            f"{result.value:.3g}",
            f"{problem.gaps(result)[-1]:.1e}",
            f"{result.gradient_norm:.1e}",
            f"{result.residual:.1e}",
            f"{result.time:.2f}",
            result.status.name.lower().replace("_", " "),
        ]
        for method, result in found.items()
    ]
    headings = ("method", "value", "gap", "gradient", "residual", "time", "ended")
    show(number_table(headings, rows, names=(0, 6), title=problem.name))
    if interrupted:
        click.echo("Interrupted: the table has the runs so far; no picture was drawn.")
        raise SystemExit(INTERRUPTED)
    return found


def _draw(path: Path, runs: list[tuple[DemoProblem, dict[str, Result]]]) -> None:
    with needs("the picture", "matplotlib"):
        from matplotlib.figure import Figure

    from jorth._files import replacing

    figure = Figure(figsize=(5 * len(runs), 4), layout="constrained")
    panels = figure.subplots(1, len(runs), squeeze=False)
    for axes, (problem, found) in zip(panels[0], runs, strict=True):
        for method, result in found.items():
            axes.semilogy(result.history["time"], problem.gaps(result).clip(1e-17), label=method)
        axes.set(title=problem.name, xlabel="seconds", ylabel="relative gap", ylim=(1e-17, 2))
        axes.grid(alpha=0.3)
        axes.legend()
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format="png")
    click.echo(f"Convergence: {path}")
