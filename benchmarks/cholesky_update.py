"""Rows added to a Cholesky factor and dropped from it, beside a new factorisation.

python benchmarks/cholesky_update.py [--quick]

For each n, medians of the time of `jorth.cholesky_update` for one row and for ten, of
`scipy.linalg.cholesky` of a Gram matrix that is at hand, and of the same after the Gram matrix was
formed from R. The ways take turns, so that a busy moment hits all of them, each with one call
before the timed one. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import scipy.linalg

import jorth

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "cholesky_update.png"
SIZES = (50, 100, 200, 400, 800, 1600)
ROWS = (1, 10)
FORMED, AT_HAND = "form RᵀR and factor", "factor a stored Gram matrix"


def ways(n: int) -> dict[str, Callable[[], object]]:
    """What is timed, for a factor of 2 n rows of Gaussian data."""
    rng = np.random.default_rng(0)
    R = jorth.cholesky_update(np.zeros((n, n)), add=rng.standard_normal((2 * n, n)))
    gram = R.T @ R
    found: dict[str, Callable[[], object]] = {}
    for count in ROWS:
        rows = rng.standard_normal((count, n))
        longer = jorth.cholesky_update(R, add=rows)
        error = np.abs(longer.T @ longer - gram - rows.T @ rows).max() / np.abs(gram).max()
        assert error < 1e-12, error
        found[f"add {count}"] = partial(jorth.cholesky_update, R, add=rows)
        found[f"drop {count}"] = partial(jorth.cholesky_update, longer, drop=rows)
    found[AT_HAND] = lambda: scipy.linalg.cholesky(gram, check_finite=False)
    found[FORMED] = lambda: scipy.linalg.cholesky(R.T @ R, check_finite=False)
    return found


def medians(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each, in seconds."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            call()
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def shown(seconds: float) -> str:
    unit, size = ("μs", 1e6) if seconds < 9.95e-5 else ("ms", 1e3)
    digits = 0 if seconds * size >= 9.95 else 1 if seconds * size >= 0.995 else 2
    return f"{seconds * size:.{digits}f} {unit}"


def plot(table: dict[int, dict[str, float]]) -> None:
    from matplotlib import pyplot

    styles = {"add 1": ("C0", "o-"), "drop 1": ("C0", "s--")}
    styles |= {"add 10": ("C2", "o-"), "drop 10": ("C2", "s--")}
    styles |= {AT_HAND: ("0.5", "-"), FORMED: ("0.2", "-")}
    figure, axes = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, (color, line) in styles.items():
        label = f"{name} row" + "s" * name.endswith("0") if name[-1].isdigit() else name
        times = [row[name] for row in table.values()]
        axes.plot(list(table), times, line, color=color, label=label)
    axes.set(xscale="log", yscale="log", xlabel="n", ylabel="CPU seconds")
    axes.set_xticks(list(table), [str(n) for n in table])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(IMAGE, dpi=130)
    print(IMAGE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and no picture")
    quick = parser.parse_args().quick
    table = {}
    for n in SIZES[:3] if quick else SIZES:
        table[n] = medians(ways(n), 5 if quick else max(9, 6000 // n))
    names = list(next(iter(table.values())))
    print(f"| n | {' | '.join(names)} |")
    print("|---" * (1 + len(names)) + "|")
    for n, row in table.items():
        print(f"| {n} | {' | '.join(shown(row[name]) for name in names)} |")
    if not quick:
        plot(table)


if __name__ == "__main__":
    main()
