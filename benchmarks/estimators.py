"""HyperbolicPCA beside tangent-space and Euclidean PCA, and LorentzAligner beside the Cramer-Rao
bound: the tables and pictures of docs/howto/estimators.md.

python benchmarks/estimators.py
"""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import jorth
from jorth import Signature
from jorth.estimators import HyperbolicPCA, LorentzAligner
from jorth.ultrahyperbolic import boost, distance, exp0, lift, log0

IMAGES = Path(__file__).parent.parent / "docs" / "images"
PLANE_NOISES = (0.001, 0.01, 0.03, 0.1, 0.3)
NOISES = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
EDGE = 1.5
GROUPS = {"O(9, 1)": Signature.lorentz(10, "last"), "O(6, 4)": Signature(6, 4)}


def lorentz(points: np.ndarray) -> Signature:
    return Signature.lorentz(points.shape[-1])


# -- trees


def tree(d: int, depth: int) -> tuple[np.ndarray, list[int]]:
    """The nodes (m, d + 1) of a tree with three children a node, and the parent of each.

    As Sarkar's construction does in the plane: seen from a node, its children lie at the length of
    an edge on the other side than its parent. In the plane they are spread evenly; elsewhere their
    directions are drawn at random. Then the whole is moved away from the origin.
    """
    rng, sig = np.random.default_rng(0), Signature.lorentz(d + 1)
    frames, parents, level = [np.eye(d + 1)], [-1], [0]
    for _ in range(depth):
        first = len(frames)
        for node in level:
            for turn in (-1, 0, 1):
                away = None
                if node:
                    seen = frames[parents[node]][0] @ jorth.inverse(frames[node], sig)
                    away = -seen[1:] / np.linalg.norm(seen[1:])
                direction = fanned(away, turn) if d == 2 else drawn(away, d, rng)
                frames.append(boost(EDGE * direction, sig) @ frames[node])
                parents.append(node)
        level = range(first, len(frames))
    nodes = np.stack([frame[0] for frame in frames])
    return nodes @ jorth.random_point(sig, cond=20.0, seed=0), parents


def fanned(away: np.ndarray | None, turn: int) -> np.ndarray:
    angle = turn * (2 * np.pi / 3 if away is None else np.pi / 3)
    x, y = (1.0, 0.0) if away is None else away
    return np.array([x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)])


def drawn(away: np.ndarray | None, d: int, rng: np.random.Generator) -> np.ndarray:
    direction = rng.standard_normal(d) * np.linspace(1.0, 0.3, d)
    direction /= np.linalg.norm(direction)
    return direction if away is None else direction * np.sign(direction @ away)


