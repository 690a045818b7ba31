"""Gradients that J-JOBCD needs with tournaments and with single matchings (docs/howto/solvers.md).

python benchmarks/jobcd.py
"""

from __future__ import annotations

import torch

import jorth

SIGNATURE = jorth.Signature(25, 25)


def main() -> None:
    torch.set_num_threads(1)
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
