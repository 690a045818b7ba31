"""What the theorems of the paper promise, and what its algorithms do: docs/background/paper.md.

Every method runs exactly as printed (`jorth.as_printed`). It takes a minute or two:

    python benchmarks/paper/theory.py
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch

import jorth

SIGNATURE = jorth.Signature(3, 3)
SEEDS = range(100, 105)


def quadratic(seed: int) -> tuple[jorth.Quadratic, np.ndarray]:
    """A convex quadratic with a linear term, and a start."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((12, 6))
    start = jorth.random_point(SIGNATURE, cond=3.0, seed=seed)
    return jorth.Quadratic(A.T @ A / 12, rng.standard_normal((6, 6))), start


def block_stationarity(theta: float, steps: int = 150) -> float:
    """Return the mean over seeds of theta / (2 Delta_0) sum_t E(X_t), at most 1 by Theorem 4.6.

    All planes are solved before every step, of which one is taken.
    """
    shares = []
    pairs = np.array([(i, j) for i in range(6) for j in range(i)])
    signs = SIGNATURE.signs[pairs]
    for seed in SEEDS:
        f, X = quadratic(seed)
        form, rng, total, values = f.quadratic(), np.random.default_rng(seed), 0.0, []
        A, C = form.A.numpy(), form.C.numpy()
        for _ in range(steps):
            G = A @ X + C
            values.append(0.5 * (X * (G + C)).sum())
            Z = X[pairs]
            block = pairs[:, :, None], pairs[:, None, :]
            Q = np.einsum("bij,bkl->bikjl", Z @ Z.mT, A[block]).reshape(-1, 4, 4)
            V = jorth.solve_plane((G @ X.T)[block], Q, signs, theta=theta).V
            total += ((V - np.eye(2)) ** 2).sum((1, 2)).mean()
            pick = rng.integers(len(pairs))
            X = X.copy()
            X[pairs[pick]] = V[pick] @ X[pairs[pick]]
        assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()
        shares.append(theta * total / (2 * (values[0] - values[-1])))
    return float(np.mean(shares))


def samples_needed(method: str, count: int, tolerance: float = 1e-3) -> float:
    """Return the median of the sample gradients until the relative gradient is small."""
    found = []
    for seed in SEEDS:
        sig = SIGNATURE
        source, target, _ = jorth.datasets.planted_procrustes(
            count, sig, noise=0.1, source_condition=2.0, point_condition=2.0, seed=seed
        )
        f = jorth.Procrustes(source, target)
        x0 = np.asarray(jorth.random_point(sig, cond=1.5, seed=seed))
        # a bound on the curvature of f along the rows of every X on the way
        sigma = 4 * float(f.curvature()) * np.linalg.norm(x0, 2) ** 2
        run = jorth.minimize(
            f,
            x0,
            signature=sig,
            method=jorth.as_printed(method, sigma=sigma),
            stop=jorth.stopping.RelativeGradient(tolerance),
            gradient_tolerance=0.0,
            max_iterations=20_000,
            seed=seed,
        )
        found.append(run.evaluations.sample_gradient if run.success else np.inf)
    return float(np.median(found))


def rate(weak: bool) -> tuple[float, float]:
    """The length of the path, and what a fit of the distance to the limit says.

    The fit is log distance = a + b t for a strongly curved f (b is returned) and = a + b log t for
    f = <X - Y, X - Y>^2 / 4 (sigma = 3/4, for which Theorem 4.11 has b = -1/2).
    """
    target = torch.from_numpy(np.asarray(jorth.random_point(SIGNATURE, cond=2.0, seed=3)))

    def f(X: torch.Tensor) -> torch.Tensor:
        square = (X - target).square().sum()
        return square.square() / 4 if weak else square / 2

    points: list[np.ndarray] = []
    start = jorth.random_point(SIGNATURE, cond=1.5, seed=4)
    jorth.minimize(
        f,
        start,
        signature=SIGNATURE,
        method=jorth.as_printed("gs-jobcd", sigma=200.0 if weak else 20.0),
        callback=lambda X, row: points.append(np.array(X)),
        gradient_tolerance=0.0,
        max_iterations=800 if weak else 120,
    )
    length = sum(np.linalg.norm(b - a) for a, b in pairwise(points))
    distance = np.array([np.linalg.norm(X - target.numpy()) for X in points])
    use = np.arange(len(distance) // 4, len(distance))
    use = use[distance[use] > 1e-12]
    axis = np.log(use) if weak else use
    return length, float(np.polyfit(axis, np.log(distance[use]), 1)[0])


def main() -> None:
    torch.set_num_threads(1)
    print("Theorem 4.6: theta / (2 Delta_0) sum E(X_t), at most 1")
    for theta in (0.1, 1.0, 10.0):
        print(f"  theta = {theta:5g}: {block_stationarity(theta):.3f}")
    sizes = (64, 256, 1024, 4096)
    print("Sample gradients to a relative gradient of 1e-3")
    for method in ("j-jobcd", "vr-j-jobcd"):
        needed = [samples_needed(method, size) for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log(needed), 1)[0]
        shown = ", ".join(
            f"N = {size}: {count:.3g}" for size, count in zip(sizes, needed, strict=True)
        )
        print(f"  {method}: {shown}; they grow like N^{slope:.2f}")
    for weak, name in ((False, "strongly curved"), (True, "quartic")):
        length, slope = rate(weak)
        law = f"t^{slope:.2f}" if weak else f"exp({slope:.3f} t), t in sweeps"
        print(f"GS-JOBCD, {name}: length {length:.2f}; distance to the limit like {law}")


if __name__ == "__main__":
    main()
