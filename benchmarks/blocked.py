"""GS-JOBCD by blocks against single pairs: time to the same decrease, both in one run, on one core.

Planted noisy Procrustes from the identity, p = n/2 and 0.9n, source condition 3 and 30. Per
repeat: two sweeps of single pairs, which set the value to reach; then sweeps by blocks until they
are as low. CPU time, interleaved, medians; of the last sweep by blocks only the part that is
needed is counted, in proportion to the decrease.

    taskset -c 0 python benchmarks/blocked.py --sizes 1000 --repeats 3
    taskset -c 0 python benchmarks/blocked.py --profile --sizes 1000
    OMP_NUM_THREADS=2 python benchmarks/blocked.py --profile --wall --sizes 1000
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections import Counter

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import jorth
from jorth.plane import all_pairs
from jorth.plane.proximal import StepRule
from jorth.solvers.jobcd import quadratic_sweeps
from jorth.solvers.jobcd.majorised import compile_kernels
from jorth.solvers.jobcd.quadratic_sweeps import (
    BlockedSweep,
    PairwiseSweep,
    SweepForm,
    rows_of_a_block,
)

RULE = StepRule(-1e-12, all_components=False, stop_unbounded=True)


class Task:
    """f = 1/2 tr(X^T A X) + <C, X> of a planted Procrustes problem, and sweeps on it."""

    def __init__(self, n, p, condition, seed):
        signature = jorth.Signature(p, n - p)
        source, target, _ = jorth.datasets.planted_procrustes(
            2 * n, signature, noise=0.1, source_condition=condition, seed=seed
        )
        self.A, self.C, self.signs = (
            source.T @ source / (2 * n),
            -source.T @ target / (2 * n),
            signature.signs,
        )

    def value(self, X):
        return 0.5 * np.vdot(X, self.A @ X) + np.vdot(self.C, X)

    def pairwise(self, X, rng):
        form, pairs = SweepForm(self.A, self.C, None), all_pairs(len(X), seed=rng)
        return PairwiseSweep(form, X, self.signs, pairs, RULE)

    def blocked(self, X, rng, size):
        form, order = SweepForm(self.A, self.C, None), rng.permutation(len(X))
        return BlockedSweep(form, X, self.signs, order, size, RULE)


def trace(make, task, X, rng, *, sweeps=None, below=-np.inf):
    """(CPU seconds, wall seconds, value) after each sweep."""
    rows = [(0.0, 0.0, task.value(X))]
    while len(rows) - 1 != sweeps and rows[-1][2] > below:
        cpu, wall = time.process_time(), time.perf_counter()
        sweep = make(X, rng)
        for _ in sweep.run():
            pass
        X = sweep.rows()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        rows.append((rows[-1][0] + cpu, rows[-1][1] + wall, task.value(X)))
    return rows


def seconds_to(rows, value, clock):
    """When the value was reached: between two sweeps in proportion to the decrease."""
    for before, after in itertools.pairwise(rows):
        if after[2] <= value:
            return before[clock] + (after[clock] - before[clock]) * (before[2] - value) / (
                before[2] - after[2]
            )
    raise AssertionError("the value was not reached")


def compare(n, p, condition, size, repeats, sweeps):
    ratios, plain_times, block_times = {0: [], 1: []}, [], []
    for repeat in range(repeats):
        task, start = Task(n, p, condition, seed=repeat), np.eye(n)
        plain = trace(
            task.pairwise, task, start.copy(), np.random.default_rng(repeat), sweeps=sweeps
        )
        target = plain[-1][2]
        block = trace(
            lambda X, rng, task=task: task.blocked(X, rng, size),
            task,
            start,
            np.random.default_rng(repeat),
            below=target,
        )
        for clock in (0, 1):
            ratios[clock].append(plain[-1][clock] / seconds_to(block, target, clock))
        plain_times.append(plain[-1][0] / sweeps)
        block_times.append(block[-1][0] / (len(block) - 1))
    return ratios, statistics.median(plain_times), statistics.median(block_times)


def profile(n, size, clock):
    """Seconds of a sweep by what it is spent on: the methods of `BlockedSweep`, timed."""
    task, spent = Task(n, n // 2, 3.0, seed=0), Counter()

    class Timed(BlockedSweep):
        def _timed(self, name, *arguments):
            since = clock()
            result = getattr(super(), name)(*arguments)
            spent[name.strip("_").replace("_", " ")] += clock() - since
            return result

        def _product(self, *arguments):
            return self._timed("_product", *arguments)

        def _pair_steps(self, *arguments):
            return self._timed("_pair_steps", *arguments)

        def _store(self, *arguments):
            return self._timed("_store", *arguments)

        def _apply(self, *arguments):
            return self._timed("_apply", *arguments)

    X, sweeps, since = np.eye(n), 4, 0.0
    for sweep in range(sweeps + 1):
        if sweep == 1:
            spent.clear()
            since = clock()
        order = np.random.default_rng(sweep).permutation(n)
        timed = Timed(task.A, task.C, None, X, task.signs, order, size, RULE)
        for _ in timed.run():
            pass
        X = timed.rows()
    total = (clock() - since) / sweeps
    parts = {name: seconds / sweeps for name, seconds in spent.most_common()}
    parts["other"] = total - sum(parts.values())
    return total, parts


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000])
    parser.add_argument(
        "--block", type=int, help="rows of a block; the library's choice by default"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--wall", action="store_true", help="profile by the clock on the wall, for several threads"
    )
    arguments = parser.parse_args()
    compile_kernels()
    for n in arguments.sizes:
        size = arguments.block or max(rows_of_a_block(n), min(quadratic_sweeps.SIZES.values()))
        if arguments.profile:
            total, parts = profile(
                n, size, time.perf_counter if arguments.wall else time.process_time
            )
            shown = ", ".join(f"{name} {seconds:.3f}" for name, seconds in parts.items())
            print(f"n = {n}, blocks of {size}: {total:.3f} s a sweep: {shown}", flush=True)
            continue
        for p in (n // 2, round(0.9 * n)):
            for condition in (3.0, 30.0):
                ratios, plain, block = compare(
                    n, p, condition, size, arguments.repeats, arguments.sweeps
                )
                print(
                    f"n = {n}, p = {p}, condition {condition:2.0f}, blocks of {size}: "
                    f"{plain:.3f} s a sweep of pairs, {block:.3f} by blocks; same decrease in "
                    f"1/{statistics.median(ratios[0]):.2f} of the CPU time ({min(ratios[0]):.2f} "
                    "to "
                    f"{max(ratios[0]):.2f}), 1/{statistics.median(ratios[1]):.2f} of the wall time",
                    flush=True,
                )


if __name__ == "__main__":
    main()
