"""A few eigenpairs of A x = lambda J x beside scipy's eigsh, as in docs/results/partial_eigen.md.

python benchmarks/partial_eigen.py [--quick] [--plot docs/images/partial_eigen.png]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, eigsh

import jorth

Pairs = tuple[np.ndarray, np.ndarray]
EIGSH, PROVED, PLAIN, FREE, DENSE = (
    "eigsh(J, M=A)",
    "eigh, subset",
    "eigh, subset, verify=False",
    "eigh, LinearOperator",
    "eigh, all pairs",
)
LARGEST_DENSE = 1100


def grid(side: int, dimensions: int) -> sp.csr_array:
    """The Laplacian of a grid plus a small random diagonal."""
    line = sp.diags_array(
        [-np.ones(side - 1), 2 * np.ones(side), -np.ones(side - 1)], offsets=[-1, 0, 1]
    )
    A = line
    for _ in range(dimensions - 1):
        A = sp.kronsum(A, line)
    return (A + sp.diags_array(0.01 * np.random.default_rng(0).random(A.shape[0]))).tocsr()


def problems(quick: bool) -> Iterator[tuple[str, sp.csr_array, jorth.Signature, tuple[int, int]]]:
    sides = {2: [32, 71, 141], 3: [10, 17, 27]}
    for dimensions in (2, 3):
        for side in sides[dimensions][: 1 if quick else 3]:
            A = grid(side, dimensions)
            n = A.shape[0]
            half = jorth.Signature(n // 2, n - n // 2)
            yield f"{dimensions}D grid, half and half", A, half, (5, 5)
            yield f"{dimensions}D grid, Lorentz", A, jorth.Signature.lorentz(n), (5, 1)


def by_eigsh(A: sp.csr_array, signature: jorth.Signature, counts: tuple[int, int]) -> Pairs:
    """J x = m A x with lambda = 1 / m: the ends of the spectrum, and columns scaled."""
    J = sp.diags_array(signature.signs.astype(float)).tocsr()
    if counts[0] == counts[1]:
        m, V = eigsh(J, k=sum(counts), M=A.tocsc(), which="BE")
    else:
        ends = [
            eigsh(J, k=k, M=A.tocsc(), which=which)
            for k, which in zip(counts, ("LA", "SA"), strict=True)
        ]
        m, V = (np.concatenate(parts, axis=-1) for parts in zip(*ends, strict=True))
    order = np.argsort(-1 / m)  # negative ones last
    order = np.concatenate([order[m[order] > 0][::-1], order[m[order] < 0]])
    return 1 / m[order], V[:, order] / np.sqrt(np.abs(m[order]))


def methods(
    A: sp.csr_array, signature: jorth.Signature, counts: tuple[int, int], products: list[int]
) -> dict[str, Callable[[], Pairs]]:
    def multiply(x: np.ndarray) -> np.ndarray:
        products.append(1 if x.ndim == 1 else x.shape[1])
        return A @ x

    operator = LinearOperator(A.shape, matvec=multiply, matmat=multiply, dtype=np.float64)
    unproved = jorth.Subset(*counts, verify=False)
    found = {
        EIGSH: lambda: by_eigsh(A, signature, counts),
        PROVED: lambda: jorth.eigh(A, signature, subset=counts),
        PLAIN: lambda: jorth.eigh(A, signature, subset=unproved),
        FREE: lambda: jorth.eigh(operator, signature, subset=counts),
    }
    if A.shape[0] <= LARGEST_DENSE:
        found[DENSE] = lambda: jorth.eigh(A.toarray(), signature)
    return found


def quality(A: sp.csr_array, signature: jorth.Signature, pairs: Pairs) -> tuple[float, float]:
    """The largest ||A x - lambda J x|| / (||A||_1 ||x||), and max |X^T J X - diag(+-1)|."""
    values, X = pairs
    J = signature.signs[:, None]
    R = A @ X - J * X * values
    size = abs(A).sum(axis=0).max() * np.linalg.norm(X, axis=0)
    gram = X.T @ (J * X)
    wanted = np.diag(np.sign(np.diagonal(gram)))
    return float((np.linalg.norm(R, axis=0) / size).max()), float(np.abs(gram - wanted).max())


def measure(repeats: int, quick: bool) -> list[tuple[str, int, str, float, float, float, int]]:
    rows = []
    for name, A, signature, counts in problems(quick):
        products: list[int] = []
        ways = methods(A, signature, counts, products)
        times: dict[str, list[float]] = {way: [] for way in ways}
        answers: dict[str, Pairs] = {}
        for _ in range(repeats):
            products.clear()
            for way, call in ways.items():
                start = time.perf_counter()
                answers[way] = call()
                times[way].append(time.perf_counter() - start)
        for way in ways:
            seconds = statistics.median(times[way])
            ratio = seconds / statistics.median(times[EIGSH])
            residual, gram = quality(A, signature, answers[way])
            count = sum(products) if way == FREE else 0
            rows.append((name, A.shape[0], way, seconds, ratio, residual, gram, count))
            print(
                f"| {name} | {A.shape[0]:,} | {way} | {seconds:.2f} | {ratio:.2f} | {residual:.0e} "
                f"| {gram:.0e} | {count or '-'} |",
                flush=True,
            )
    return rows


def draw(rows: list[tuple], path: str) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = plt.subplots(
        1, len(names), figsize=(3.4 * len(names), 3.6), sharex=True, sharey=True
    )
    for axis, name in zip(np.atleast_1d(axes), names, strict=True):
        for way in (EIGSH, PROVED, PLAIN, FREE, DENSE):
            own = [(row[1], row[3]) for row in rows if row[0] == name and row[2] == way]
            if own:
                axis.loglog(*zip(*own, strict=True), marker="o", label=way)
        axis.set_title(name)
        axis.set_xlabel("n")
        axis.grid(alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("seconds")
    lines, labels = np.atleast_1d(axes)[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="lower center", ncols=5, fontsize=9, frameon=False)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="n = 1,000 only, once")
    parser.add_argument("--plot", help="draw the times to this file")
    arguments = parser.parse_args()
    print("| problem | n | method | seconds | of eigsh | residual | XᵀJX | products |")
    print("|---|---|---|---|---|---|---|---|")
    rows = measure(1 if arguments.quick else 3, arguments.quick)
    if arguments.plot:
        draw(rows, arguments.plot)


if __name__ == "__main__":
    main()
