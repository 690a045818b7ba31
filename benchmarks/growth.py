"""How cost grows with n and with the number of samples N: seconds, fitted exponents, one picture.
One core.

taskset -c 1 python benchmarks/growth.py --output growth.json --plot docs/images/growth.png
python benchmarks/growth.py --draw growth.json --plot docs/images/growth.png
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
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
from jorth.solvers.jobcd.quadratic_sweeps import SIZES, rows_of_a_block

N_SIZES = (50, 100, 200, 400, 800, 1600)
SAMPLES = (10**3, 10**4, 10**5, 10**6)
WIDTH = 20
"""n of the finite sums."""


def blocks(n):
    return kernels.sweep(n, rows_of_a_block(n)) if n >= min(SIZES) else None


def iteration(n):
    return kernels.lbfgs_iteration(n, "cpu") if n <= 1000 else None


def finite_sum(samples):
    """Mean squared distances |s_i X - t_i|^2 / 2 by autograd, on rows that an isometry and noise
    make."""
    signature = jorth.Signature(WIDTH // 2, WIDTH - WIDTH // 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        samples, signature, noise=0.1, source_condition=3.0, seed=0
    )

    def loss(X, batch):
        return (batch[0] @ X - batch[1]).square().sum() / (2 * len(batch[0]))

    return jorth.FiniteSum(loss, (source, target)), signature


def sum_gradient(samples):
    objective, _ = finite_sum(samples)
    X = torch.eye(WIDTH, dtype=torch.float64)
    return kernels.seconds(lambda: objective.value_and_gradient(X), loops=max(1, 10**5 // samples))


def reduced_step(samples):
    """The mean step of VR-J-JOBCD over enough steps for some passes over all samples."""
    objective, signature = finite_sum(samples)
    steps = int(min(3000, max(100, 4 * samples**0.5)))
    taken = []
    for seed in range(3):
        options = dict(signature=signature, method="vr-j-jobcd", gradient_tolerance=0.0, seed=seed)
        result = jorth.minimize(objective, max_iterations=steps, **options)
        taken.append(result.time / result.iterations)
    return statistics.median(taken)


BY_N = {
    "GS sweep, pairs": lambda n: kernels.sweep(n, 1, repeats=3 if n < 1600 else 1),
    "GS sweep, blocks": blocks,
    "Jacobi round": kernels.gradient_round,
    "gradient, Quadratic": lambda n: kernels.gradient(n, torch.float64, "cpu"),
    "L-BFGS iteration": iteration,
}
BY_SAMPLES = {"gradient, FiniteSum": sum_gradient, "VR-J-JOBCD step": reduced_step}


def measure(table, sizes):
    """For each name the sizes and seconds."""
    found = {}
    for name, call in table.items():
        for size in sizes:
            taken = call(size)
            if taken is not None:
                found.setdefault(name, []).append((size, taken))
                print(f"{name:22s} {size:8d} {taken:10.3g} s", flush=True)
    return found


def exponent(points):
    """The slope of log seconds over log size."""
    size, taken = np.log(np.array(points)).T
    return float(np.polyfit(size, taken, 1)[0])


def table(found):
    """A line a name: seconds by size, the exponent over all sizes, and over the last three."""
    for names in found.values():
        for name, points in names.items():
            shown = "  ".join(f"{size}: {taken:.3g}" for size, taken in points)
            print(
                f"{name:22s} {shown}   all {exponent(points):.2f}, last three "
                f"{exponent(points[-3:]):.2f}"
            )


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, both = plt.subplots(1, 2, figsize=(10, 4))
    for axes, (label, names) in zip(both, found.items(), strict=True):
        for name, points in names.items():
            axes.loglog(
                *zip(*points, strict=True), "o-", ms=4, label=f"{name}, {exponent(points[-3:]):.1f}"
            )
        axes.set(xlabel=label, ylabel="seconds")
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8, title="exponent over the last three sizes", title_fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path)
    parser.add_argument("--draw", type=Path, metavar="JSON")
    parser.add_argument("--plot", type=Path)
    arguments = parser.parse_args()
    if arguments.draw:
        found = json.loads(arguments.draw.read_text())
    else:
        torch.set_num_threads(1)
        compile_kernels()
        found = {"n": measure(BY_N, N_SIZES), "N": measure(BY_SAMPLES, SAMPLES)}
    table(found)
    if arguments.output:
        arguments.output.write_text(json.dumps(found, indent=1))
    if arguments.plot:
        draw(found, arguments.plot)


if __name__ == "__main__":
    main()
