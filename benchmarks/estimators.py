"""HyperbolicPCA beside tangent-space and Euclidean PCA; LorentzAligner beside the Cramer-Rao
bound: docs/howto/estimators.md.

python benchmarks/estimators.py [--quick]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import jorth
from jorth import Signature
from jorth.estimators import HyperbolicPCA, LorentzAligner
from jorth.estimators.hyperbolic_pca import _boost_to as boost_to
from jorth.estimators.hyperbolic_pca import _lift as lift
from jorth.estimators.hyperbolic_pca import _with_lengths as with_lengths

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PLANE_NOISES = (0.001, 0.01, 0.03, 0.1, 0.3)
NOISES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)


# -- trees and distances


def tree(d: int, depth: int, *, edge: float = 1.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The nodes (m, d + 1) of a tree with three children a node, and the parent of each.

    As Sarkar's construction does in the plane: seen from a node, its children lie at the length of
    an edge on the other side than its parent. In the plane they are spread evenly; elsewhere their
    directions are drawn at random. Then the whole is moved away from the origin.
    """
    rng = np.random.default_rng(seed)
    frames, parents, level = [np.eye(d + 1)], [-1], [0]
    for _ in range(depth):
        following = []
        for node in level:
            for turn in (-1, 0, 1):
                away = None if node == 0 else onwards(frames[node], frames[parents[node]])
                direction = fanned(away, turn) if d == 2 else drawn(away, d, rng)
                frames.append(boost_to(direction * np.sinh(edge)) @ frames[node])
                parents.append(node)
                following.append(len(frames) - 1)
        level = following
    nodes = np.stack([frame[0] for frame in frames])
    return nodes @ jorth.random_point(Signature.lorentz(d + 1), cond=20.0, seed=seed), np.array(
        parents
    )


def onwards(frame: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """The direction away from the parent, in the frame of a node."""
    there = parent[0] @ jorth.inverse(frame, Signature.lorentz(len(frame)))
    return -there[1:] / np.linalg.norm(there[1:])


def fanned(away: np.ndarray | None, turn: int) -> np.ndarray:
    angle = turn * (2 * np.pi / 3 if away is None else np.pi / 3)
    x, y = (1.0, 0.0) if away is None else away
    return np.array([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)])


def drawn(away: np.ndarray | None, d: int, rng: np.random.Generator) -> np.ndarray:
    direction = rng.standard_normal(d) * np.linspace(1.0, 0.3, d)
    direction /= np.linalg.norm(direction)
    return direction if away is None else direction * np.sign(direction @ away)


def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Hyperbolic distances of rows, 2 asinh(|x - y|_J / 2): no cancellation for near points."""
    squares = np.square(x - y) @ Signature.lorentz(x.shape[1]).signs
    return 2 * np.arcsinh(np.sqrt(np.maximum(squares, 0)) / 2)


def distances(points: np.ndarray) -> np.ndarray:
    """Of all pairs."""
    i, j = np.triu_indices(len(points), 1)
    return distance(points[i], points[j])


def noisy_plane(d: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A tree in a hyperbolic plane of H^d, and the same with every node moved at random by about
    ``noise`` sqrt(d)."""
    plane = tree(2, 4)[0]
    clean = lift(np.hstack([plane[:, 1:], np.zeros((len(plane), d - 2))]))
    clean = clean @ jorth.random_point(Signature.lorentz(d + 1), cond=4.0, seed=1)
    tangent = noise * np.random.default_rng(0).standard_normal((len(clean), d))
    steps = lift(with_lengths(tangent, np.sinh))
    return clean, np.stack(
        [step @ boost_to(node[1:]) for step, node in zip(steps, clean, strict=True)]
    )


# -- three ways down to k dimensions: the points (m, d + 1) of the subspace that stand for the given
# ones


def hyperbolic(points: np.ndarray, k: int) -> np.ndarray:
    model = HyperbolicPCA(k, input="hyperboloid").fit(points)
    return model.inverse_transform(model.transform(points))


