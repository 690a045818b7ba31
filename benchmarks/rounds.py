"""A round of disjoint pairs of J-JOBCD on the CPU against the gradient it needs: milliseconds, one core, medians."""

from __future__ import annotations

import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import jorth
from jorth.kernels import Majoriser
from jorth.plane import random_matching
from jorth.solvers.jobcd.majorised import compile_kernels

SIZES = (50, 100, 200, 500, 1000)


def milliseconds(function, repeats):
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        function()
        times.append((time.process_time() - start) * 1e3)
    return statistics.median(times[1:])


def measure(n):
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(2 * n, signature, noise=0.1, seed=0)
    objective = jorth.Procrustes(source, target)
    form, X = objective.quadratic(), torch.eye(n, dtype=torch.float64)
    G = objective.value_and_gradient(X)[1]
    majoriser = Majoriser(signature, theta=-1e-12, A=form.A, D=form.D)
    rounds, repeats = random_matching(n, seed=0)[None], 200 if n <= 200 else 20
    one_round = milliseconds(lambda: majoriser.propose(X, G, 1.0, rounds), repeats)
    return one_round, milliseconds(lambda: objective.value_and_gradient(X), repeats)


def main():
    torch.set_num_threads(1)
    compile_kernels()
    for n in SIZES:
        one_round, gradient = measure(n)
        print(f"n = {n:4d}  round {one_round:8.3f} ms  gradient {gradient:8.3f} ms")


if __name__ == "__main__":
    main()
