"""Time to a relative gap on planted noisy Procrustes: jorth's solvers against pymanopt and cdopt, one thread.

Peers: pymanopt's conjugate gradients on O(p, q) with the left-invariant metric and Cayley retraction, and cdopt's
constraint dissolving with scipy's L-BFGS, its penalty beta tuned per cell over a grid. Gap: (f - f*) / (f(I) - f*), f*
from the preconditioned Riemannian L-BFGS run to a gradient norm of 1e-12 or a stall. Medians of three runs up to
n = 100. Recording is off the clock. Needs the extra `bench`.

    python benchmarks/speed.py --sizes 50 100 200 500 --budget 60 --output out/speed.json
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import jorth

GAPS = (1e-2, 1e-4, 1e-8)
BETAS = (0.1, 1.0, 10.0, 100.0)


class OutOfTime(Exception):
    pass


class Trace:
    """Times and values, with a clock that stands still while it records."""

    def __init__(self, objective, budget):
        self.objective, self.budget = objective, budget
        self.rows, self.spent, self.since = [], 0.0, time.perf_counter()

    def record(self, X):
        self.spent += time.perf_counter() - self.since
        self.rows.append((self.spent, self.objective.value(torch.from_numpy(np.asarray(X))).item()))
        if self.spent > self.budget:
            raise OutOfTime
        self.since = time.perf_counter()

    def times_to(self, optimum):
        first = self.rows[0][1]
        return {
            f"{gap:g}": next((t for t, f in self.rows if f - optimum <= gap * (first - optimum)), None) for gap in GAPS
        }


def run_jorth(objective, signature, budget, optimum, **options):
    first = objective.value(torch.eye(signature.n, dtype=torch.float64)).item()
    target = optimum + 0.9 * GAPS[-1] * (first - optimum)
    result = jorth.minimize(
        objective,
        signature=signature,
        gradient_tolerance=0.0,
        max_time=budget,
        stop=jorth.stopping.ValueBelow(target),
        **options,
    )
    trace = Trace(objective, budget)
    trace.rows = list(zip(result.history["time"], result.history["value"], strict=True))
    return trace


def run_pymanopt(objective, signature, budget):
    import pymanopt
    from pymanopt.manifolds.manifold import RiemannianSubmanifold

    n, s = signature.n, signature.signs.astype(float)
    identity = np.eye(n)

    class IndefiniteOrthogonal(RiemannianSubmanifold):
        """Tangent vectors J S X are held as the skew S."""

        def __init__(self):
            super().__init__(f"O({signature.p},{signature.q})", n * (n - 1) // 2)

        def inner_product(self, point, a, b):
            return np.tensordot(a, b)

        def norm(self, point, a):
            return np.linalg.norm(a)

        def projection(self, point, vector):
            return (vector - vector.T) / 2

        def euclidean_to_riemannian_gradient(self, point, gradient):
            M = s[:, None] * (gradient @ point.T)
            return (M - M.T) / 2

        def retraction(self, point, a):
            K = s[:, None] * a / 2
            return np.linalg.solve(identity - K, point + K @ point)

        def transport(self, start, end, a):
            return a

        def zero_vector(self, point):
            return np.zeros((n, n))

        def random_point(self):
            return identity.copy()

        def random_tangent_vector(self, point):
            return np.zeros((n, n))

        @property
        def typical_dist(self):
            return 1.0

    manifold = IndefiniteOrthogonal()
    R, T1, m, floor = objective.R.numpy(), objective.T1.numpy(), objective.samples, objective._floor
    trace = Trace(objective, budget)

    @pymanopt.function.numpy(manifold)
    def cost(X):
        return (np.linalg.norm(R @ X - T1) ** 2 + floor) / (2 * m)

    @pymanopt.function.numpy(manifold)
    def gradient(X):
        trace.record(X)
        return R.T @ (R @ X - T1) / m

    optimizer = pymanopt.optimizers.ConjugateGradient(
        verbosity=0, max_iterations=10**6, max_time=budget, min_gradient_norm=1e-12, min_step_size=1e-16
    )
    with contextlib.suppress(OutOfTime):
        optimizer.run(pymanopt.Problem(manifold, cost, euclidean_gradient=gradient), initial_point=identity.copy())
    return trace


def run_cdopt(objective, signature, budget, beta):
    from cdopt.core.problem import problem as dissolve
    from cdopt.manifold_np import basic_manifold_np
    from scipy.optimize import minimize

    n, s = signature.n, signature.signs.astype(float)
    J, identity = np.diag(s), np.eye(n)

    class IndefiniteOrthogonal(basic_manifold_np):
        """X^T J X = J with the dissolving map A(X) = X (3 I - J X^T J X) / 2."""

        def __init__(self):
            super().__init__("O(p,q)", (n, n), (n, n))

        def C(self, X):
            return X.T @ (s[:, None] * X) - J

        def A(self, X):
            return 1.5 * X - 0.5 * X @ (s[:, None] * (X.T @ (s[:, None] * X)))

        def JA_transpose(self, X, D):
            JX = s[:, None] * X
            gram = (X.T @ JX) * s
            return D @ (1.5 * identity - 0.5 * gram) - 0.5 * (JX @ ((D.T @ X) * s) + (JX * s) @ (X.T @ D))

        def JC(self, X, Lambda):
            return 2 * (s[:, None] * X) @ ((Lambda + Lambda.T) / 2)

        def generate_cdf_fun(self, f, beta):
            return lambda X: f(self.A(X)) + beta / 4 * np.linalg.norm(self.C(X)) ** 2

        def generate_cdf_grad(self, g, beta):
            return lambda X: self.JA_transpose(X, g(self.A(X))) + beta / 2 * self.JC(X, self.C(X))

        def Init_point(self, Xinit=None):
            return identity.copy()

    R, T1, m, floor = objective.R.numpy(), objective.T1.numpy(), objective.samples, objective._floor
    problem = dissolve(
        IndefiniteOrthogonal(),
        lambda X: (np.linalg.norm(R @ X - T1) ** 2 + floor) / (2 * m),
        obj_grad=lambda X: R.T @ (R @ X - T1) / m,
        obj_hvp=lambda X, D: R.T @ (R @ D) / m,
        beta=beta,
    )
    trace = Trace(objective, budget)

    def callback(x):
        try:
            trace.record(jorth.polish(x.reshape(n, n).copy(), signature))
        except jorth.PolishError:
            trace.since = time.perf_counter()

    trace.record(identity)
    with contextlib.suppress(OutOfTime):
        minimize(
            problem.cdf_fun_vec_np,
            identity.ravel(),
            jac=problem.cdf_grad_vec_np,
            method="L-BFGS-B",
            callback=callback,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0, "gtol": 1e-13, "maxcor": 10},
        )
    return trace


def cell(n, p, budget, seed, only=None):
    signature = jorth.Signature(p, n - p)
    source, target, _ = jorth.datasets.planted_procrustes(2 * n, signature, noise=0.1, seed=seed)
    objective = jorth.Procrustes(source, target)
    best = jorth.minimize(objective, signature=signature, method="riemannian-lbfgs", gradient_tolerance=1e-12)
    optimum = best.value
    runs = {
        "gs-jobcd": lambda: run_jorth(objective, signature, budget, optimum),
        "gs-jobcd greedy": lambda: run_jorth(objective, signature, budget, optimum, order="greedy"),
        "j-jobcd": lambda: run_jorth(objective, signature, budget, optimum, method="j-jobcd"),
        "riemannian-lbfgs": lambda: run_jorth(objective, signature, budget, optimum, method="riemannian-lbfgs"),
        "pymanopt cg": lambda: run_pymanopt(objective, signature, budget),
    }
    for beta in BETAS:
        runs[f"cdopt l-bfgs (beta {beta:g})"] = lambda beta=beta: run_cdopt(objective, signature, budget, beta)
    if only:
        runs = {name: run for name, run in runs.items() if name in only}
    repeats = 3 if n <= 100 or only else 1
    found = {name: median_times([run().times_to(optimum) for _ in range(repeats)]) for name, run in runs.items()}
    dissolved = {name: row for name, row in found.items() if name.startswith("cdopt")}
    tuned = min(dissolved, key=lambda name: _score(dissolved[name]), default=None)
    return {"reference gradient norm": best.gradient_norm} | {
        name: row for name, row in found.items() if name not in dissolved or name == tuned
    }


def median_times(rows):
    """Per gap the median, a run that never got there counting as infinite."""
    medians = {key: float(np.median([np.inf if row[key] is None else row[key] for row in rows])) for key in rows[0]}
    return {key: None if np.isinf(seconds) else seconds for key, seconds in medians.items()}


def _score(times):
    """Deepest gap reached first, then the least time to it."""
    for gap in reversed(GAPS):
        if times[f"{gap:g}"] is not None:
            return (GAPS[::-1].index(gap), times[f"{gap:g}"])
    return (len(GAPS), 0.0)


def draw(report, path):
    """Time to a gap of 1e-8 (hollow: 1e-4, where that is all) by size, one panel for each share of positive signs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, half in zip(panels, (True, False), strict=True):
        cells = {}
        for key, rows in report.items():
            n, p = (int(part.split("=")[1]) for part in key.split())
            if (2 * p == n) == half:
                cells[n] = {name.split(" (")[0]: row for name, row in rows.items() if isinstance(row, dict)}
        for name in next(iter(cells.values())):
            times = {n: rows[name]["1e-08"] for n, rows in cells.items()}
            reached = {n: t for n, t in times.items() if t is not None}
            (line,) = axes.loglog(list(reached), list(reached.values()), "o-", label=name)
            short = {n: cells[n][name]["0.0001"] for n, t in times.items() if t is None and cells[n][name]["0.0001"]}
            axes.loglog(list(short), list(short.values()), "o", color=line.get_color(), fillstyle="none")
        axes.set(title="p = n/2" if half else "p = 0.9 n", xlabel="n", xticks=list(cells), xticklabels=list(cells))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("seconds to a relative gap of 1e-8")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _shown(seconds):
    return "       -" if seconds is None else f"{seconds:8.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--budget", type=float, default=30.0, help="seconds per run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of runs; medians of three at every size then")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    run_jorth(*_warm_up())  # compile
    report = {}
    for n in arguments.sizes:
        for p in (n // 2, round(0.9 * n)):
            report[f"n={n} p={p}"] = found = cell(n, p, arguments.budget, arguments.seed, arguments.only)
            print(f"n = {n}, p = {p}")
            for name, row in found.items():
                if isinstance(row, dict):
                    shown = "  ".join(f"{g:g}: {_shown(row[f'{g:g}'])}" for g in GAPS)
                    print(f"  {name:28s} {shown}", flush=True)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(report, indent=1))
        draw(report, arguments.output.with_suffix(".png"))


def _warm_up():
    signature = jorth.Signature(4, 4)
    source, target, _ = jorth.datasets.planted_procrustes(16, signature, noise=0.1)
    return jorth.Procrustes(source, target), signature, 1.0, 0.0


if __name__ == "__main__":
    main()
