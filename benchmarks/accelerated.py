"""Sweeps of plain and accelerated JOBCD to a relative gap of 1e-8 on planted Procrustes.

python benchmarks/accelerated.py [--sizes 50 100 200] [--seeds 5] [--limit 400]

Every number is the median over the seeds, from the identity; the optimum is that of Riemannian
L-BFGS, whose iterations are counted. Times are processor times of the solver on one thread.
"""

from __future__ import annotations

import argparse
import os
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import torch

import jorth
from jorth.solvers.problem import Clock

GAP = 1e-8
CONDITIONS = (3.0, 30.0)
METHODS = {
    "plain": jorth.GaussSeidel(order="cyclic"),
    "accelerated GS": jorth.GaussSeidel(accelerate=True),
    "accelerated J": jorth.Jacobi(accelerate=True),
    "L-BFGS": jorth.RiemannianLBFGS(),
}


def problem(n: int, p: int, condition: float, seed: int) -> tuple[jorth.Procrustes, float]:
    """The objective, and the value at the gap."""
    signature = jorth.Signature(p, n - p)
    source, target, _ = jorth.datasets.planted_procrustes(
        2 * n, signature, noise=0.1, source_condition=condition, seed=seed
    )
    objective = jorth.Procrustes(source, target)
    best = jorth.minimize(
        objective,
        signature=signature,
        method="riemannian-lbfgs",
        gradient_tolerance=1e-12,
        max_iterations=2000,
    )
    first = best.history["value"][0]
    return objective, best.value + GAP * (first - best.value)


def sweeps(
    objective: jorth.Procrustes, p: int, method: object, target: float, limit: int
) -> tuple[float, float]:
    """Sweeps to the value and the time they take; infinity if the limit comes first."""
    n, _ = objective.shape()
    result = jorth.minimize(
        objective,
        signature=jorth.Signature(p, n - p),
        method=method,
        gradient_tolerance=0.0,
        stop=jorth.stopping.ValueBelow(target),
        max_iterations=limit,
    )
    count = result.evaluations.pair_updates / (n * (n - 1) / 2) or result.iterations
    return (count, result.time) if result.value <= target else (np.inf, np.inf)


def cell(numbers: list[tuple[float, float]], limit: int) -> str:
    count, seconds = np.median(np.array(numbers), axis=0)
    return f"{count:.0f} ({1000 * seconds:.3g} ms)" if np.isfinite(count) else f"> {limit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=int, default=400, help="iterations at most")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    Clock.now = time.process_time
    print("| n, p, condition | " + " | ".join(arguments.methods) + " |")
    print("|---" * (1 + len(arguments.methods)) + "|")
    for n in arguments.sizes:
        for p in (n // 2, round(0.9 * n)):
            for condition in CONDITIONS:
                found: dict[str, list] = {name: [] for name in arguments.methods}
                for seed in range(arguments.seeds):
                    objective, target = problem(n, p, condition, seed)
                    for name in arguments.methods:
                        run = sweeps(objective, p, METHODS[name], target, arguments.limit)
                        found[name].append(run)
                cells = [cell(found[name], arguments.limit) for name in arguments.methods]
                print(f"| {n}, {p}, {condition:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
