"""Accuracy and speed of hsvd and eigh beside the eigenvalue solvers on the products, as in
docs/howto/algebra.md.

python benchmarks/algebra.py
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import mpmath
import numpy as np
import scipy.linalg

import jorth

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "hyperbolic_values.png"
METHODS = ("hsvd(G)", "eigh(J, GᵀG)", "eigh(G J Gᵀ)")


def exact_values(G: np.ndarray, signature: jorth.Signature) -> np.ndarray:
    """S, descending, from G J G^T at 80 digits."""
    with mpmath.workdps(80):
        R = mpmath.qr(mpmath.matrix(G.tolist()))[1][: signature.n, : signature.n]
        product = R * mpmath.diag([int(s) for s in signature.signs]) * R.T
        squares = mpmath.eigsy((product + product.T) / 2, eigvals_only=True)
        return np.sort([float(mpmath.sqrt(abs(square))) for square in squares])[::-1]


def found_values(G: np.ndarray, signature: jorth.Signature) -> dict[str, np.ndarray]:
    """S, descending, three ways; NaN where a way breaks down."""
    J = np.diag(signature.signs.astype(float))
    try:
        pencil = np.abs(1 / scipy.linalg.eigh(J, G.T @ G, eigvals_only=True))
    except scipy.linalg.LinAlgError:
        pencil = np.full(signature.n, np.nan)
    outer = np.abs(np.linalg.eigvalsh(G @ J @ G.T))
    values = (jorth.hsvd(G, signature).S, np.sqrt(pencil), np.sqrt(outer))
    return {name: np.sort(S)[::-1][: signature.n] for name, S in zip(METHODS, values, strict=True)}


def graded(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    B = rng.standard_normal((n + 4, n))
    columns, rows = (rng.permutation(np.geomspace(1, 1e-12, k)) for k in (n, n + 4))
    return {"columns graded": B * columns, "rows and columns graded": rows[:, None] * B * columns}


def errors(n: int) -> dict[str, tuple[np.ndarray, dict[str, np.ndarray]]]:
    signature = jorth.Signature.of([1, -1] * (n // 2))
    table = {}
    for kind, G in graded(n).items():
        exact = exact_values(G, signature)
        found = found_values(G, signature)
        table[kind] = exact, {name: np.abs(S - exact) / exact for name, S in found.items()}
        print(f"{kind}: relative error of S at")
        picks = np.linspace(0, n - 1, 5).astype(int)
        print(f"  {'':16s}" + "".join(f"{exact[pick]:10.1e}" for pick in picks) + "   largest")
        for name, error in table[kind][1].items():
            cells = "".join(f"{value:10.1e}" for value in [*error[picks], error.max()])
            print(f"  {name:16s}{cells}")
    return table


def draw(table: dict[str, tuple[np.ndarray, dict[str, np.ndarray]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, len(table), sharey=True)
    for axes, (kind, (exact, rows)) in zip(panels, table.items(), strict=True):
        for (name, error), marker in zip(rows.items(), "os^", strict=True):
            label = name if np.isfinite(error).all() else f"{name}: not positive definite"
            axes.loglog(exact, np.clip(error, 1e-17, 1e3), marker, markersize=4, label=label)
        axes.axhline(2.0**-53, color="0.7", linewidth=0.8)
        axes.invert_xaxis()
        axes.set(xlabel="hyperbolic singular value", title=kind)
        axes.legend(fontsize=8)
    panels[0].set_ylabel("relative error")
    figure.savefig(path, dpi=130)


def positive_definite(n: int, cond: float) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    A = (Q * np.geomspace(1, 1 / cond, n)) @ Q.T
    return (A + A.T) / 2


def feasibility(n: int) -> None:
    signature = jorth.Signature(n // 2, n - n // 2)
    J = np.diag(signature.signs.astype(float))
    print(f"residual of X in units of n u, n = {n}: jorth.eigh, scipy.linalg.eigh(J, A)")
    for cond in (1e3, 1e6, 1e10, 1e13):
        A = positive_definite(n, cond)
        mu, V = scipy.linalg.eigh(J, A)
        order = np.argsort(mu < 0, kind="stable")  # positive ones first, as the signature has them
        naive = (V / np.sqrt(np.abs(mu)))[:, order]
        unit = n * 2.0**-53
        found = jorth.residual(jorth.eigh(A, signature)[1], signature) / unit
        print(f"  cond {cond:.0e}: {found:8.2f} {jorth.residual(naive, signature) / unit:12.2g}")


def seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def speed(sizes: tuple[int, ...]) -> None:
    print("seconds: eigh(A), hsvd(G), hsvd(G, graded columns), scipy.linalg.eigh(J, A)")
    for n in sizes:
        signature = jorth.Signature(n // 2, n - n // 2)
        A, J = positive_definite(n, 1e3), np.diag(signature.signs.astype(float))
        G = np.linalg.cholesky(A).T
        columns = G * np.geomspace(1, 1e-12, n)
        calls = (
            lambda A=A, s=signature: jorth.eigh(A, s),
            lambda G=G, s=signature: jorth.hsvd(G, s),
            lambda G=columns, s=signature: jorth.hsvd(G, s),
            lambda A=A, J=J: scipy.linalg.eigh(J, A),
        )
        print(f"  n = {n:4d}: " + " ".join(f"{seconds(call):9.4f}" for call in calls), flush=True)


def batches(count: int) -> None:
    """Matrices per second: one call for a batch, one call for each, NumPy's symmetric solver."""
    print("matrices per second: eigh of a batch, one by one, numpy.linalg.eigh of the batch")
    for n in (4, 8, 16, 32):
        signature = jorth.Signature(n // 2, n - n // 2)
        M = np.random.default_rng(0).standard_normal((count, n, n))
        A = M @ M.transpose(0, 2, 1) + 0.1 * np.eye(n)
        calls = (
            lambda A=A, s=signature: jorth.eigh(A, s),
            lambda A=A, s=signature: [jorth.eigh(one, s) for one in A],
            lambda A=A: np.linalg.eigh(A),
        )
        print(f"  n = {n:2d}: " + " ".join(f"{count / seconds(call):9.0f}" for call in calls))


def main() -> None:
    draw(errors(24), IMAGE)
    feasibility(100)
    speed((50, 100, 200, 400, 800))
    batches(1000)


if __name__ == "__main__":
    main()
