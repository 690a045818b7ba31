"""Evaluations that the strategies need on planted Procrustes, as plots in docs/images.

python benchmarks/strategies.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import jorth

DOCS = Path(__file__).parent.parent / "docs" / "images"


def gradients_to_gap(n: int, gap: float, limit: int) -> dict[str, dict]:
    """Gradient evaluations of J-JOBCD to a relative gap: one random matching, greedy, a tournament
    a gradient."""
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(2 * n, signature, seed=0)
    objective = jorth.Procrustes(source, target)
    first = objective.value(torch.eye(n, dtype=torch.float64)).item()
    methods = {
        "random matching, scalar curvature (the paper)": jorth.Jacobi(
            rounds_per_gradient=1, curvature=objective.curvature()
        ),
        "random matching": jorth.Jacobi(rounds_per_gradient=1),
        "greedy matching": jorth.Jacobi(rounds_per_gradient=1, matching="greedy"),
        "tournament per gradient": jorth.Jacobi(),
    }
    found = {}
    for name, method in methods.items():
        result = jorth.minimize(
            objective,
            signature=signature,
            method=method,
            gradient_tolerance=0.0,
            max_evaluations=limit * objective.samples,
            max_iterations=limit,
            stop=jorth.stopping.ValueBelow(gap * first),
        )
        found[name] = {
            "gradients": result.history["gradient_evaluations"].tolist(),
            "gap": (result.history["value"] / first).tolist(),
            "to_gap": int(result.evaluations.gradient) if result.value <= gap * first else None,
        }
        print(f"  {name:48s} {found[name]['to_gap']}", flush=True)
    return found


class Reached(Exception):
    pass


def samples_to_gap(N: int, gap: float, method: str, seed: int) -> int:
    """Sample-gradient calls until f is below the gap, scored off the counts after every step."""
    signature = jorth.Signature(5, 5)
    source, target, _ = jorth.datasets.planted_procrustes(
        N, signature, source_condition=3.0, seed=100 + seed
    )
    objective = jorth.Procrustes(source, target)
    first = objective.value(torch.eye(10, dtype=torch.float64)).item()
    calls = {"count": 0}
    exact, sampled, value = objective.value_and_gradient, objective.sample_gradient, objective.value

    def check(X: torch.Tensor) -> None:
        if value(X).item() <= gap * first:
            raise Reached

    def counted_full(X):
        calls["count"] += N
        check(X)
        return exact(X)

    def counted_sample(X, index):
        calls["count"] += len(index)
        check(X)
        return sampled(X, index)

    objective.value_and_gradient, objective.sample_gradient = counted_full, counted_sample  # type: ignore[method-assign]
    try:
        jorth.minimize(
            objective,
            signature=signature,
            method=method,
            gradient_tolerance=0.0,
            max_time=300,
            seed=seed,
        )
    except Reached:
        return calls["count"]
    raise RuntimeError(f"{method} did not reach {gap} at N = {N}")


def draw_gradients(found: dict[str, dict], gap: float, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for name, row in found.items():
        label = f"{name}: {row['to_gap'] if row['to_gap'] else 'not reached'}"
        axes.loglog(np.maximum(row["gradients"], 1), row["gap"], label=label)
    axes.axhline(gap, color="0.7", linewidth=0.8)
    axes.set(
        xlabel="gradient evaluations",
        ylabel="relative gap",
        title="J-JOBCD on planted Procrustes, n = 50, p = 25",
    )
    figure.legend(loc="outside lower center", fontsize=8, ncols=2)
    figure.savefig(path, dpi=150)


def draw_samples(
    table: dict[str, dict[int, list[int]]], slopes: dict[str, float], gap: float, path: Path
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4), layout="constrained")
    axes = figure.subplots()
    for method, rows in table.items():
        sizes = list(rows)
        axes.loglog(
            sizes,
            [np.median(rows[N]) for N in sizes],
            "o-",
            label=f"{method}: N^{slopes[method]:.2f}",
        )
        axes.fill_between(
            sizes, [min(rows[N]) for N in sizes], [max(rows[N]) for N in sizes], alpha=0.2
        )
    axes.set(
        xlabel="samples N",
        ylabel="sample-gradient calls",
        title=f"Calls to a relative gap of {gap:g}, planted Procrustes n = 10",
    )
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, no files")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    DOCS.mkdir(parents=True, exist_ok=True)
    gap = 1e-3
    print("J-JOBCD, gradients to a relative gap of 1e-3, n = 50")
    found = gradients_to_gap(12 if quick else 50, gap, 2000 if quick else 60_000)
    sizes, seeds = ((100, 1000), (0,)) if quick else ((1000, 10_000, 100_000), (0, 1, 2))
    print("sample-gradient calls to a relative gap of 1e-6, n = 10")
    table = {
        method: {N: [samples_to_gap(N, 1e-6, method, seed) for seed in seeds] for N in sizes}
        for method in ("j-jobcd", "vr-j-jobcd")
    }
    slopes = {
        method: float(np.polyfit(np.log(sizes), np.log([np.median(rows[N]) for N in sizes]), 1)[0])
        for method, rows in table.items()
    }
    print(json.dumps({"calls": table, "exponents": slopes}, indent=1))
    if not quick:
        draw_gradients(found, gap, DOCS / "jacobi_gradients.png")
        draw_samples(table, slopes, 1e-6, DOCS / "variance_reduced_samples.png")


if __name__ == "__main__":
    main()
