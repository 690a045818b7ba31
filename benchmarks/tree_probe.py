"""A tree by structural probes in hyperbolic, spherical and all other spaces of one dimension:
docs/results/probe.md.

The rows are the best flat layout of the tree (metric scaling, SMACOF) and a constant column, so
that the features are what Euclidean space likes best. Every signature gets the same rows, the same
radii and the same starts.

python benchmarks/tree_probe.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.optimize
import torch
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import smacof

from jorth import Signature
from jorth.estimators import StructuralProbeEmbedding
from jorth.ultrahyperbolic import distance, lift_at

IMAGES = Path(__file__).parent.parent / "docs" / "images"
RADII = np.geomspace(10.0, 0.01, 13)
"""Of the spaces, by the root mean square radius of the flat layout: from almost flat to very
curved."""
SIZES = (3, 4, 6)
ITERATIONS = 300
Fit = tuple[StructuralProbeEmbedding, np.ndarray]


# -- the tree, flat layouts, stress


def tree(children: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """The distances (m, m) of the nodes of a balanced tree with edges of length one, and the
    parent of each."""
    parents, level = [-1], [0]
    for _ in range(depth):
        following = []
        for node in level:
            following += range(len(parents), len(parents) + children)
            parents += [node] * children
        level = following
    T = np.zeros((len(parents), len(parents)))
    for node, parent in enumerate(parents[1:], start=1):
        T[node, :node] = T[:node, node] = T[parent, :node] + 1
    return T, np.array(parents)


def flat_layout(T: np.ndarray, d: int, seed: int) -> np.ndarray:
    """The best of four runs of SMACOF in R^d, by descending variance, with a root mean square
    radius of one."""
    Y, _ = smacof(
        T,
        n_components=d,
        n_init=4,
        max_iter=2000,
        eps=1e-9,
        random_state=seed,
        normalized_stress=False,
    )
    Y = Y - Y.mean(axis=0)
    Y = Y @ np.linalg.svd(Y, full_matrices=False)[2].T
    return Y / np.sqrt(np.square(Y).sum(axis=1).mean())


def rows(layout: np.ndarray, radius: float) -> np.ndarray:
    """The layout in the tangent hyperplane at the base point of a space of that radius: a last
    column of ``radius``."""
    return np.column_stack([layout, np.full(len(layout), radius)])


def pairs(T: np.ndarray) -> np.ndarray:
    return T[np.triu_indices(len(T), 1)]


def stress(T: np.ndarray, d: np.ndarray) -> float:
    """Of distances (m (m - 1) / 2,), with the best factor."""
    t = pairs(T)
    return float(np.linalg.norm(t - (t @ d) / (d @ d) * d) / np.linalg.norm(t))


# -- the probe, and points without a probe


def probe(T: np.ndarray, layout: np.ndarray, signature: Signature, seed: int) -> Fit:
    """The fit with the least stress over the radii, and its rows."""
    fits = []
    for radius in RADII:
        model = StructuralProbeEmbedding(
            signature, alpha=radius, max_iterations=ITERATIONS, random_state=seed
        )
        fits.append((model.fit(rows(layout, radius), T), rows(layout, radius)))
    return min(fits, key=lambda fit: fit[0].stress_)


def free(
    T: np.ndarray, start: np.ndarray, signature: Signature | None, radius: float = 1.0
) -> tuple[float, np.ndarray]:
    """Stress and points when every point moves by itself, by L-BFGS: in Euclidean space without a
    signature."""
    i, j = np.triu_indices(len(T), 1)
    t = torch.from_numpy(pairs(T))
    best: list = [
        np.inf,
        start,
    ]  # L-BFGS-B may end at a worse point when a line search fails at a cusp

    def squared_stress(flat: np.ndarray) -> tuple[float, np.ndarray]:
        Z = torch.from_numpy(flat.reshape(start.shape)).requires_grad_()
        P = Z if signature is None else lift_at(Z, *signature.positions(Z.device), radius)
        a, b = P[i], P[j]
        d = (a - b).norm(dim=1) if signature is None else distance(a, b, signature, alpha=radius)
        loss = 1 - (t @ d).square() / (d @ d) / (t @ t)
        loss.backward()
        if loss.item() < best[0]:
            best[:] = loss.item(), P.detach().numpy()
        return loss.item(), Z.grad.numpy().ravel()

    limits = dict(maxiter=1000, maxfun=1500, ftol=1e-12, gtol=1e-9)
    scipy.optimize.minimize(
        squared_stress, start.ravel(), jac=True, method="L-BFGS-B", options=limits
    )
    return float(np.sqrt(best[0])), best[1]


# -- the table


def table(T: np.ndarray, n: int, seeds: int) -> dict[str, np.ndarray]:
    """Print medians over the seeds; returns the best hyperbolic points and the layout below them,
    for the picture."""
    layouts = [flat_layout(T, n - 1, seed) for seed in range(seeds)]
    print(f"\nspaces of dimension {n - 1}, medians of {seeds} seeds (least, largest)\n")
    print(
        "| space | stress of the probe | Spearman | distance correlation | radius | stress of "
        "free points |"
    )
    print("|---|---|---|---|---|---|")
    flat = [
        (stress(T, d), spearmanr(d, pairs(T))[0], pearsonr(d, pairs(T))[0])
        for d in map(pdist, layouts)
    ]
    row(f"Euclidean, R^{n - 1}", flat, "", [free(T, layout, None)[0] for layout in layouts])
    shown: dict[str, np.ndarray] = {}
    for q in range(1, n + 1):
        signature = Signature(n - q, q)
        fits = [probe(T, layout, signature, seed) for seed, layout in enumerate(layouts)]
        loose = [free(T, X @ model.rotation_, signature, model.alpha) for model, X in fits]
        scores = [(model.stress_, model.spearman_, model.score(X, T)) for model, X in fits]
        radius = f"{np.median([model.alpha for model, _ in fits]):.2g}"
        row(name(signature), scores, radius, [value for value, _ in loose])
        if q == 1:
            model, X = min(fits, key=lambda fit: fit[0].stress_)
            best = int(np.argmin([value for value, _ in loose]))
            shown = dict(flat=X[:, :-1], probe=model.transform(X) / model.alpha)
            shown["free"] = loose[best][1] / fits[best][0].alpha
    return shown


def row(
    space: str, scores: list[tuple[float, float, float]], radius: str, loose: list[float]
) -> None:
    _, spearman, correlation = np.median(scores, axis=0)
    stresses = spread([found for found, _, _ in scores])
    print(
        f"| {space} | {stresses} | {spearman:.3f} | {correlation:.3f} | {radius} | "
        f"{spread(loose)} |",
        flush=True,
    )


def name(signature: Signature) -> str:
    words = {signature.n - 1: "hyperbolic, ", 0: "spherical, "}
    return f"{words.get(signature.p, '')}({signature.p}, {signature.q})"


def spread(values: list[float]) -> str:
    return f"{np.median(values):.3f} ({min(values):.3f}, {max(values):.3f})"


# -- the picture


def draw(T: np.ndarray, parents: np.ndarray, shown: dict[str, np.ndarray]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    colours = [f"C{branch(node, parents)}" if node else "black" for node in range(len(parents))]
    probed, loose = ascending(shown["probe"]), ascending(shown["free"])
    edges = list(enumerate(parents))[1:]
    panels = {
        f"Euclidean plane (SMACOF): stress {stress(T, pdist(shown['flat'])):.3f}\n": (
            shown["flat"],
            [shown["flat"][list(edge)] for edge in edges],
        ),
        f"the same layout through a probe of O(2, 1): stress {hyperbolic_stress(T, probed):.3f}\n"
        "Poincaré disc": (
            poincare(probed),
            [poincare(geodesic(*probed[list(edge)])) for edge in edges],
        ),
        f"free hyperbolic points: stress {hyperbolic_stress(T, loose):.3f}\n"
        "radius = distance from the root": (
            native(loose),
            [native(geodesic(*loose[list(edge)])) for edge in edges],
        ),
    }
    for axes, (title, (places, curves)) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for (node, _), curve in zip(edges, curves, strict=True):
            axes.plot(*curve.T, color=colours[node], linewidth=0.6, alpha=0.6)
        axes.scatter(*places.T, c=colours, s=4 + 14 * (T[0].max() - T[0]), zorder=3, linewidths=0)
        reach = 1.04 * np.abs(places).max() if "Poincaré" not in title else 1.02
        axes.set(
            aspect="equal",
            xticks=[],
            yticks=[],
            frame_on=False,
            xlim=(-reach, reach),
            ylim=(-reach, reach),
        )
        axes.set_title(title, fontsize=10)
        if "Poincaré" in title:
            angle = np.linspace(0, 2 * np.pi, 300)
            axes.plot(np.cos(angle), np.sin(angle), color="0.6", linewidth=0.8)
    figure.savefig(IMAGES / "tree_probe.png", dpi=130)


def hyperbolic_stress(T: np.ndarray, points: np.ndarray) -> float:
    return stress(
        T, pairs(np.stack([distance(point, points, Signature(2, 1)) for point in points]))
    )


def branch(node: int, parents: np.ndarray) -> int:
    """Which child of the root the node descends from."""
    while parents[node] != 0:
        node = parents[node]
    return node - 1


def ascending(points: np.ndarray) -> np.ndarray:
    """All on the upper sheet (q and -q are one point to the distance), the first, the root, moved
    to the base point."""
    points = points * np.sign(points[:, -1:])
    x, t = points[0, :-1], points[0, -1]
    boost = np.block(
        [[np.eye(2) + np.outer(x, x) / (1 + t), -x[:, None]], [-x[None], np.array([[t]])]]
    )
    return points @ boost


def geodesic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Forty points from x to y: (sinh((1 - s) d) x + sinh(s d) y) / sinh(d)."""
    d, s = distance(x, y, Signature(2, 1)), np.linspace(0, 1, 40)[:, None]
    return (np.sinh((1 - s) * d) * x + np.sinh(s * d) * y) / np.sinh(d)


def poincare(points: np.ndarray) -> np.ndarray:
    return points[:, :-1] / (1 + points[:, -1:])


def native(points: np.ndarray) -> np.ndarray:
    """Polar coordinates whose radius is the distance from the base point."""
    length = np.linalg.norm(points[:, :-1], axis=1, keepdims=True)
    return points[:, :-1] * (np.arcsinh(length) / np.maximum(length, 1e-300))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a small tree in two dimensions, one seed, no files"
    )
    quick = parser.parse_args().quick
    warnings.simplefilter(
        "ignore", ConvergenceWarning
    )  # the limit on iterations is the same for all
    T, parents = tree(3, 2 if quick else 4)
    print(f"a tree of {len(T)} nodes, three children a node")
    print(f"stress where all distances are the same: {stress(T, np.ones(len(pairs(T)))):.3f}")
    shown = {n: table(T, n, 1 if quick else 3) for n in (SIZES[:1] if quick else SIZES)}
    if not quick:
        draw(T, parents, shown[3])


if __name__ == "__main__":
    main()