def tangent(points: np.ndarray, k: int) -> np.ndarray:
    """PCA of the logarithms at the base point of hyperbolic PCA."""
    model = HyperbolicPCA(input="hyperboloid").fit(points)
    at_base = model.transform(points)
    axes = np.linalg.svd(at_base, full_matrices=False)[2][:k]
    return model.inverse_transform(at_base @ axes.T @ axes)


def euclidean(points: np.ndarray, k: int) -> np.ndarray:
    """PCA of the space coordinates, lifted."""
    model = PCA(k, svd_solver="full").fit(points[:, 1:])
    return lift(model.inverse_transform(model.transform(points[:, 1:])))


WAYS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = dict(
    hyperbolic=hyperbolic, tangent=tangent, Euclidean=euclidean
)


def losses(
    points: np.ndarray, k: int, clean: np.ndarray | None = None
) -> dict[str, tuple[float, float, float]]:
    """Of each way: mean sinh^2(distance moved), mean distance moved (from the clean points),
    distortion.

    Distortion is the mean of |c d' / d - 1| over all pairs, with the best factor c.
    """
    reference = points if clean is None else clean
    true, found = distances(reference), {}
    for name, way in WAYS.items():
        moved = way(points, k)
        sinh2 = (
            4
            * np.square(np.sinh(distance(points, moved) / 2))
            * np.square(np.cosh(distance(points, moved) / 2))
        )
        ratio = distances(moved) / true
        ratio *= ratio.sum() / np.square(ratio).sum()
        found[name] = sinh2.mean(), distance(reference, moved).mean(), np.abs(ratio - 1).mean()
    return found


def table(
    title: str, points: np.ndarray, ks: tuple[int, ...], clean: np.ndarray | None = None
) -> dict[int, dict[str, tuple[float, float, float]]]:
    print(
        f"{title}: {points.shape[0]} points of H^{points.shape[1] - 1}; mean sinh^2, mean "
        "distance, distortion"
    )
    rows = {k: losses(points, k, clean) for k in ks}
    for k, row in rows.items():
        print(
            f"  k = {k:2d}: "
            + "   ".join(f"{name} {a:9.3g} {b:.4f} {c:.4f}" for name, (a, b, c) in row.items())
        )
    return rows


def poincare(space: np.ndarray) -> np.ndarray:
    return space / (1 + np.sqrt(1 + np.square(space).sum(axis=1, keepdims=True)))


def draw_tree(
    points: np.ndarray, clean: np.ndarray, rows: list[dict[str, tuple[float, float, float]]]
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 3)
    parents = tree(2, 4)[1]
    for axes, (title, nodes) in zip(
        panels,
        {"the tree": clean, "found in noisy points of H¹⁰": hyperbolic(points, 2)}.items(),
        strict=False,
    ):
        disc = poincare(
            HyperbolicPCA(2, input="hyperboloid", output="hyperboloid").fit_transform(nodes)[:, 1:]
        )
        axes.plot(
            np.cos(np.linspace(0, 7, 200)),
            np.sin(np.linspace(0, 7, 200)),
            color="0.7",
            linewidth=0.8,
        )
        for node, parent in enumerate(parents):
            if parent >= 0:
                axes.plot(*disc[[node, parent]].T, color="0.6", linewidth=0.5)
        axes.plot(*disc.T, "o", markersize=2.5)
        axes.set(title=title, aspect="equal", xticks=[], yticks=[], xlabel="Poincaré disc")
    for name in WAYS:
        panels[2].loglog(
            PLANE_NOISES, [row[name][1] for row in rows], "o-", label=f"{name} PCA", markersize=4
        )
    panels[2].set(xlabel="noise", ylabel="mean distance to the tree", title="k = 2")
    panels[2].legend()
    figure.savefig(IMAGES / "hyperbolic_pca.png", dpi=130)


# -- alignment


def digits(n: int) -> np.ndarray:
    scores = PCA(n, svd_solver="full").fit_transform(load_digits().data)
    return scores / scores.std()


