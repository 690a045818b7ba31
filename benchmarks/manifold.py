"""The accuracy of the logarithm beside SciPy's, and means in the Poincaré disc, as in
docs/howto/manifold.md.

python benchmarks/manifold.py
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mpmath
import numpy as np
import scipy.linalg

import jorth
from jorth import ultrahyperbolic

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "manifold.png"
SIGNATURE = jorth.Signature(3, 2)
PLANE = jorth.Signature(2, 1)
METHODS = ("jorth.log", "scipy.linalg.logm")


def boost(size: float, seed: int) -> np.ndarray:
    """A random symmetric K in the Lie algebra with ||K||_2 = size."""
    B = np.random.default_rng(seed).standard_normal((SIGNATURE.p, SIGNATURE.q))
    K = np.zeros((SIGNATURE.n, SIGNATURE.n))
    K[:3, 3:], K[3:, :3] = B, B.T
    return K * (size / np.linalg.norm(K, 2))


def errors(K: np.ndarray) -> tuple[float, float, float]:
    """||X||_2 of X = exp(K), rounded from 60 digits, and the relative errors of both methods."""
    with mpmath.workdps(60):
        X = np.array(mpmath.expm(mpmath.matrix(K.tolist())).tolist(), dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's estimate of its own error
        found = jorth.log(X, SIGNATURE), np.real(scipy.linalg.logm(X))
    ours, theirs = (float(np.linalg.norm(L - K) / np.linalg.norm(K)) for L in found)
    return float(np.linalg.norm(X, 2)), ours, theirs


def accuracy(sizes: np.ndarray, repeats: int) -> np.ndarray:
    """||X|| and the medians of both errors for each size of K (sizes, 3); they are printed."""
    rows = []
    for size in sizes:
        found = np.median([errors(boost(size, seed)) for seed in range(repeats)], axis=0)
        rows.append(found)
        print(f"  ||K|| = {size:8.2g}: ||X|| = {found[0]:8.2g}, {found[1]:8.1e} {found[2]:8.1e}")
    return np.array(rows)


def disc(x: np.ndarray) -> np.ndarray:
    """Points of the hyperboloid (..., 3) in the Poincaré disc (..., 2)."""
    return x[..., :2] / (1 + x[..., 2:])


def cloud() -> np.ndarray:
    """Eight points of the hyperbolic plane: seven near each other, one far away."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal([-0.4, -0.3], 0.5, (7, 2)), [[40.0, 25.0]]])
    return ultrahyperbolic.lift(np.concatenate([x, np.ones((8, 1))], axis=1), PLANE)


def draw_means(axes: Any) -> None:
    x = cloud()
    mean = ultrahyperbolic.frechet_mean(x, PLANE)
    centre = ultrahyperbolic.centroid(x, PLANE)
    times = np.linspace(0, 1, 60)[:, None]
    for point in x:
        v = ultrahyperbolic.log(mean, point, PLANE)
        axes.plot(*disc(ultrahyperbolic.exp(mean, times * v, PLANE)).T, color="0.7", linewidth=0.8)
    axes.plot(*disc(x).T, "o", color="C0", markersize=4, label="points")
    axes.plot(*disc(mean), "o", color="C3", markersize=8, label="Fréchet mean")
    axes.plot(*disc(centre), "s", color="C1", markersize=6, label="centroid")
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(angle), np.sin(angle), color="black", linewidth=0.8)
    axes.set(title="Poincaré disc", aspect="equal", xticks=[], yticks=[])
    axes.axis("off")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.03), ncol=3, fontsize=8)


def draw(table: np.ndarray, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for column, (name, style) in enumerate(zip(METHODS, ("o-", "s--"), strict=True), start=1):
        left.loglog(table[:, 0], np.maximum(table[:, column], 1e-17), style, label=name)
    left.loglog(table[:, 0], 2.0**-53 * table[:, 0], ":", color="0.5", label="u ‖X‖")
    left.set(title="log of a boost", xlabel="‖X‖", ylabel="relative error", ylim=(1e-17, 1))
    left.legend()
    draw_means(right)
    figure.savefig(path, dpi=120)
    print(f"written: {path}")


def main() -> None:
    print("relative errors of " + " and ".join(METHODS) + ", medians")
    print("short ones")
    accuracy(np.array([1e-12, 1e-6, 1e-2]), 9)
    print("boosts")
    draw(accuracy(np.array([0.7, 1, 2, 3, 5, 7, 9, 11, 12, 14, 16]), 9), IMAGE)


if __name__ == "__main__":
    main()
