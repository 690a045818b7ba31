"""Bounds of `jorth.eigh_errors` beside the true errors of 1,000 problems, as in
docs/howto/algebra.md.

python benchmarks/eigh_errors.py [--quick]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mpmath
import numpy as np

import jorth

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "eigh_errors.png"
UNIT = 2.0**-53
KINDS = ("definite", "graded", "long vectors", "shifted", "clustered")


def problem(kind: str, seed: int) -> tuple[np.ndarray, jorth.Signature, float]:
    """(A, signature, mu) with A - mu J positive definite, n = 2 to 8."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(rng.integers(2, 9))
    p = int(rng.integers(1, n))
    signature = jorth.Signature.of(rng.permutation([1] * p + [-1] * (n - p)))
    shift = 0.0
    if kind in ("definite", "graded"):
        Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
        A = (Q * np.geomspace(1.0, 10 ** -rng.uniform(0, 10), n)) @ Q.T
        if kind == "graded":
            D = rng.permutation(np.geomspace(1.0, 10 ** -rng.uniform(0, 10), n))
            A = D[:, None] * A * D
    else:
        cond = 10 ** rng.uniform(0, 7 if kind == "long vectors" else 4)
        Y = jorth.random_point(signature, cond=cond, seed=int(rng.integers(2**31)))
        values = rng.uniform(1, 3, n)
        if kind == "clustered":
            values = np.where(rng.integers(2, size=n), 2.0, values + 10 ** -rng.uniform(0, 16))
        if kind == "shifted":
            shift = float(rng.uniform(-20, 20))
        A = Y.T @ np.diag(values + shift * signature.signs) @ Y
    return (A + A.T) / 2, signature, shift


def true_errors(
    A: np.ndarray, signature: jorth.Signature, values: np.ndarray, shift: float
) -> np.ndarray:
    """|values - lambda| from A - shift J at 100 digits, matched in the order of size."""
    with mpmath.workdps(100):
        J = mpmath.diag([int(s) for s in signature.signs])
        L = mpmath.cholesky(mpmath.matrix(A.tolist()) - mpmath.mpf(shift) * J)
        inverse = mpmath.inverse(L)
        product = inverse * J * inverse.T
        found = mpmath.eigsy((product + product.T) / 2, eigvals_only=True)
        exact = sorted(mpmath.mpf(shift) + 1 / kappa for kappa in found)
        errors = np.empty(len(values))
        for place, number in zip(np.argsort(values, kind="stable"), exact, strict=True):
            errors[place] = float(abs(mpmath.mpf(float(values[place])) - number))
    return errors


Measured = tuple[np.ndarray, ...]
"""Errors, bounds and n u ||A|| ||x||^2 of all eigenvalues, relative to the largest of their case,
and the number of the case of each."""


def measured(kind: str, count: int) -> Measured:
    rows = []
    for seed in range(count):
        A, signature, shift = problem(kind, seed)
        values, X = jorth.eigh(A, signature)
        found = jorth.eigh_errors(A, values, X, signature)
        first_order = signature.n * UNIT * np.linalg.norm(A, 2) * found.conditions
        errors = true_errors(A, signature, values, shift)
        size = np.abs(values).max()
        cases = np.full(signature.n, seed)
        rows.append([errors / size, found.bounds / size, first_order / size, cases])
    return tuple(np.concatenate(parts) for parts in zip(*rows, strict=True))


def table(found: dict[str, Measured]) -> None:
    """Whether the bounds hold, and how far they are above the errors."""
    print("| problems | cases | eigenvalues | bounds that hold | bound / error, largest of a case: "
          "median | 99% | most | within 100 | each eigenvalue within 100 |")  # fmt: skip
    print("|---" * 9 + "|")
    for kind, (errors, bounds, _, case) in found.items():
        cases = np.unique(case)
        worst = np.array([bounds[case == k].max() / errors[case == k].max() for k in cases])
        each = bounds / np.maximum(errors, np.finfo(float).tiny)
        print(
            f"| {kind} | {len(cases)} | {len(errors)} | {np.mean(errors <= bounds):.2%} "
            f"| {np.median(worst):.3g} | {np.quantile(worst, 0.99):.3g} | {worst.max():.3g} "
            f"| {np.mean(worst <= 100):.1%} | {np.mean(each <= 100):.1%} |"
        )


def plot(found: dict[str, Measured], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5.2), layout="constrained")
    axes = figure.subplots()
    low, high = 1e-28, 1.0
    estimates = [np.concatenate(parts) for parts in zip(*found.values(), strict=True)]
    axes.loglog(estimates[0], estimates[2], ".", color="0.8", ms=3, label="n u ‖A‖ ‖x‖²")
    for (kind, (errors, bounds, *_)), marker in zip(found.items(), "os^vD", strict=True):
        axes.loglog(errors, bounds, marker, ms=3, alpha=0.5, mew=0, label=f"bound, {kind}")
    line = np.array([low, high])
    axes.loglog(line, line, "k-", lw=0.8)
    axes.loglog(line, 100 * line, "k:", lw=0.8)
    axes.text(1e-6, 3e-4, "100 times\nthe error", fontsize=8, ha="right")
    axes.set(xlabel="true error / largest |λ|", ylabel="bound / largest |λ|")
    axes.set(xlim=(low, high), ylim=(low, high))
    axes.legend(loc="lower right", markerscale=2)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 problems of each kind, no file")
    quick = parser.parse_args().quick
    found = {kind: measured(kind, 20 if quick else 200) for kind in KINDS}
    table(found)
    if not quick:
        plot(found, IMAGE)


if __name__ == "__main__":
    main()
