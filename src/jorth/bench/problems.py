"""From a cell to its problem: matrix, objective, start, and the optimum where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from jorth import datasets
from jorth.bench.cells import Cell
from jorth.datasets.loading import take
from jorth.decompositions import eigh
from jorth.group import random_point
from jorth.objectives import AbstractObjective, HyperbolicEigenvalue, Procrustes, StructuralProbe
from jorth.signature import Signature
from jorth.solvers import minimize

NEAR_ORTHOGONAL = (1.01, 1.16)
"""||D X0||^2 / ||D||^2 of the paper's starts, as its Table 1 and the data tell."""
CONDITIONS = (2.0, 1.7, 2.5, 1.4, 3.5, 1.2, 5.0)
"""Condition numbers of the start, in the order in which they are tried."""
NOISE = 0.1
"""The standard deviation of the noise on the planted Procrustes targets."""
PROBE_CONDITION = 1.5
"""The condition number of the start of a probe: at the identity sparse rows have t = 0, and no lift."""
VALUE_OF_PROBE = 0.5
"""A value of the probe alone, in gradients: between 0.52 and 0.60 of the time was measured on the paper's sizes."""


@dataclass(frozen=True)
class BenchProblem:
    """What the cells of one problem share.

    Attributes:
        objective: What is minimised.
        signature: The signs of J.
        x0: The start.
        first: The value at the start.
        optimum: The least value, or None where there is none.
        notes: Where the numbers come from: subset, norms, ridge, the source of the optimum.
        value_cost: What a value without its gradient costs, in gradients.
    """

    objective: AbstractObjective
    signature: Signature
    x0: NDArray[np.float64]
    first: float
    optimum: float | None
    notes: dict[str, object]
    value_cost: float = 0.0


def prepare(cell: Cell, data_dir: Path | None = None) -> BenchProblem:
    """The problem of a cell. A FileNotFoundError or ImportError says that its data are not at hand."""
    signature = Signature(cell.p, cell.n - cell.p)
    if cell.problem == "procrustes":
        return _procrustes(cell, signature)
    D, subset = load_data(cell, data_dir)
    if cell.problem == "probe":
        return _probe(cell, signature, D, subset)
    size = float(np.sum(D * D))
    x0, ratio = near_orthogonal(D, signature, cell.seed)
    notes: dict[str, object] = {"subset": subset, "data_norm_squared": size, "start_ratio": ratio}
    if cell.problem == "race":
        objective = HyperbolicEigenvalue(data=D, sense="max")
        return BenchProblem(objective, signature, x0, _value(objective, x0), None, notes)
    assert cell.ridge is not None
    notes["ridge"] = cell.ridge * size / cell.n
    A = D.T @ D + cell.ridge * size / cell.n * np.eye(cell.n)
    objective = HyperbolicEigenvalue(A)
    optimum = float(np.abs(eigh(A, signature)[0]).sum())
    return BenchProblem(
        objective, signature, x0, _value(objective, x0), optimum, notes | {"optimum_by": "eigh"}
    )


def load_data(cell: Cell, data_dir: Path | None) -> tuple[NDArray[np.float64], str]:
    """D (m, n) and the rule of its subset.

    Rows and columns are drawn at random from the complete set by its seed in the cell; where it has too few columns
    that are not zero (mnist, 780), the first m rows and n columns are taken.
    """
    if cell.data == "randn":
        return datasets.randn(cell.m, cell.n, seed=cell.data_seed), "generated"
    if cell.data == "digits":
        found = take(
            datasets.digits(),
            cell.m,
            cell.n,
            subset="random",
            seed=cell.data_seed,
            source="the digits",
        )
        return np.asarray(found), "random"
    for subset in ("random", "first"):
        try:
            matrix = datasets.load(
                cell.data,
                cell.m,
                cell.n,
                subset=subset,
                seed=cell.data_seed,
                sparse=True,
                folder=data_dir,
            )
        except ValueError:
            if subset == "first":
                raise
            continue
        return matrix.toarray(), subset
    raise AssertionError("one of the subsets is returned or raises")


def near_orthogonal(
    D: NDArray[np.float64], signature: Signature, seed: int
) -> tuple[NDArray[np.float64], float]:
    """A random start and its ||D X0||^2 / ||D||^2, between 1.01 and 1.16 where one of CONDITIONS gives that."""
    low, high = NEAR_ORTHOGONAL
    found = []
    for condition in CONDITIONS:
        X = random_point(signature, cond=condition, seed=seed)
        ratio = float(np.sum((D @ X) ** 2) / np.sum(D * D))
        if low <= ratio <= high:
            return X, ratio
        found.append((abs(ratio - (low + high) / 2), ratio, X))
    _, ratio, X = min(found, key=lambda candidate: candidate[0])
    return X, ratio


def _procrustes(cell: Cell, signature: Signature) -> BenchProblem:
    """From the identity; the optimum is what the preconditioned Riemannian L-BFGS finds at a gradient norm of 1e-12."""
    assert cell.condition is not None
    source, target, _ = datasets.planted_procrustes(
        cell.m, signature, source_condition=cell.condition, noise=NOISE, seed=cell.seed
    )
    objective = Procrustes(source, target)
    best = minimize(
        objective,
        signature=signature,
        method="riemannian-lbfgs",
        gradient_tolerance=1e-12,
        max_iterations=2000,
    )
    notes: dict[str, object] = {
        "optimum_by": "riemannian-lbfgs", "reference_gradient_norm": best.gradient_norm, "noise": NOISE,
    }  # fmt: skip
    x0 = np.eye(cell.n)
    return BenchProblem(objective, signature, x0, _value(objective, x0), best.value, notes)


def _probe(cell: Cell, signature: Signature, D: NDArray[np.float64], subset: str) -> BenchProblem:
    """From a random start near the identity; rows of zeros stay at the base point. Its least value is not known."""
    assert cell.alpha is not None
    assert cell.scale is not None
    assert cell.ridge is not None
    objective = StructuralProbe(
        D, "euclidean", signature=signature, alpha=cell.alpha, scale=cell.scale, ridge=cell.ridge,
        order="transform-lift", zero_rows="base",
    )  # fmt: skip
    x0 = random_point(signature, cond=PROBE_CONDITION, seed=cell.seed)
    size = float(np.sum(D * D))
    notes: dict[str, object] = {
        "subset": subset, "data_norm_squared": size, "start_ratio": float(np.sum((D @ x0) ** 2) / size),
        "zero_rows": int((~D.any(axis=1)).sum()), "ridge": cell.ridge, "optimum_by": "not known",
    }  # fmt: skip
    return BenchProblem(
        objective, signature, x0, _value(objective, x0), None, notes, value_cost=VALUE_OF_PROBE
    )


def _value(objective: AbstractObjective, X: NDArray[np.float64]) -> float:
    return float(objective.value(torch.from_numpy(X)))
