"""`jorth demo`: what the library does, in two tables and one picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from jorth.decompositions import cs_decomposition
from jorth.group import component, random_point, residual
from jorth.plane import apply_rows, minimize_lightcone, random_matching, solve_plane
from jorth.signature import Signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROUNDOFF = 2.0**-53


def run(output: Path, seed: int) -> None:
    """Print the tables and write the picture into ``output``."""
    console = Console()
    console.print(_points_table(seed))
    console.print(_planes_table(seed))
    output.mkdir(parents=True, exist_ok=True)
    path = output / "plane.png"
    _draw(path, seed)
    console.print(f"Picture: [bold]{path}[/bold] (the plane problem along a boost and along a rotation)")


def _points_table(seed: int) -> Table:
    signature = Signature(30, 20)
    table = Table(title="Random points of O(30, 20): feasible to rounding at any condition number")
    for heading in (
        "condition asked",
        "||X||² found",
        "component",
        "residual / (n u)",
        "CS recomposition / ||X||",
    ):
        table.add_column(heading, justify="right")
    for cond in (1.0, 1e4, 1e8, 1e12, 1e15):
        X = random_point(signature, cond=cond, component=(1, -1), seed=seed)
        norm = np.linalg.norm(X, 2)
        error = np.abs(cs_decomposition(X, signature).compose() - X).max() / norm
        scaled = residual(X, signature) / (signature.n * ROUNDOFF)
        table.add_row(f"{cond:.0e}", f"{norm**2:.4e}", str(component(X, signature)), f"{scaled:.2f}", f"{error:.1e}")
    return table


def _planes_table(seed: int) -> Table:
    """Match a target by steps in disjoint planes: min ||X - T||^2 / 2, a majoriser with Q = (Z Z^T) (x) I."""
    signature = Signature(30, 20)
    target = random_point(signature, cond=10.0, seed=seed + 1)
    X = np.eye(signature.n)
    rng = np.random.default_rng(seed)
    table = Table(title="Rounds of plane steps towards a target point, 25 disjoint pairs each")
    for heading in ("rounds", "||X - T||² / 2", "residual / (n u)", "pairs per second"):
        table.add_column(heading, justify="right")
    for rounds in (100, 400, 1600):
        start = time.perf_counter()
        for _ in range(rounds):
            pairs = random_matching(signature.n, seed=rng)
            _step(X, target, signature, pairs)
        rate = rounds * len(pairs) / (time.perf_counter() - start)
        value = 0.5 * np.linalg.norm(X - target) ** 2
        scaled = residual(X, signature) / (signature.n * ROUNDOFF)
        table.add_row(f"+{rounds}", f"{value:.3e}", f"{scaled:.2f}", f"{rate:,.0f}")
    return table


def _step(X: NDArray[np.float64], target: NDArray[np.float64], signature: Signature, pairs: NDArray[np.int64]) -> None:
    Z = X[pairs]  # (m, 2, n)
    P = (Z - target[pairs]) @ Z.swapaxes(1, 2)
    ZZ = Z @ Z.swapaxes(1, 2)
    Q = np.einsum("kac,bd->kabcd", ZZ, np.eye(2)).reshape(-1, 4, 4)
    step = solve_plane(P, Q, signature.signs[pairs], components="identity")
    apply_rows(X, pairs, step.V)


def _draw(path: Path, seed: int) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_lightcone(left)
    _draw_circle(right, seed)
    figure.savefig(path, dpi=150)


def _draw_lightcone(axes: Axes) -> None:
    """Three problems on u > 0, one with two minima: the global one is found."""
    u = np.geomspace(0.08, 12, 600)
    for A, B, C, D in ((-9.0, -8.4, 1.0, 1.0), (2.0, -6.0, 1.0, 1.0), (-3.0, 2.0, 0.4, 0.4)):
        best, value, _ = minimize_lightcone(A, B, C, D, positive=True)
        (line,) = axes.plot(u, A * u + B / u + C * u**2 + D / u**2, label=f"A={A:g}, B={B:g}, C={C:g}, D={D:g}")
        axes.plot(best, value, "o", color=line.get_color())
    axes.set(xscale="log", ylim=(-25, 25), xlabel="u = exp(rapidity)", title="Boosts: A u + B/u + C u² + D/u²")
    axes.legend(fontsize=8)


def _draw_circle(axes: Axes, seed: int) -> None:
    """The surrogate over rotations and reflections, and the step that solve_plane returns."""
    rng = np.random.default_rng(seed)
    P, M = rng.standard_normal((2, 2)), rng.standard_normal((4, 4))
    Q = M @ M.T
    angle = np.linspace(-np.pi, np.pi, 600)
    cos, sin = np.cos(angle), np.sin(angle)
    families = {
        "rotations": np.stack([cos, -sin, sin, cos], axis=-1).reshape(-1, 2, 2),
        "reflections": np.stack([cos, sin, sin, -cos], axis=-1).reshape(-1, 2, 2),
    }
    for name, V in families.items():
        axes.plot(angle, _surrogate(V, P, Q), label=name)
    step = solve_plane(P, Q, np.array([1, 1]))
    axes.plot(np.arctan2(step.V[1, 0], step.V[0, 0]), -step.decrease, "ko", label="solve_plane")
    axes.set(xlabel="angle", title="Equal signs: the surrogate on the circle")
    axes.legend(fontsize=8)


def _surrogate(V: NDArray[np.float64], P: NDArray[np.float64], Q: NDArray[np.float64]) -> NDArray[np.float64]:
    step = V - np.eye(2)
    vector = step.swapaxes(-1, -2).reshape(*step.shape[:-2], 4)
    return np.asarray((step * P).sum(axis=(-2, -1)) + 0.5 * np.einsum("...a,ab,...b", vector, Q, vector))
