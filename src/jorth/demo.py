"""`jorth demo`: the three strategies on two problems with known answers, one table and one picture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jorth.datasets import digits_trace, planted_procrustes
from jorth.objectives import AbstractObjective, FiniteSum, Procrustes, Quadratic
from jorth.signature import Signature
from jorth.solvers import Result, minimize
from jorth.storage.atomic import replacing

METHODS = ("gs-jobcd", "j-jobcd", "vr-j-jobcd")


@dataclass(frozen=True)
class DemoProblem:
    """A problem with its known optimal value; ``finite_sum`` is the same function as a mean over samples."""

    name: str
    objective: AbstractObjective
    finite_sum: AbstractObjective
    signature: Signature
    optimum: float


def run(output: Path, seed: int) -> None:
    """Solve, print the table, write the picture into ``output``."""
    console = Console()
    problems = [_procrustes(seed), _digits()]
    results = {problem.name: _solve_all(problem, seed) for problem in problems}
    for problem in problems:
        console.print(_table(problem, results[problem.name]))
    console.print(
        "gap: (f - optimum) / (f(I) - optimum); time in s; Mpairs/s: million plane steps a second"
    )
    output.mkdir(parents=True, exist_ok=True)
    path = output / "convergence.png"
    _draw(path, problems, results)
    console.print(f"Convergence: [bold]{escape(str(path))}[/bold]")


def _procrustes(seed: int) -> DemoProblem:
    """Align two clouds in R^30 by an isometry of O(20, 10): the answer is planted."""
    signature = Signature(20, 10)
    source, target, _ = planted_procrustes(500, signature, seed=seed)
    objective = Procrustes(source, target)
    return DemoProblem("planted Procrustes, O(20, 10)", objective, objective, signature, 0.0)


def _digits() -> DemoProblem:
    """Min tr(X^T A X) for the second moments A of the digits images: the answer is a sum of eigenvalues."""
    signature = Signature(48, 16)
    rows, A, optimum = digits_trace(signature)
    terms = FiniteSum(lambda X, batch: (batch @ X).square().sum() / len(batch), rows)
    return DemoProblem("digits, trace over O(48, 16)", Quadratic(2 * A), terms, signature, optimum)


def _solve_all(problem: DemoProblem, seed: int) -> dict[str, Result]:
    return {
        method: minimize(
            problem.finite_sum if method == "vr-j-jobcd" else problem.objective,
            np.eye(problem.signature.n),
            signature=problem.signature,
            method=method,
            gradient_tolerance=1e-8,
            max_time=6.0,
            seed=seed,
            progress=True,
        )
        for method in METHODS
    }


def _table(problem: DemoProblem, results: dict[str, Result]) -> Table:
    table = Table(title=problem.name, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("value", "gap", "gradient", "residual", "time", "Mpairs/s", "ended"):
        table.add_column(heading, justify="right", no_wrap=True)
    for method, result in results.items():
        table.add_row(
            method,
            f"{result.value:.3g}",
            f"{_gaps(result, problem.optimum)[-1]:.1e}",
            f"{result.gradient_norm:.1e}",
            f"{result.residual:.1e}",
            f"{result.time:.2f}",
            f"{result.evaluations.pair_updates / max(result.time, 1e-9) / 1e6:.2f}",
            result.status.name.lower().replace("_", " "),
        )
    return table


def _gaps(result: Result, optimum: float) -> NDArray[np.float64]:
    values = result.history["value"]
    gaps: NDArray[np.float64] = np.maximum(values - optimum, 0.0) / (values[0] - optimum)
    return gaps


def _draw(path: Path, problems: list[DemoProblem], results: dict[str, dict[str, Result]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, problem in zip(figure.subplots(1, len(problems)), problems, strict=True):
        for method, result in results[problem.name].items():
            gaps = np.maximum(_gaps(result, problem.optimum), 1e-17)
            axes.semilogy(result.history["time"], gaps, label=method)
        axes.set(title=problem.name, xlabel="seconds", ylabel="relative gap", ylim=(1e-17, 2))
        axes.grid(alpha=0.3)
        axes.legend()
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format="png")
