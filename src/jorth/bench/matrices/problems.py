"""The problem of a cell: matrix, objective, start, and the optimum if it is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from jorth import datasets
from jorth.bench.core.cells import GAPS
from jorth.bench.core.interrupts import uninterrupted
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.own import OwnData
from jorth.datasets.loading import take
from jorth.group import random_point
from jorth.linalg import eigh
from jorth.objectives import AbstractObjective, HyperbolicEigenvalue, Procrustes, StructuralProbe
from jorth.signature import Signature
from jorth.solvers import minimize

Matrix = NDArray[np.float64]
NEAR_ORTHOGONAL = (1.01, 1.16)
"""||D X0||^2 / ||D||^2 of the paper's starts, estimated from its Table 1 and the data."""
START_CONDITIONS = (2.0, 1.7, 2.5, 1.4, 3.5, 1.2, 5.0)
"""Condition numbers of the start, in the order in which they are tried."""
NOISE = 0.1  # the standard deviation of the noise on the planted Procrustes targets
PLANTED_CONDITION = 10.0  # of the point that is planted for the source of a user
PROBE_CONDITION = 1.5
"""The condition number of a probe's start; at the identity sparse rows have no lift."""
PROBE_VALUE_COST = 0.5
"""The cost in gradients of a probe's value alone; measured at 0.52 to 0.60 on paper sizes."""


@dataclass(frozen=True)
class BenchProblem:
    """What the cells of one problem share."""

    objective: AbstractObjective
    signature: Signature
    x0: Matrix
    optimum: float | None  # None if it does not exist or is not known
    notes: dict[str, object]  # where the numbers come from
    value_cost: float = 0.0  # cost of a value without its gradient, in gradients

    @cached_property
    def first(self) -> float:
        """The value at the start."""
        return float(self.objective.value(torch.from_numpy(self.x0)))

    def gap(self, value: Any) -> Any:
        """(f - optimum) / (f(X0) - optimum), or None without an optimum."""
        if self.optimum is None:
            return None
        return (value - self.optimum) / (self.first - self.optimum)

    def value_at(self, gap: float) -> float:
        """The value that has a relative gap of ``gap``."""
        assert self.optimum is not None
        return self.optimum + gap * (self.first - self.optimum)

    def first_within(self, values: Any) -> dict[str, int]:
        """The index of the first value within each of GAPS, without those that were not reached."""
        gaps = self.gap(np.asarray(values))
        if gaps is None:
            return {}
        return {f"{gap:g}": int(np.argmax(gaps <= gap)) for gap in GAPS if (gaps <= gap).any()}


def prepare(cell: MatrixCell, data_dir: Path | None = None) -> BenchProblem:
    """The problem of a cell; a FileNotFoundError or ImportError means that its data are missing."""
    signature = cell.signature
    if cell.problem == "procrustes" and cell.own is not None:
        return own_procrustes(cell, cell.own)
    if cell.problem == "procrustes":
        assert cell.condition is not None
        return planted_problem(signature, cell.condition, cell.seed)
    D, subset = load_data(cell, data_dir)
    notes: dict[str, object] = {"subset": subset, "data_norm_squared": float(np.sum(D * D))}
    if cell.problem == "probe":
        return _probe(cell, signature, D, notes)
    return _eigenvalue(cell, signature, D, notes)


def load_data(cell: MatrixCell, data_dir: Path | None) -> tuple[Matrix, str]:
    """D (m, n), and how the subset was chosen.

    Rows and columns are drawn at random by the seed of the cell. If the set has fewer than n
    columns that are not zero (mnist, 780), the first m rows and n columns are taken.
    """
    size = cell.m, cell.n
    seed = cell.data_seed
    if cell.own is not None:
        D, _, how = cell.own.load(*size, seed)
        return D, how
    if cell.data == "randn":
        return datasets.randn(*size, seed=seed), "generated"
    if cell.data == "digits":
        drawn = take(datasets.digits(), *size, subset="random", seed=seed, source="the digits")
        return np.asarray(drawn), "random"
    read: Any = partial(datasets.load, cell.data, *size, seed=seed, sparse=True, folder=data_dir)
    try:
        return read().toarray(), "random"
    except ValueError:
        return read(subset="first").toarray(), "first"


