"""How far "auto" is from the best method, on functions that played no part in its rules.

python benchmarks/auto.py [--sizes 4 8 16 32 64] [--seeds 5] [--limit 0.75] [--only NAME ...]

The time is processor time to 1e-8 of the fall of f, on one thread, and the ratio that of auto to
the fastest of the others; of runs below 50 ms, the best of three. Where methods end in different
minima the lowest one counts, and a run that does not get there in the limit is "not there".
Problems that no method finishes are compared by the value at the limit.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch.nn import functional as F

import jorth
from jorth.solvers.problem import Clock

METHODS = ("riemannian-newton", "riemannian-lbfgs", "j-jobcd")
QUADRATIC_METHODS = (*METHODS, "gs-jobcd")
PART = 1e-8
Problem = tuple[Any, jorth.Signature, Any]


class Data:
    """Rows S and T = S X + noise with a planted X, labels and a random generator."""

    def __init__(self, n: int, seed: int) -> None:
        self.rng = np.random.default_rng([seed, n])
        q = 1 if seed % 2 else max(1, n // 3)
        self.signature = jorth.Signature(n - q, q)
        self.S = torch.from_numpy(
            self.rng.standard_normal((4 * n, n)) * self.rng.uniform(0.2, 1, n)
        )
        X = torch.from_numpy(jorth.random_point(self.signature, cond=6.0, seed=seed))
        self.T = self.S @ X + 0.2 * torch.from_numpy(self.rng.standard_normal((4 * n, n)))
        self.mask = torch.from_numpy(self.rng.random((4 * n, n)) < 0.5)
        self.labels = (self.T + torch.from_numpy(self.rng.gumbel(size=(4 * n, n)))).argmax(1)
        self.A = torch.from_numpy(np.array([self.definite(10.0) for _ in range(3)]))

    def definite(self, condition: float) -> np.ndarray:
        n = self.signature.n
        Q = np.linalg.qr(self.rng.standard_normal((n, n)))[0]
        return (Q * np.geomspace(1, 1 / condition, n)) @ Q.T


def off_diagonal(M: torch.Tensor) -> torch.Tensor:
    return (M - torch.diag_embed(M.diagonal(dim1=-2, dim2=-1))).square().sum()


def directly(S: torch.Tensor, T: torch.Tensor) -> torch.Tensor:
    """Distances whose second derivatives autograd does not have."""
    return torch.cdist(S, T, compute_mode="donot_use_mm_for_euclid_dist")


FUNCTIONS: dict[str, Callable[[Data], Callable[[torch.Tensor], torch.Tensor]]] = {
    "Geman-McClure": lambda d: lambda X: ((e := (d.S @ X - d.T).square()) / (1 + e)).mean(),
    "fourth powers": lambda d: lambda X: (d.S @ X - d.T).pow(4).mean(),
    "cross entropy": lambda d: lambda X: (
        F.cross_entropy(d.S @ X, d.labels) + 1e-3 * X.square().sum()
    ),
    "Poisson": lambda d: lambda X: (
        ((Y := d.S @ X).exp() - d.T.clamp(min=0) * Y).mean() + 1e-3 * X.square().sum()
    ),
    "InfoNCE": lambda d: lambda X: (
        F.cross_entropy(d.S @ X @ d.T.mT, torch.arange(len(d.S))) + 1e-3 * X.square().sum()
    ),
    "stress": lambda d: lambda X: (
        ((d.S[:, None] - d.S[:8]) @ X).square().sum(2)
        - (d.T[:, None] - d.T[:8]).square().sum(2)
    ).square().mean(),
    "log det": lambda d: lambda X: torch.logdet(torch.eye(len(X)).double() + X.mT @ d.A[0] @ X),
    "joint diagonal": lambda d: lambda X: off_diagonal(X.mT @ d.A @ X) + 1e-2 * X.square().sum(),
    "squared hinge": lambda d: lambda X: (
        (1 - d.T.sign() * (d.S @ X)).clamp(min=0).square().mean() + 1e-3 * X.square().sum()
    ),
    "completion": lambda d: lambda X: ((d.S @ X - d.T) * d.mask).square().sum() / 2,
    "divergence": lambda d: lambda X: F.kl_div(
        (d.S @ X).log_softmax(1), d.T.softmax(1), reduction="batchmean"
    ) + 1e-3 * X.square().sum(),
    "cosines": lambda d: lambda X: (
        (1 - F.cosine_similarity(d.S @ X, d.T)).mean() + 1e-3 * X.square().sum()
    ),
    "distances": lambda d: lambda X: (directly(d.S @ X, d.T[:8]).square() + 0.1).sqrt().mean(),
    "Huber": lambda d: lambda X: F.huber_loss(d.S @ X, d.T, delta=0.2),
}  # fmt: skip


def quadratics(d: Data) -> dict[str, tuple[Any, Any]]:
    """Objectives and starts."""
    n, signs, rng = d.signature.n, np.diag(d.signature.signs.astype(float)), d.rng
    C, k = rng.standard_normal((n, n)), max(1, d.signature.p // 2)
    thin = jorth.random_point(d.signature, cond=4.0, columns=(k, 0), seed=1)
    weights = np.diag(rng.uniform(0.5, 2, n))
    steep = d.S * torch.from_numpy(np.geomspace(1, 1e-2, n))
    rows = (steep, steep @ d.A[0] + d.T)

    def loss(X: torch.Tensor, batch: Any) -> torch.Tensor:
        return (batch[0] @ X - batch[1]).square().sum() / (2 * len(batch[0]))

    return {
        "D, A by a shift": (jorth.Quadratic(d.definite(20) - 1.5 * signs, D=weights), None),
        "indefinite D": (jorth.Quadratic(d.definite(20), D=weights + 1.5 * signs), None),
        "D and C": (jorth.Quadratic(d.definite(5), 0.3 * C, weights), None),
        "condition 1e4, C": (jorth.Quadratic(d.definite(1e4), 1e-2 * C), None),
        "thin trace": (jorth.Quadratic(d.definite(50) + signs), thin),
        "thin with C": (jorth.Quadratic(d.definite(20), C[:, :k].copy()), thin),
        "finite sum": (jorth.FiniteSum(loss, rows), None),
    }


def times(problem: Problem, methods: tuple[str, ...], limit: float) -> tuple[str, float]:
    """Return what became of the problem, and the ratio."""
    objective, signature, x0 = problem
    runs: dict[str, jorth.Result] = {}
    for _, method in itertools.product(range(3), (*methods, "auto")):
        known = runs.get(method)
        if known is None or known.time < 0.05:
            run = jorth.minimize(
                objective, x0, signature=signature, method=method, max_time=limit,
                gradient_tolerance=1e-9,
            )  # fmt: skip
            runs[method] = run if known is None else min(run, known, key=lambda run: run.time)
    values = {method: np.minimum.accumulate(run.history["value"]) for method, run in runs.items()}
    first, low = values["auto"][0], min(value[-1] for value in values.values())
    spent = {}
    for method, run in runs.items():
        there = np.nonzero(values[method] <= low + PART * (first - low))[0]
        spent[method] = run.history["time"][there[0]] if len(there) else np.inf
    best = min(spent[method] for method in methods)
    lowest = min(runs, key=lambda method: values[method][-1])
    if runs[lowest].status is jorth.Status.MAX_TIME and not spent["auto"] < limit / 2:
        gap = (values["auto"][-1] - low) / (first - low)
        return "unfinished", gap
    if not np.isfinite(spent["auto"]):
        return "not there", np.inf
    return "there", spent["auto"] / best


def report(name: str, results: list[tuple[str, float]]) -> None:
    ratios, gaps, missed = (
        np.array([number for kind, number in results if kind == wanted])
        for wanted in ("there", "unfinished", "not there")
    )
    alone, shown = int((ratios == 0).sum()), ratios[ratios > 0]
    median, worst = (np.median(shown), shown.max()) if len(shown) else (np.nan, np.nan)
    counts = f"{(ratios > 1.5).sum()} | {alone} | {len(missed)}"
    ends = f"{len(gaps)}, {(gaps > 1e-2).sum()}"
    print(f"| {name} | {len(results)} | {median:.2f} | {worst:.2f} | {counts} | {ends} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--limit", type=float, default=0.75)
    parser.add_argument("--only", nargs="+")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    Clock.now = time.process_time
    warm = Data(4, 0)
    for objective, x0 in [(FUNCTIONS["Huber"](warm), None), *quadratics(warm).values()]:
        times((objective, warm.signature, x0), QUADRATIC_METHODS, 0.1)  # compiles
    names = arguments.only or (*FUNCTIONS, *quadratics(warm))
    results: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for n, name in itertools.product(arguments.sizes, names):
            data = Data(n, seed)
            if name in FUNCTIONS:
                problem, methods = (FUNCTIONS[name](data), data.signature, None), METHODS
            else:
                objective, x0 = quadratics(data)[name]
                problem, methods = (objective, data.signature, x0), QUADRATIC_METHODS
            kind, ratio = times(problem, methods, arguments.limit)
            results[name].append((kind, ratio))
            print(f"{name}, n = {n}, seed {seed}: {kind} {ratio:.2f}", file=sys.stderr, flush=True)
    print("| f | problems | median | worst | > 1.5 | auto alone | not there | unfinished, behind |")
    print("|---" * 8 + "|")
    for name in names:
        report(name, results[name])


if __name__ == "__main__":
    main()
