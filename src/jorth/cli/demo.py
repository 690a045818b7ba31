"""`jorth demo`: three methods on two problems with known answers; tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from jorth.cli.endings import INTERRUPTED
from jorth.cli.options import examples, folder
from jorth.extras import needs


@click.command(epilog=examples("jorth demo", "jorth demo --seed 1 -o pictures"))
@click.option("--output", "-o", type=folder, default="out", help="Folder of the picture.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Seed of everything random.")
def demo(output: Path, seed: int) -> None:
    """Solve two problems with known answers.

    Three methods run on each, in under a minute. Tables are printed, and a picture is drawn.
    """
    from jorth._files import make_folder

    make_folder(output, "--output")
    runs: dict[str, dict[str, Any]] = {}
    try:
        for name, *problem in _problems(seed):
            runs[name] = _solve(name, *problem, seed=seed)
    except ImportError as missing:  # scikit-learn, for the digits
        click.echo(str(missing))
    click.echo("gap: (f - optimum) / (f(I) - optimum); time in seconds")
    try:
        _draw(output / "convergence.png", runs)
    except ImportError as missing:
        click.echo(str(missing))


def _problems(seed: int) -> Iterator[tuple[str, Any, Any, Any, float]]:
    """Yield an alignment in R^30 with a planted answer, then tr(X^T A X) for second moments A.

    Each has a name, the objective, the same as a mean over samples, the signature and the optimum.
    """
    import numpy as np
    import scipy.linalg

    from jorth import FiniteSum, Procrustes, Quadratic, Signature, datasets

    signature = Signature(20, 10)
    clouds = Procrustes(*datasets.planted_procrustes(500, signature, seed=seed)[:2])
    yield "planted Procrustes, O(20, 10)", clouds, clouds, signature, 0.0
    signature = Signature(48, 16)
    images = datasets.digits()
    # A = mean of x x^T + 0.05 I as a mean over rows; without the ridge A is singular
    rows = np.vstack([images, np.sqrt(0.05 * (len(images) + 64)) * np.eye(64)])
    A = rows.T @ rows / len(rows)
    inverse = scipy.linalg.eigh(np.diag(signature.signs.astype(float)), A, eigvals_only=True)
    optimum = float(np.abs(1 / inverse).sum())  # the sum of |lambda| over A x = lambda J x
    terms = FiniteSum(lambda X, batch: (batch @ X).square().sum() / len(batch), rows)
    yield "digits, trace over O(48, 16)", Quadratic(2 * A), terms, signature, optimum


def _solve(
    name: str, objective: Any, terms: Any, signature: Any, optimum: float, *, seed: int
) -> dict[str, Any]:
    """Run the three methods, print their table, and return times and relative gaps of each."""
    from jorth import Status, minimize
    from jorth.terminal import number_table, show

    curves, rows = {}, []
    for method in ("gs-jobcd", "j-jobcd", "vr-j-jobcd"):
        settings: dict[str, Any] = dict(gradient_tolerance=1e-8, max_time=6.0, seed=seed)
        settings |= dict(signature=signature, method=method, progress=True)
        result = minimize(terms if method == "vr-j-jobcd" else objective, **settings)
        values = result.history["value"]
        gaps = (values - optimum).clip(0) / (values[0] - optimum)
        curves[method] = result.history["time"], gaps
        numbers = [f"{x:.1e}" for x in (gaps[-1], result.gradient_norm, result.residual)]
        ended = result.status.name.lower().replace("_", " ")
        rows.append([method, f"{result.value:.3g}", *numbers, f"{result.time:.2f}", ended])
        if result.status is Status.INTERRUPTED:
            break
    headings = ("method", "value", "gap", "gradient", "residual", "time", "ended")
    show(number_table(headings, rows, names=(0, 6), title=name))
    if result.status is Status.INTERRUPTED:
        click.echo("Interrupted: the table has the runs so far; no picture was drawn.")
        raise SystemExit(INTERRUPTED)
    return curves


def _draw(path: Path, runs: dict[str, dict[str, Any]]) -> None:
    with needs("the picture", "matplotlib"):
        from matplotlib.figure import Figure

    from jorth._files import replacing

    figure = Figure(figsize=(5 * len(runs), 4), layout="constrained")
    panels = figure.subplots(1, len(runs), squeeze=False)[0]
    for axes, (name, curves) in zip(panels, runs.items(), strict=True):
        for method, (seconds, gaps) in curves.items():
            axes.semilogy(seconds, gaps.clip(1e-17), label=method)
        axes.set(title=name, xlabel="seconds", ylabel="relative gap", ylim=(1e-17, 2))
        axes.grid(alpha=0.3)
        axes.legend()
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format="png")
    click.echo(f"Convergence: {path}")
