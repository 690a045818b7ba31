"""Speed of the plane solvers, one core, medians of repeats in one run: the tables of
docs/results/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from jorth.plane import apply_rows, random_matching, solve_plane


def median_seconds(call: Callable[[], object], device: str = "cpu", repeats: int = 15) -> float:
    call()  # compile and warm up
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def compiled_pairs() -> None:
    from jorth.plane._numba import compiled, kronecker_step

    @compiled
    def solve_pairs(P, Y, A, opposite, all_components):
        total = 0.0
        for t in range(len(P)):
            p, y, a = P[t], Y[t], A[t]
            plus, minus = y[0, 0] + 2 * y[0, 1] + y[1, 1], y[0, 0] - 2 * y[0, 1] + y[1, 1]
            total += kronecker_step(
                (p[0, 0], p[0, 1], p[1, 0], p[1, 1]), (y[0, 0], y[0, 1], y[1, 1], plus, minus),
                (a[0, 0], a[0, 1], a[1, 1]), 0.0, opposite[t], all_components,
            )[4]  # fmt: skip
        return total

    count, rng = 20_000, np.random.default_rng(0)
    P, *roots = rng.standard_normal((3, count, 2, 2))
    Y, A = (root @ root.swapaxes(-1, -2) for root in roots)
    print("\ncompiled, one pair after the other, Q = Y (x) A, microseconds per pair")
    for name, opposite in (("opposite signs", True), ("equal signs", False)):
        for components in ("all", "identity"):
            flags = np.full(count, opposite)
            seconds = median_seconds(partial(solve_pairs, P, Y, A, flags, components == "all"))
            print(f"  {name:15s} {components:9s} {seconds / count * 1e6:.3f}")


def batches(device: str) -> None:
    print(f"\nbatched torch on {device}, mixed signs, all components, million pairs per second")
    for count in (10_000, 100_000, 1_000_000, *((10_000_000,) if device == "cuda" else ())):
        few, rng = min(count, 1_000_000), np.random.default_rng(0)
        M = rng.standard_normal((few, 4, 4))
        P, Q = rng.standard_normal((few, 2, 2)), M @ M.swapaxes(1, 2)
        parts = (P, Q, rng.choice([-1, 1], (few, 2)))
        P, Q, signs = (
            torch.from_numpy(part).to(device).repeat(count // few, *[1] * (part.ndim - 1))
            for part in parts
        )
        for dtype in (torch.float64, torch.float32):
            call = partial(solve_plane, P.to(dtype), Q.to(dtype), signs, check=False)
            rate = count / median_seconds(call, device, 7) / 1e6
            print(f"  {count:9d} pairs {str(dtype)[6:]:8s} {rate:8.2f}")


def products(device: str) -> None:
    print(f"\napply_rows on {device}, n x n float64, one matching: GB/s, each row read and written")
    for n in (200, 1000, 4000):
        X = torch.eye(n, dtype=torch.float64, device=device)
        pairs = torch.from_numpy(random_matching(n, seed=0)).to(device)
        V = torch.eye(2, dtype=torch.float64, device=device).expand(n // 2, 2, 2).contiguous()
        seconds = median_seconds(partial(apply_rows, X, pairs, V), device)
        print(f"  n = {n:5d}  {2 * 8 * n * n / seconds / 1e9:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = parser.parse_args().device
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor()
    print(f"torch {torch.__version__}, numpy {np.__version__}, {name or platform.machine()}")
    if device == "cpu":
        compiled_pairs()
    batches(device)
    products(device)


if __name__ == "__main__":
    main()
