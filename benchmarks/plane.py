"""Speed of the plane solvers, one core, medians of repeats in one run: the tables of
docs/results/performance.md."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from jorth.plane import apply_rows, random_matching, solve_plane

REPEATS = 15


def median_seconds(
    call: Callable[[], object], synchronise: Callable[[], None], repeats: int = REPEATS
) -> float:
    call()  # compile and warm up
    times = []
    for _ in range(repeats):
        synchronise()
        start = time.perf_counter()
        call()
        synchronise()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def problems(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((count, 4, 4))
    return rng.standard_normal((count, 2, 2)), M @ M.swapaxes(1, 2), rng.choice([-1, 1], (count, 2))


def scalar_rows() -> None:
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

    count = 20_000
    P, *_ = problems(count)
    roots = np.random.default_rng(1).standard_normal((2, count, 2, 2))
    Y, A = roots @ roots.swapaxes(-1, -2)
    print("\ncompiled, one pair after the other, Q = Y (x) A, microseconds per pair")
    for name, opposite in (("opposite signs", True), ("equal signs", False)):
        flags = np.full(count, opposite)
        for components in ("all", "identity"):
            seconds = median_seconds(
                lambda f=flags, c=components: solve_pairs(P, Y, A, f, c == "all"), lambda: None
            )
            print(f"  {name:15s} {components:9s} {seconds / count * 1e6:.3f}")


def batched_rows(device: str) -> None:
    synchronise = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    print(f"\nbatched torch on {device}, mixed signs, all components, million pairs per second")
    for count in (10_000, 100_000, 1_000_000, *((10_000_000,) if device == "cuda" else ())):
        P, Q, signs = (torch.from_numpy(t).to(device) for t in problems(min(count, 1_000_000)))
        repeat = count // len(P)
        P, Q, signs = P.repeat(repeat, 1, 1), Q.repeat(repeat, 1, 1), signs.repeat(repeat, 1)
        for dtype in (torch.float64, torch.float32):
            p, q = P.to(dtype), Q.to(dtype)
            seconds = median_seconds(
                lambda p=p, q=q, s=signs: solve_plane(p, q, s, check=False), synchronise, 7
            )
            rate = count / seconds / 1e6
            print(f"  {count:9d} pairs {str(dtype)[6:]:8s} {rate:8.2f}")


def apply_rows_table(device: str) -> None:
    synchronise = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    print(
        f"\napply_rows on {device}, n x n float64, one matching, GB/s of the floor (each row "
        "read and written once)"
    )
    for n in (200, 1000, 4000):
        X = torch.eye(n, dtype=torch.float64, device=device)
        pairs = torch.from_numpy(random_matching(n, seed=0)).to(device)
        V = torch.eye(2, dtype=torch.float64, device=device).expand(n // 2, 2, 2).contiguous()
        seconds = median_seconds(lambda X=X, p=pairs, V=V: apply_rows(X, p, V), synchronise)
        print(f"  n = {n:5d}  {2 * 8 * n * n / seconds / 1e9:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = parser.parse_args().device
    torch.set_num_threads(1)
    processor = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else platform.processor() or platform.machine()
    )
    print(
        f"torch {torch.__version__}, numpy {np.__version__}, Python {platform.python_version()}, "
        f"{processor}"
    )
    if device == "cpu":
        scalar_rows()
    batched_rows(device)
    apply_rows_table(device)


if __name__ == "__main__":
    main()
