"""What runs on a GPU, by whole calls: the tables of docs/results/performance_gpu.md.

python benchmarks/gpu.py
python benchmarks/gpu.py --device cpu --quick    # that the script runs; the figures mean nothing

- Jacobi: a round of n/2 exact pair steps, beside the time in which the device copies its bytes.
- L-BFGS: whole runs on planted noisy Procrustes from I to a relative gap of 1e-8.
- Training: a step of `jorth.optim.JOBCD` beside fused Adam.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from statistics import median

import torch

import jorth

ROUNDS = 32  # per gradient
SHAPES = ((1, 33), (62, 8), (1000, 8), (10_000, 4), (64, 64), (1, 256), (64, 256))


def seconds(work, device, repeats=5):
    """The median wall time of a call, after one that compiles."""
    work()
    taken = []
    for _ in range(repeats):
        wait(device)
        began = time.perf_counter()
        work()
        wait(device)
        taken.append(time.perf_counter() - began)
    return median(taken)


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def copy_rate(device, numbers):
    source = torch.randn(numbers, dtype=torch.float64, device=device)
    target = torch.empty_like(source)
    return 16 * numbers / seconds(lambda: target.copy_(source), device)


def planted(n, condition, device, rows=None):
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        rows or 2 * n, signature, source_condition=condition, noise=0.1, seed=0
    )
    return torch.from_numpy(source).to(device), torch.from_numpy(target).to(device), signature


def jacobi(device, sizes, rate):
    print(f"copy rate {rate / 1e12:.2f} TB/s\n| n | us per round | over the bytes |\n|---|---|---|")
    for n in sizes:
        source, target, signature = planted(n, 3.0, device)
        options = dict(signature=signature, gradient_tolerance=0.0)
        method = jorth.Jacobi(rounds_per_gradient=ROUNDS)
        run = partial(jorth.minimize, jorth.Procrustes(source, target), method=method, **options)
        short, long = (seconds(partial(run, max_iterations=most), device) for most in (4, 24))
        taken = (long - short) / (20 * ROUNDS)  # with 20 gradients, without the start of a run
        print(f"| {n} | {1e6 * taken:.0f} | {taken * rate / (8 * 8 * n * n):.2f} |", flush=True)


def lbfgs(device, sizes):
    print("\n| n, condition | iterations | s |\n|---|---|---|")
    for n, condition in product(sizes, (3.0, 30.0)):
        source, target, signature = planted(n, condition, device)
        f = jorth.Procrustes(source, target)
        options = dict(signature=signature, method="riemannian-lbfgs")
        best = jorth.minimize(f, gradient_tolerance=1e-12, **options)
        first = float(f.value(torch.eye(n, dtype=torch.float64, device=device)))
        stop = jorth.stopping.ValueBelow(best.value + 1e-8 * (first - best.value))
        result = jorth.minimize(f, stop=stop, gradient_tolerance=0.0, **options)
        print(f"| {n}, {condition:g} | {result.iterations} | {result.time:.3f} |", flush=True)


def training(device, shapes):
    print("\n| b x n | us per step | fused Adam, us |\n|---|---|---|")
    for b, n in shapes:
        signature = jorth.Signature(n - 1, 1)
        X = torch.eye(n, device=device).expand(b, n, n).contiguous()
        ours, plain = (torch.nn.Parameter(X.clone()) for _ in range(2))
        gradient = torch.randn_like(X)
        ours.grad, plain.grad = gradient, gradient.clone()
        steps = (
            jorth.optim.JOBCD([ours], signature).step,
            torch.optim.Adam([plain], fused=device == "cuda").step,
        )
        cells = [f"{1e6 * seconds(step, device, 30):.0f}" for step in steps]
        print(f"| {b} x {n} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="small sizes alone")
    args = parser.parse_args()
    quick, device = args.quick, args.device
    rate = copy_rate(device, 2**20 if quick else 2**28)
    jacobi(device, (32,) if quick else (1024, 2048, 4096, 8192), rate)
    lbfgs(device, (32,) if quick else (1024, 4096))
    training(device, SHAPES[:2] if quick else SHAPES)


if __name__ == "__main__":
    main()