def cramer_rao(X: np.ndarray, R: np.ndarray, signature: Signature) -> float:
    """The least root mean square of ||estimate - R||_F for noise 1: directions R J A, A skew."""
    n = signature.n
    directions = []
    for i, j in combinations(range(n), 2):
        A = np.zeros((n, n))
        A[i, j], A[j, i] = 1.0, -1.0
        directions.append(R @ (signature.signs[:, None] * A))
    D = np.stack(directions)
    information = np.einsum("aik,il,blk->ab", D, X.T @ X, D)
    return float(np.sqrt(np.trace(np.linalg.solve(information, np.einsum("aik,bik->ab", D, D)))))


def alignment(trials: int) -> dict[str, np.ndarray]:
    """Columns: noise, measured root mean square error, bound, least squares."""
    X, tables = digits(10), {}
    for name, signature in {
        "O(9, 1)": Signature.lorentz(10, "last"),
        "O(6, 4)": Signature(6, 4),
    }.items():
        R = jorth.random_point(signature, cond=10.0, component=(-1, -1), seed=1)
        bound = cramer_rao(X, R, signature)
        rows = []
        for noise in NOISES:
            rng = np.random.default_rng(2)
            errors = []
            for _ in range(trials):
                Y = X @ R + noise * rng.standard_normal(X.shape)
                found = (
                    LorentzAligner(signature).fit(X, Y).rotation_,
                    np.linalg.lstsq(X, Y, rcond=None)[0],
                )
                errors.append([np.linalg.norm(estimate - R) for estimate in found])
            ours, free = np.sqrt(np.mean(np.square(errors), axis=0))
            rows.append((noise, ours, noise * bound, free))
        tables[name] = np.array(rows)
        print(
            f"{name}, ||R|| = {np.linalg.norm(R):.3g}: noise, error of R, Cramer-Rao bound, "
            "least squares"
        )
        print("\n".join(f"  {a:7.0e} {b:10.3e} {c:10.3e} {d:10.3e}" for a, b, c, d in tables[name]))
    return tables


def draw_alignment(tables: dict[str, np.ndarray]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for (name, rows), colour, marker, size in zip(
        tables.items(), ("C0", "C1"), "s.", (9, 7), strict=True
    ):
        noise, error, bound, free = rows[1:].T
        left.loglog(
            noise,
            error,
            marker,
            color=colour,
            markersize=size,
            fillstyle="none",
            label=f"{name}, aligned",
        )
        left.loglog(noise, bound, "-", color=colour, linewidth=0.8, label=f"{name}, Cramér-Rao")
    left.loglog(noise, free, "x", color="0.5", label="least squares, either")
    left.set(xlabel="noise", ylabel="error of R", title="digits, 10 dimensions")
    left.legend(fontsize=7)
    X, signature = digits(10), Signature(6, 4)
    R = jorth.random_point(signature, cond=10.0, component=(-1, -1), seed=1)
    Y = X @ R + 0.1 * np.random.default_rng(2).standard_normal(X.shape)
    aligned = LorentzAligner(signature).fit(X, Y).transform(X)
    for axes, source, title in (
        (middle, X, "before"),
        (right, aligned, "after alignment in O(6, 4)"),
    ):
        axes.plot(*Y[:, :2].T, ".", markersize=3, color="0.75", label="target")
        axes.plot(*source[:, :2].T, ".", markersize=1.5, color="C1", label="source")
        axes.set(title=title, xticks=[], yticks=[], xlabel="first two coordinates, noise 0.1")
    middle.legend(fontsize=8, markerscale=3)
    figure.savefig(IMAGES / "alignment.png", dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, no files")
    quick = parser.parse_args().quick
    planes = [noisy_plane(10, noise) for noise in PLANE_NOISES]
    rows = []
    for noise, (clean, noisy) in zip(PLANE_NOISES, planes, strict=True):
        rows.append(table(f"tree in a plane, noise {noise}", noisy, (2,), clean)[2])
    table("tree", tree(6, 2 if quick else 5)[0], (2,) if quick else (1, 2, 3, 4, 5))
    images = lift(load_digits().data[: 50 if quick else 600] / 16.0)
    table("digits, lifted", images, (2,) if quick else (2, 5, 10, 20))
    tables = alignment(1 if quick else 20)
    if not quick:
        draw_tree(planes[3][1], planes[3][0], rows)
        draw_alignment(tables)


if __name__ == "__main__":
    main()
