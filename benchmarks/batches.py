"""Procrustes problems per second: many at once, and one after the other.

python benchmarks/batches.py

For each n the planted problems are solved in one call of `jorth.procrustes`, on one thread and on
two, and some of them one by one. The answers of both ways are compared.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import torch

import jorth
from jorth import Signature

SIZES = {3: (2, 20_000), 4: (3, 20_000), 8: (7, 4_000), 16: (15, 800), 33: (32, 200)}
"""n: the number of + signs, and of problems."""
NOISE = 0.1
SINGLES = 10


def problems(signature: Signature, count: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian sources and noisy images of them under random isometries, (count, m, n)."""
    rng = np.random.default_rng(0)
    planted = [jorth.random_point(signature, cond=4.0, seed=rng) for _ in range(min(count, 200))]
    X = np.stack(planted)[np.arange(count) % len(planted)]
    source = rng.standard_normal((count, m, signature.n))
    return source, source @ X + NOISE * rng.standard_normal((count, m, signature.n))


def rate(count: int, solve: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Problems per second, the median of three calls, and the values."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        values = solve()
        seconds.append(time.perf_counter() - start)
    return count / float(np.median(seconds)), values


def row(n: int, p: int, count: int) -> str:
    """A row of the table."""
    m, signature = max(20, 2 * n), Signature(p, n - p)
    source, target = problems(signature, count, m)

    def together() -> np.ndarray:
        return np.asarray(jorth.procrustes(source, target, signature).value)

    def one_by_one() -> np.ndarray:
        pairs = zip(source[:SINGLES], target[:SINGLES], strict=True)
        return np.array([jorth.procrustes(*pair, signature).value for pair in pairs])

    jorth.procrustes(source[:2], target[:2], signature)  # compiled and loaded before
    torch.set_num_threads(2)
    on_two, _ = rate(count, together)
    torch.set_num_threads(1)
    on_one, values = rate(count, together)
    alone, singles = rate(SINGLES, one_by_one)
    gap = np.abs(values[:SINGLES] / singles - 1).max()
    rates = f"{on_one:,.0f} | {on_two:,.0f} | {alone:,.0f}"
    return f"| {n} | {m} | {count:,} | {rates} | {gap:.0e} |"


def main() -> None:
    print("| n | m | problems | one thread, per second | two threads | one by one | largest gap |")
    print("|---|---|---|---|---|---|---|")
    for n, (p, count) in SIZES.items():
        print(row(n, p, count), flush=True)


if __name__ == "__main__":
    main()
