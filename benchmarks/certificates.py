"""Certificates of `jorth.procrustes`: are its bounds right, and how often is the gap closed?

Every problem is planted. The oracle takes the best of many feasible points: for J = diag(1, -1) a
grid over all components, else the ends of runs from the planted point and from random points in
every component, with f computed from the rows.

    python benchmarks/certificates.py random --problems 10000    # any signature, n = 2..6
    python benchmarks/certificates.py planted --problems 200     # a table, and the picture
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import jorth
from jorth import Signature
from jorth.datasets import planted_procrustes

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "certificates.png"
CLOSED = 1e-6
NOISES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
CONDITIONS = (10.0, 100.0, 1000.0)
SAME = 1e-6
"""Values that differ by less, relatively, are those of the same minimum."""


@dataclass
class Problem:
    """A planted problem."""

    signature: Signature
    source: np.ndarray
    target: np.ndarray
    planted: np.ndarray

    def value(self, X: np.ndarray) -> np.ndarray:
        """f (...,) from the rows, for X (..., n, n)."""
        parts = self.source @ X - self.target
        return np.square(parts).sum((-2, -1)) / (2 * len(self.source))


def problem(sig: Signature, noise: float, conditions: tuple[float, float], m: int, seed: int):
    """A planted problem; X of a definite signature is orthogonal."""
    point = conditions[1] if 0 < sig.p < sig.n else 1.0
    data = planted_procrustes(
        m, sig, noise=noise, source_condition=conditions[0], point_condition=point, seed=seed
    )
    return Problem(sig, *data)


def random_problem(seed: int) -> Problem:
    """Any signature with n = 2..6, and noise, conditions and m of all sizes."""
    rng = np.random.default_rng([seed, 20])
    n = int(rng.integers(2, 7))
    signs = np.ones(n, dtype=int)
    signs[rng.permutation(n)[: rng.integers(0, n + 1)]] = -1
    conditions = tuple(10.0 ** rng.uniform(0, 3, 2))
    noise = 10.0 ** rng.uniform(-6, 1)
    return problem(Signature.of(signs), noise, conditions, int(rng.integers(n, 40)), seed)


@cache
def random_starts(signs: tuple[int, ...]) -> np.ndarray:
    """Six points in every component, the further ones ever further out."""
    sig = Signature.of(signs)
    definite = sig.p in (0, sig.n)
    components = [
        (a, b) for a in ((1, -1) if sig.p else (1,)) for b in ((1, -1) if sig.q else (1,))
    ]
    return np.stack(
        [
            jorth.random_point(
                sig, cond=1.0 if definite else 3.0**trial, component=which, seed=trial
            )
            for which in components
            for trial in range(6)
        ]
    )


def oracle(given: Problem) -> float:
    """The least f of many feasible points."""
    sig = given.signature
    starts = random_starts(tuple(map(int, sig.signs)))
    near = jorth.polish(given.planted @ starts[::3], sig)
    X0 = np.concatenate([given.planted[None], starts, near])
    m = len(given.source)
    A, C = given.source.T @ given.source / m, -given.source.T @ given.target / m
    stacked = [np.broadcast_to(part, X0.shape).copy() for part in (A, C)]
    ends = jorth.minimize(jorth.Quadratic(*stacked[:1], C=stacked[1]), X0, signature=sig)
    feasible = np.nan_to_num(np.asarray(ends.residual), nan=1.0) < 1e-12
    values = given.value(np.asarray(ends.x))[feasible]
    if sig.n == 2 and sig.p == 1:
        values = np.append(values, grid_minimum(given))
    return float(np.nanmin(values))


def grid_minimum(given: Problem) -> float:
    """The least f over a grid of all boosts in the plane, refined around the best of each."""
    best = np.inf
    for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        low, high = -6.0, 6.0
        for _ in range(8):
            t = np.linspace(low, high, 401)
            cosh, sinh = np.cosh(t), np.sinh(t)
            X = np.moveaxis(np.array([[a * cosh, b * sinh], [a * sinh, b * cosh]]), 2, 0)
            f = given.value(X)
            at = int(f.argmin())
            low, high = t[max(at - 1, 0)], t[min(at + 1, 400)]
        best = min(best, float(f.min()))
    return best


def rounding(given: Problem, value: float) -> float:
    """How far f of a computed point may be below the least one of exactly J-orthogonal points.

    Such a point violates the constraint by n u ||X||^2, which the multiplier turns into f.
    """
    n, m = given.signature.n, len(given.source)
    size = float(np.linalg.norm(given.planted))
    reach = float(np.linalg.norm(given.source)) * size + float(np.linalg.norm(given.target))
    error = 4 * n * 2.0**-53 * reach * max(1.0, size**2)
    return error * (np.sqrt(2 * m * value) + error) / m


def judge(given: Problem) -> dict[str, object]:
    """What `procrustes` says, and what the oracle knows."""
    result = jorth.procrustes(given.source, given.target, given.signature)
    least = oracle(given)
    planted = float(given.value(given.planted))
    certified = "; certified" in result.message
    slack = rounding(given, least)
    above = result.value > (1 + SAME) * min(least, planted) + slack
    return {
        "certified": certified,
        "closed": result.gap <= CLOSED,
        "above the planted value": result.value > (1 + SAME) * planted + slack,
        "above the oracle": above,
        "above the oracle, certified": above and certified,
        "bound above the oracle": result.bound > least + slack,
        "converged": result.success,
        "runs": len(result.stages),
        "gap": result.gap,
    }


def table(rows: list[dict[str, object]]) -> dict[str, float]:
    """How often each thing happened."""
    counts: Counter[str] = Counter()
    for row in rows:
        for name, value in row.items():
            if name != "gap":
                counts[name] += int(value)
    return {"problems": len(rows), **counts, "largest gap": max(float(r["gap"]) for r in rows)}


def random(problems: int, first: int) -> None:
    """Problems of all kinds: the bound must always hold."""
    rows = []
    for seed in range(first, first + problems):
        rows.append(judge(random_problem(seed)))
        if len(rows) % 500 == 0 or len(rows) == problems:
            print(json.dumps(table(rows)), flush=True)


def planted(problems: int, sizes: tuple[int, int], file: Path) -> None:
    """The share of certified answers, by noise and condition; kept in a file for the picture."""
    m, n = sizes
    shares = {}
    for name, sig in (("Lorentz", Signature.lorentz(n)), ("balanced", Signature(n // 2, n // 2))):
        for condition in CONDITIONS:
            for noise in NOISES:
                given = [
                    problem(sig, noise, (condition, condition), m, seed) for seed in range(problems)
                ]
                rows = [judge(one) for one in given]
                shares[f"{name}, {condition:g}, {noise:g}"] = table(rows)
                print(name, condition, noise, json.dumps(table(rows)), flush=True)
    file.write_text(json.dumps(shares, indent=1) + "\n")


def draw(file: Path, to: Path = PICTURE) -> None:
    """The share of certified answers against the noise."""
    import matplotlib.pyplot as plt

    shares = json.loads(file.read_text())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, name in zip(axes, ("Lorentz", "balanced"), strict=True):
        for condition, marker in zip(CONDITIONS, "osD", strict=True):
            cells = [shares[f"{name}, {condition:g}, {noise:g}"] for noise in NOISES]
            percent = [100 * cell["certified"] / cell["problems"] for cell in cells]
            axis.plot(NOISES, percent, marker=marker, label=f"condition {condition:g}")
        axis.set(xscale="log", xlabel="noise", title=f"{name}, n = 4", ylim=(0, 104))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("certified answers (%)")
    axes[0].legend(loc="lower left")
    figure.savefig(to, dpi=130)


def main() -> None:
    """Run a study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=["random", "planted", "draw"])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--file", type=Path, default=Path("certificates.json"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.study == "random":
        random(given.problems, given.first)
        return
    if given.study == "planted":
        planted(given.problems, (40, 4), given.file)
    draw(given.file)


if __name__ == "__main__":
    main()
