"""Gradients that J-JOBCD needs (docs/howto/solvers.md), and training steps beside Adam's.

python benchmarks/jobcd.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

import jorth

SIGNATURE = jorth.Signature(25, 25)


def step_times(shape: tuple[int, ...], count: int = 60) -> list[str]:
    """Return the processor time in ms of a step of JOBCD and of Adam, in turns: [least, median]."""
    p = torch.nn.Parameter(torch.eye(shape[-1]).repeat(*shape[:-2], 1, 1))
    signature = jorth.Signature(shape[-1] // 2, shape[-1] - shape[-1] // 2)
    steps: list[Any] = [jorth.optim.JOBCD([p], signature, lr=1e-3), torch.optim.Adam([p], lr=0.0)]
    times: list[list[float]] = [[], []]
    for turn in range(66 + count):  # after 64 turns tournaments recur
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(turn))
        for optimiser, own in zip(steps, times, strict=True):
            start = time.process_time()
            optimiser.step()
            own.append(1e3 * (time.process_time() - start))
    return [f"{min(own[66:]):.3g} | {statistics.median(own[66:]):.3g}" for own in times]


def main() -> None:
    torch.set_num_threads(1)
    print("| matrices, float32 | JOBCD, least | median | Adam, least | median |")
    print("|---|---|---|---|---|")
    for shape in ((64, 64), (256, 256), (474, 8, 8), (474, 32, 32)):
        print(f"| {shape} | {' | '.join(step_times(shape))} |", flush=True)
    source, target, _ = jorth.datasets.planted_procrustes(100, SIGNATURE, seed=0)
    f = jorth.Procrustes(source, target)
    first = float(f.value_and_gradient(torch.eye(50, dtype=torch.float64))[0])
    one_matching = dict(rounds_per_gradient=1, components="all")
    methods = {
        "a tournament per gradient": jorth.Jacobi(),
        "one random matching": jorth.Jacobi(**one_matching),
        "as printed, sigma = L": jorth.as_printed("j-jobcd", sigma=f.curvature()),
    }
    for name, method in methods.items():
        result = jorth.minimize(
            f,
            signature=SIGNATURE,
            method=method,
            stop=jorth.stopping.ValueBelow(1e-3 * first),
            gradient_tolerance=0.0,
            max_iterations=100_000,
        )
        print(f"{name}: {result.evaluations.gradient} gradients, {result.status.name}", flush=True)


if __name__ == "__main__":
    main()