def noisy_plane(d: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A tree in a hyperbolic plane of H^d, and the same with every node moved at random by about
    ``noise`` sqrt(d)."""
    plane, sig = tree(2, 4)[0], Signature.lorentz(d + 1)
    clean = lift(np.hstack([plane[:, 1:], np.zeros((len(plane), d - 2))]), sig)
    clean = clean @ jorth.random_point(sig, cond=4.0, seed=1)
    steps = exp0(noise * np.random.default_rng(0).standard_normal((len(clean), d)), sig)
    return clean, np.einsum("mi,mij->mj", steps, boost(log0(clean, sig), sig))


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
    return lift(model.inverse_transform(model.transform(points[:, 1:])), lorentz(points))


WAYS = {"hyperbolic": hyperbolic, "tangent": tangent, "Euclidean": euclidean}


def table(title: str, points: np.ndarray, ks: tuple[int, ...], clean=None) -> list[float]:
    """Print, for each way, the mean sinh^2 of the distance moved, the mean distance moved (from the
    clean points), and distortion: the mean of |c d' / d - 1| over all pairs, with the best c.

    Return the mean distances of the last row.
    """
    reference, sig = points if clean is None else clean, lorentz(points)
    i, j = np.triu_indices(len(points), 1)
    print(f"{title}: {len(points)} points of H^{sig.p}; mean sinh^2, mean distance, distortion")
    for k in ks:
        cells, means = [], []
        for name, way in WAYS.items():
            moved = way(points, k)
            ratio = distance(moved[i], moved[j], sig) / distance(reference[i], reference[j], sig)
            ratio *= ratio.sum() / np.square(ratio).sum()
            means.append(distance(reference, moved, sig).mean())
            sinh2 = np.square(np.sinh(distance(points, moved, sig))).mean()
            cells.append(f"{name} {sinh2:9.3g} {means[-1]:.4f} {np.abs(ratio - 1).mean():.4f}")
        print(f"  k = {k:2d}: " + "   ".join(cells))
    return means


def draw_tree(clean: np.ndarray, points: np.ndarray, rows: list[list[float]]) -> None:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    *discs, right = figure.subplots(1, 3)
    model = HyperbolicPCA(2, input="hyperboloid", output="hyperboloid")
    shown = {"the tree": clean, "found in noisy points of H¹⁰": hyperbolic(points, 2)}
    circle = np.linspace(0, 7, 200)
    for axes, (title, nodes) in zip(discs, shown.items(), strict=True):
        time, *space = model.fit_transform(nodes).T
        disc = np.stack(space) / (1 + time)
        axes.plot(np.cos(circle), np.sin(circle), color="0.7", linewidth=0.8)
        for edge in list(enumerate(tree(2, 4)[1]))[1:]:
            axes.plot(*disc[:, edge], color="0.6", linewidth=0.5)
        axes.plot(*disc, "o", markersize=2.5)
        axes.set(title=title, aspect="equal", xticks=[], yticks=[], xlabel="Poincaré disc")
    for name, means in zip(WAYS, zip(*rows, strict=True), strict=True):
        right.loglog(PLANE_NOISES, means, "o-", label=f"{name} PCA", markersize=4)
    right.set(xlabel="noise", ylabel="mean distance to the tree", title="k = 2")
    right.legend()
    figure.savefig(IMAGES / "hyperbolic_pca.png", dpi=130)


# -- alignment


def digits(n: int) -> np.ndarray:
    scores = PCA(n, svd_solver="full").fit_transform(load_digits().data)
    return scores / scores.std()


def cramer_rao(X: np.ndarray, R: np.ndarray, signature: Signature) -> float:
    """The least root mean square of ||estimate - R||_F for noise 1: directions R J A, A skew."""
    n, directions = signature.n, []
    for i, j in combinations(range(n), 2):
        A = np.zeros((n, n))
        A[i, j], A[j, i] = 1.0, -1.0
        directions.append(R @ (signature.signs[:, None] * A))
    D = np.stack(directions)
    information = np.einsum("aik,il,blk->ab", D, X.T @ X, D)
    return float(np.sqrt(np.trace(np.linalg.solve(information, np.einsum("aik,bik->ab", D, D)))))


def planted(signature: Signature) -> np.ndarray:
    return jorth.random_point(signature, cond=10.0, component=(-1, -1), seed=1)


def alignment(trials: int) -> dict[str, np.ndarray]:
    """Columns: noise, measured root mean square error, bound, least squares."""
    X, tables = digits(10), {}
    for name, signature in GROUPS.items():
        R, rows = planted(signature), []
        bound = cramer_rao(X, R, signature)
        for noise in NOISES:
            rng, errors = np.random.default_rng(2), []
            for _ in range(trials):
                Y = X @ R + noise * rng.standard_normal(X.shape)
                ours = LorentzAligner(signature).fit(X, Y).rotation_
                free = np.linalg.lstsq(X, Y, rcond=None)[0]
                errors.append([np.linalg.norm(estimate - R) for estimate in (ours, free)])
            ours, free = np.sqrt(np.mean(np.square(errors), axis=0))
            rows.append((noise, ours, noise * bound, free))
        tables[name] = np.array(rows)
        size = np.linalg.norm(R)
        print(f"{name}, ||R|| = {size:.3g}: noise, error of R, Cramer-Rao bound, least squares")
        print("\n".join(f"  {a:7.0e} {b:10.3e} {c:10.3e} {d:10.3e}" for a, b, c, d in rows))
    return tables


def draw_alignment(tables: dict[str, np.ndarray]) -> None:
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    styles = zip(tables.items(), ("C0", "C1"), "s.", (9, 7), strict=True)
    for (name, rows), colour, marker, size in styles:
        noise, error, bound, free = rows[1:].T
        style = {"color": colour, "markersize": size, "fillstyle": "none"}
        left.loglog(noise, error, marker, label=f"{name}, aligned", **style)
        left.loglog(noise, bound, color=colour, linewidth=0.8, label=f"{name}, Cramér-Rao")
    left.loglog(noise, free, "x", color="0.5", label="least squares, either")
    left.set(xlabel="noise", ylabel="error of R", title="digits, 10 dimensions")
    left.legend(fontsize=7)
    X, signature = digits(10), GROUPS["O(6, 4)"]
    Y = X @ planted(signature) + 0.1 * np.random.default_rng(2).standard_normal(X.shape)
    aligned = LorentzAligner(signature).fit(X, Y).transform(X)
    for axes, source, title in zip(
        (middle, right), (X, aligned), ("before", "after alignment in O(6, 4)"), strict=True
    ):
        axes.plot(*Y[:, :2].T, ".", markersize=3, color="0.75", label="target")
        axes.plot(*source[:, :2].T, ".", markersize=1.5, color="C1", label="source")
        axes.set(title=title, xticks=[], yticks=[], xlabel="first two coordinates, noise 0.1")
    middle.legend(fontsize=8, markerscale=3)
    figure.savefig(IMAGES / "alignment.png", dpi=130)


def main() -> None:
    planes = {noise: noisy_plane(10, noise) for noise in PLANE_NOISES}
    rows = [
        table(f"tree in a plane, noise {noise}", noisy, (2,), clean)
        for noise, (clean, noisy) in planes.items()
    ]
    table("tree", tree(6, 5)[0], (1, 2, 3, 4, 5))
    images = lift(load_digits().data[:600] / 16.0, Signature.lorentz(65))
    table("digits, lifted", images, (2, 5, 10, 20))
    draw_tree(*planes[0.1], rows)
    draw_alignment(alignment(20))


if __name__ == "__main__":
    main()
