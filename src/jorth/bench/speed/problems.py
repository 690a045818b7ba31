"""The tasks: what is minimised, how it is built for our methods and the peers, the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import datasets
from jorth.bench.core.interrupts import uninterrupted
from jorth.bench.matrices.problems import NOISE, BenchProblem, planted_problem
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.dense import Dense, DenseProcrustes, DenseRobust, DenseTrace, Matrix
from jorth.linalg import eigh
from jorth.objectives import AutogradObjective, HyperbolicEigenvalue, Procrustes
from jorth.signature import Signature
from jorth.solvers import minimize

OUTLIERS = 0.1  # the share of rows of a robust task whose targets are wrong
POINT_CONDITION = 2.0
"""The condition number of the planted X of a robust task: f has further minima, so the start must
be near one of them."""


@dataclass(frozen=True)
class SpeedProblem:
    """A task with its data.

    ``build`` and ``build_dense`` are what a user of jorth and of another library would do with the
    data before the first step; calls that are timed as a whole include them.
    """

    scale: BenchProblem
    """The objective, the start and the optimum, by which every gap is measured."""
    build: Callable[[], Any]
    build_dense: Callable[[], Dense]
    clouds: tuple[Matrix, Matrix] | None = None  # source and target, for `jorth.procrustes`

    @property
    def signature(self) -> Signature:
        return self.scale.signature


def problem_of(cell: SpeedCell) -> SpeedProblem:
    """The problem of a cell; that of the last one is kept."""
    return _problem(cell.task, Signature(cell.p, cell.n - cell.p), cell.condition, cell.seed)


@lru_cache(maxsize=1)
def _problem(task: str, signature: Signature, condition: float, seed: int) -> SpeedProblem:
    makers = {"procrustes": _procrustes, "trace": _trace, "robust": _robust}
    return makers[task](signature, condition, seed)


def clouds(
    signature: Signature,
    condition: float,
    seed: int | np.random.Generator,
    *,
    rows: int | None = None,
    point: float = 10.0,
) -> tuple[Matrix, Matrix]:
    """Source and target of a planted noisy Procrustes problem with 2n rows."""
    planted = datasets.planted_procrustes(
        rows or 2 * signature.n, signature, source_condition=condition, point_condition=point,
        noise=NOISE, seed=seed,
    )  # fmt: skip
    return planted.source, planted.target


def _procrustes(signature: Signature, condition: float, seed: int) -> SpeedProblem:
    source, target = clouds(signature, condition, seed)
    return SpeedProblem(
        planted_problem(signature, condition, seed),
        lambda: Procrustes(source, target),
        lambda: DenseProcrustes(source, target),
        (source, target),
    )


def _trace(signature: Signature, condition: float, seed: int) -> SpeedProblem:
    """tr(X^T A X) with A = source^T source / m, whose optimum is the sum of |lambda|."""
    source, _ = clouds(signature, condition, seed)
    A = source.T @ source / len(source)
    notes: dict[str, object] = {"optimum_by": "eigh", "reference_gradient_norm": 0.0}
    optimum = float(np.abs(eigh(A, signature)[0]).sum())
    objective = HyperbolicEigenvalue(A)
    scale = BenchProblem(objective, signature, np.eye(signature.n), optimum, notes)
    return SpeedProblem(scale, lambda: HyperbolicEigenvalue(A), lambda: DenseTrace(A))


def _robust(signature: Signature, condition: float, seed: int) -> SpeedProblem:
    """Alignment by the pseudo-Huber loss of the residuals, some targets being wrong."""
    source, target = clouds(signature, condition, seed, point=POINT_CONDITION)
    rng = np.random.default_rng([seed, signature.n])
    wrong = rng.permutation(len(target))[: round(OUTLIERS * len(target))]
    target[wrong] = rng.permutation(target[wrong], axis=1)
    delta = 2 * NOISE * signature.n**0.5
    S, T = torch.from_numpy(source), torch.from_numpy(target)

    def loss(X: Tensor) -> Tensor:
        squares = (S @ X - T).square().sum(dim=1)
        mean: Tensor = ((1 + squares / delta**2).sqrt() - 1).mean() * delta**2
        return mean

    best = minimize(
        loss, signature=signature, method="riemannian-lbfgs", gradient_tolerance=1e-12,
        max_iterations=2000,
    )  # fmt: skip
    best = uninterrupted(best)
    notes: dict[str, object] = {
        "optimum_by": "riemannian-lbfgs",
        "reference_gradient_norm": best.gradient_norm,
    }
    objective = AutogradObjective(loss)
    scale = BenchProblem(objective, signature, np.eye(signature.n), best.value, notes)
    return SpeedProblem(scale, lambda: loss, lambda: DenseRobust(loss, source, target, delta))
