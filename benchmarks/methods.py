"""Every method of `jorth.minimize` on one Procrustes and one trace problem: value against time and
against gradients.

Both from the identity, one thread, median of three runs (by time to the deepest gap reached). The
gap is (f - f*) / (f(I) - f*); f* is known in closed form for the trace problem and from Riemannian
L-BFGS at a gradient norm of 1e-12 for the other. Of UMCM and ADMM the values are those of polished
points, and polishing is off the clock.

    python benchmarks/methods.py --output out/methods.json
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.linalg
import torch

import jorth

GAPS = (1e-2, 1e-4, 1e-8)
BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000",
)  # fmt: skip
FAMILIES = {
    # family: the name of each method, the method, the colour and the style of its line
    "JOBCD": {
        "GS-JOBCD": ("gs-jobcd", BLUE, "-"),
        "GS-JOBCD, right": (jorth.GaussSeidel(side="right"), BLUE, "--"),
        "GS-JOBCD, accelerated": ("accelerated-gs-jobcd", SKY, "-"),
        "J-JOBCD": ("j-jobcd", ORANGE, "-"),
        "J-JOBCD, right": (jorth.Jacobi(side="right"), ORANGE, "--"),
        "J-JOBCD, accelerated": ("accelerated-j-jobcd", RED, "-"),
        "VR-J-JOBCD": ("vr-j-jobcd", GREEN, "-"),
    },
    "baselines": {
        "UMCM": ("umcm", RED, "-"),
        "ADMM": ("admm", PURPLE, "-"),
        "CSDM": ("csdm", BLUE, "-"),
        "CSDM, Adam": (jorth.CSDM(optimizer="adam"), BLUE, "--"),
        "CSDM + GS-JOBCD": (["csdm", "gs-jobcd"], BLUE, ":"),
        "exponential": ("exponential", BLACK, "-"),
        "exponential, Adam": (jorth.Exponential(optimizer="adam"), BLACK, "--"),
    },
    "Riemannian": {
        "Newton": ("riemannian-newton", RED, "-"),
        "L-BFGS": ("riemannian-lbfgs", BLUE, "-"),
        "CG": ("riemannian-cg", GREEN, "-"),
        "SD": ("riemannian-sd", ORANGE, "-"),
        "L-BFGS, no preconditioner": (jorth.RiemannianLBFGS(preconditioner="none"), BLUE, "--"),
        "CG, no preconditioner": (jorth.RiemannianCG(preconditioner="none"), GREEN, "--"),
    },
}
METHODS = {name: method for family in FAMILIES.values() for name, (method, _, _) in family.items()}


def procrustes(n, p, seed):
    sig = jorth.Signature(p, n - p)
    source, target, _ = jorth.datasets.planted_procrustes(2 * n, sig, noise=0.1, seed=seed)
    objective = jorth.Procrustes(source, target)
    return (
        objective,
        sig,
        jorth.minimize(
            objective, signature=sig, method="riemannian-lbfgs", gradient_tolerance=1e-12
        ).value,
    )


def trace(n, p, seed):
    sig = jorth.Signature(p, n - p)
    M = np.random.default_rng(seed).standard_normal((n, n))
    A = M @ M.T / n + 0.05 * np.eye(n)
    m = scipy.linalg.eigh(np.diag(sig.signs.astype(float)), A, eigvals_only=True)
    return jorth.Quadratic(2 * A), sig, float(np.abs(1 / m).sum())


PROBLEMS = {"noisy Procrustes": procrustes, "trace minimisation": trace}


def measure(objective, sig, optimum, method, budget):
    first = objective.value(torch.eye(sig.n, dtype=torch.float64)).item()
    stop = jorth.stopping.ValueBelow(optimum + 0.9 * GAPS[-1] * (first - optimum))
    result = jorth.minimize(
        objective, signature=sig, method=method, gradient_tolerance=0.0, max_time=budget, stop=stop
    )
    gap = (result.history["value"] - optimum) / (first - optimum)
    samples = objective.samples
    gradients = result.history["sample_gradient_evaluations"] / samples if samples else None
    gradients = result.history["gradient_evaluations"] if gradients is None else gradients
    return {
        "status": result.status.name,
        "gap": gap.tolist(),
        "time": result.history["time"].tolist(),
        "gradients": gradients.tolist(),
        "violation": result.violation,
        "residual": result.residual,
    }


def reached(run, gap, axis):
    return next((x for x, g in zip(run[axis], run["gap"], strict=True) if g <= gap), None)


def score(run):
    depth = sum(reached(run, gap, "time") is not None for gap in GAPS)
    return -depth, reached(run, GAPS[depth - 1], "time") if depth else 0.0


def table(runs):
    print(
        "| method | s to 10⁻² | 10⁻⁴ | 10⁻⁸ | gradients to 10⁻⁸ | ended at a gap of | violation "
        "| residual |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, run in runs.items():
        times = " | ".join(
            "-" if (t := reached(run, gap, "time")) is None else f"{t:.3g}" for gap in GAPS
        )
        gradients = reached(run, GAPS[-1], "gradients")
        shown = "-" if gradients is None else f"{gradients:.0f}"
        last = f"{run['gap'][-1]:.0e}"
        print(
            f"| {name} | {times} | {shown} | {last} | {run['violation']:.0e} | "
            f"{run['residual']:.0e} |"
        )


def draw(report, path):
    """The best gap so far against time: one row per problem, one column per family of methods.

    The methods of the other families are thin grey lines.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(len(report), len(FAMILIES), sharex="row", sharey=True, squeeze=False)
    for row, (title, runs) in zip(panels, report.items(), strict=True):
        for axes, members in zip(row, FAMILIES.values(), strict=True):
            for name, run in runs.items():
                x = np.maximum(run["time"], 1e-4)
                y = np.maximum(np.minimum.accumulate(np.nan_to_num(run["gap"], nan=np.inf)), 1e-10)
                if name in members:
                    _, colour, style = members[name]
                    axes.loglog(x, y, linestyle=style, color=colour, label=name, lw=2, zorder=2)
                else:
                    axes.loglog(x, y, color="#cccccc", lw=0.8, zorder=1)
            axes.set(ylim=(5e-9, 2))
            axes.grid(alpha=0.3)
        row[0].set(ylabel=f"{title}\nrelative gap")
    for axes, family in zip(panels[0], FAMILIES, strict=True):
        axes.set_title(family)
    for axes, above in zip(panels[-1], panels[0], strict=True):
        axes.set_xlabel("seconds")
        lines = above.get_legend_handles_labels()
        axes.legend(*lines, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--problem", choices=PROBLEMS, action="append", help="default: all")
    parser.add_argument("--output", type=Path, help="a JSON file; the picture goes beside it")
    parser.add_argument("--draw", type=Path, nargs="+", help="draw these JSON files, run nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.draw:
        report = {}
        for path in arguments.draw:
            report |= json.loads(path.read_text())
    else:
        report = measure_all(arguments)
    for title, runs in report.items():
        print(f"\n{title}\n")
        table(runs)
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(report))
        draw(report, arguments.output.with_suffix(".png"))


def measure_all(arguments):
    """The median run of every method on every problem."""
    n, report = arguments.size, {}
    warm = procrustes(8, 4, 1)
    for method in METHODS.values():
        measure(*warm, method, 0.5)
    for title in arguments.problem or PROBLEMS:
        problem = PROBLEMS[title](n, n // 2, arguments.seed)
        runs = {}
        for name, method in METHODS.items():
            if name.startswith("VR") and not problem[0].samples:
                continue
            found = [measure(*problem, method, arguments.budget) for _ in range(arguments.repeats)]
            runs[name] = sorted(found, key=score)[len(found) // 2]
        report[title] = runs
    return report


if __name__ == "__main__":
    main()