def near_orthogonal(D: Matrix, signature: Signature, seed: int) -> tuple[Matrix, float]:
    """A random start whose ||D X0||^2 / ||D||^2 is close to the paper's, and this ratio."""
    low, high = NEAR_ORTHOGONAL
    candidates = []
    for condition in START_CONDITIONS:
        X = random_point(signature, cond=condition, seed=seed)
        ratio = float(np.sum((D @ X) ** 2) / np.sum(D * D))
        if low <= ratio <= high:
            return X, ratio
        candidates.append((X, ratio))
    return min(candidates, key=lambda candidate: abs(candidate[1] - (low + high) / 2))


def _eigenvalue(
    cell: MatrixCell, signature: Signature, D: Matrix, notes: dict[str, object]
) -> BenchProblem:
    x0, notes["start_ratio"] = near_orthogonal(D, signature, cell.seed)
    if cell.problem == "race":
        objective = HyperbolicEigenvalue(data=D, sense="max")
        return BenchProblem(objective, signature, x0, None, notes)
    assert cell.ridge is not None
    ridge = cell.ridge * float(np.sum(D * D)) / cell.n
    A = D.T @ D + ridge * np.eye(cell.n)
    optimum = float(np.abs(eigh(A, signature)[0]).sum())
    notes |= {"ridge": ridge, "optimum_by": "eigh"}
    return BenchProblem(HyperbolicEigenvalue(A), signature, x0, optimum, notes)


def planted_problem(signature: Signature, condition: float, seed: int) -> BenchProblem:
    """Noisy Procrustes with 2n rows; the optimum is that of Riemannian L-BFGS."""
    source, target, _ = datasets.planted_procrustes(
        2 * signature.n, signature, source_condition=condition, noise=NOISE, seed=seed
    )
    return _aligned(source, target, signature, {"noise": NOISE})


def own_procrustes(cell: MatrixCell, own: OwnData) -> BenchProblem:
    """The rows of a file aligned with those of another, or with planted and noisy ones."""
    source, target, how = own.load(cell.m, cell.n, cell.data_seed)
    notes: dict[str, object] = {"subset": how, "data_norm_squared": float(np.sum(source * source))}
    if target is None:
        planted = random_point(cell.signature, cond=PLANTED_CONDITION, seed=cell.seed)
        target = source @ planted
        noise = NOISE * float(np.sqrt(np.mean(target * target)))
        target += noise * np.random.default_rng(cell.seed).standard_normal(target.shape)
        notes["noise"] = noise
    problem = _aligned(source, target, cell.signature, notes)
    if problem.optimum is not None and not problem.first > problem.optimum:
        raise ValueError("the rows must not be aligned already: the identity is the best answer")
    return problem


def _aligned(
    source: Matrix, target: Matrix, signature: Signature, notes: dict[str, object]
) -> BenchProblem:
    objective = Procrustes(source, target)
    best = minimize(
        objective,
        signature=signature,
        method="riemannian-lbfgs",
        gradient_tolerance=1e-12,
        max_iterations=2000,
    )
    best = uninterrupted(best)
    notes |= {"optimum_by": "riemannian-lbfgs", "reference_gradient_norm": best.gradient_norm}
    return BenchProblem(objective, signature, np.eye(signature.n), best.value, notes)


def _probe(
    cell: MatrixCell, signature: Signature, D: Matrix, notes: dict[str, object]
) -> BenchProblem:
    """The probe from a random start near the identity; zero rows stay at the base point."""
    assert cell.alpha is not None
    assert cell.scale is not None
    assert cell.ridge is not None
    objective = StructuralProbe(
        D,
        "euclidean",
        signature=signature,
        alpha=cell.alpha,
        scale=cell.scale,
        ridge=cell.ridge,
        order="transform-lift",
        zero_rows="base",
    )
    x0 = random_point(signature, cond=PROBE_CONDITION, seed=cell.seed)
    notes |= {
        "start_ratio": float(np.sum((D @ x0) ** 2) / np.sum(D * D)),
        "zero_rows": int((~D.any(axis=1)).sum()),
        "ridge": cell.ridge,
        "optimum_by": "not known",
    }
    return BenchProblem(objective, signature, x0, None, notes, value_cost=PROBE_VALUE_COST)
