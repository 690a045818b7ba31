"""How cost grows with n and with the number of samples N: milliseconds per iteration, one core.

taskset -c 1 python benchmarks/growth.py

Planted Procrustes with p = n / 2 from the identity; finite sums with n = 20. The exponents are fits
over the last three sizes.
"""

from __future__ import annotations

import argparse
import os
import time
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import jorth

SIZES = (50, 100, 200, 400, 800)
SAMPLES = (10**3, 10**4, 10**5, 10**6)
WIDTH = 20  # n of the finite sums
REPEATS = 3
ITERATIONS = {"gs-jobcd": 3, "j-jobcd": 3, "riemannian-lbfgs": 8, "riemannian-newton": 4}


def planted(n, rows):
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        rows, signature, noise=0.1, source_condition=3.0, seed=0
    )
    return source, target, signature


def iteration(objective, signature, method, count):
    """The median over repeats of the mean seconds of ``count`` iterations."""
    taken = []
    for _ in range(REPEATS):
        result = jorth.minimize(
            objective,
            signature=signature,
            method=method,
            max_iterations=count,
            gradient_tolerance=0.0,
        )
        taken.append(result.time / max(1, result.iterations))
    return median(taken)


def gradient(objective, n):
    """The median seconds of value and gradient at I."""
    X = torch.eye(n, dtype=torch.float64)
    taken = []
    for _ in range(4 * REPEATS):
        began = time.process_time()
        objective.value_and_gradient(X)
        taken.append(time.process_time() - began)
    return median(taken)


def finite_sum(samples):
    source, target, signature = planted(WIDTH, samples)

    def loss(X, batch):
        return (batch[0] @ X - batch[1]).square().sum() / (2 * len(batch[0]))

    return jorth.FiniteSum(loss, (source, target)), signature


def row(name, sizes, seconds):
    slope = np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0]
    cells = [name, *(f"{1e3 * taken:.3g}" for taken in seconds), f"{slope:.1f}"]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes alone")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    sizes, samples = (SIZES[:2], SAMPLES[:2]) if quick else (SIZES, SAMPLES)
    print(f"| ms per iteration, n | {' | '.join(map(str, sizes))} | exponent |")
    for method, count in ITERATIONS.items():
        seconds = []
        for n in sizes:
            source, target, signature = planted(n, 2 * n)
            objective = jorth.Procrustes(source, target)
            seconds.append(iteration(objective, signature, method, count))
        print(row(method, sizes, seconds), flush=True)
    seconds = [gradient(jorth.Procrustes(*planted(n, 2 * n)[:2]), n) for n in sizes]
    print(row("value and gradient", sizes, seconds))
    print(f"\n| ms, N | {' | '.join(map(str, samples))} | exponent |")
    sums = [finite_sum(count) for count in samples]
    seconds = [gradient(objective, WIDTH) for objective, _ in sums]
    print(row("gradient of FiniteSum", samples, seconds), flush=True)
    steps = [int(min(1000, max(100, 4 * count**0.5))) for count in samples]
    seconds = [iteration(*found, "vr-j-jobcd", k) for found, k in zip(sums, steps, strict=True)]
    print(row("step of VR-J-JOBCD", samples, seconds))


if __name__ == "__main__":
    main()
