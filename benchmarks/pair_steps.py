"""One exact pair step of GS-JOBCD, and one round of J-JOBCD beside its gradient, by size.

One core, planted Procrustes, medians: two tables of
docs/results/performance.md.

    python benchmarks/pair_steps.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np
import torch

import jorth
from benchmarks import kernels
from jorth.solvers.jobcd.majorised import compile_kernels

STEP_SIZES = (10, 25, 50, 100, 200, 400, 800)
ROUND_SIZES = (50, 100, 200, 500, 1000)


def pair_steps(sizes=STEP_SIZES):
    """Microseconds to form P and Q, solve, and update X and Y = X X^T, and how they grow."""
    costs = {n: kernels.pair_step(n) * 1e6 for n in sizes}
    for n, cost in costs.items():
        print(f"n = {n:4d}  {cost:7.3f} microseconds per pair")
    fitted = [n for n in sizes if 50 <= n <= 200]
    slope = np.polyfit(np.log(fitted), np.log([costs[n] for n in fitted]), 1)[0]
    print(f"exponent from 50 to 200: {slope:.2f}\n")


def rounds(sizes=ROUND_SIZES):
    """Milliseconds of a round of n / 2 disjoint pairs, and of the gradient that it needs."""
    for n in sizes:
        _, source, target = kernels.planted(n)
        objective = jorth.Procrustes(source, target)
        X = torch.eye(n, dtype=torch.float64)
        gradient = kernels.seconds(lambda f=objective, X=X: f.value_and_gradient(X))
        one_round = kernels.gradient_round(n)
        print(f"n = {n:4d}  round {one_round * 1e3:8.3f} ms  gradient {gradient * 1e3:8.3f} ms")


def main():
    torch.set_num_threads(1)
    compile_kernels()
    pair_steps()
    rounds()


if __name__ == "__main__":
    main()
