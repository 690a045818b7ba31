"""Cost of one exact pair step of GS-JOBCD on a quadratic, by size: one core, medians over sweeps."""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import jorth
from jorth.plane import all_pairs
from jorth.plane.compiled.quadratic import sweep_quadratic
from jorth.plane.proximal import StepRule

RULE = StepRule(-1e-12, all_components=False, stop_unbounded=True)
SIZES = (10, 25, 50, 100, 200, 400, 800)


def microseconds_per_pair(n: int, sweeps: int) -> float:
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(2 * n, signature, seed=0)
    A, C = source.T @ source / (2 * n), -source.T @ target / (2 * n)
    X, rng, times = np.eye(n), np.random.default_rng(0), []
    for sweep in range(sweeps + 1):
        Y, pairs = X @ X.T, all_pairs(n, seed=rng)
        start = time.perf_counter()
        sweep_quadratic(A, C, X, Y, signature.signs, pairs, RULE)
        if sweep:
            times.append((time.perf_counter() - start) / len(pairs) * 1e6)
    return statistics.median(times)


def main() -> None:
    costs = {n: microseconds_per_pair(n, 30 if n <= 100 else 10 if n <= 200 else 4) for n in SIZES}
    for n, cost in costs.items():
        print(f"n = {n:4d}  {cost:7.3f} microseconds per pair")
    fitted = [n for n in SIZES if 50 <= n <= 200]
    slope = np.polyfit(np.log(fitted), np.log([costs[n] for n in fitted]), 1)[0]
    print(f"exponent from 50 to 200: {slope:.2f}")


if __name__ == "__main__":
    main()
