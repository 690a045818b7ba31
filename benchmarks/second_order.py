"""Newton's method to the last digit, beside L-BFGS and pymanopt's trust regions.

    taskset -c 0 python benchmarks/second_order.py --docs docs
    python benchmarks/second_order.py --draw --docs docs    # again from the records in docs

Iterations and seconds until the gradient norm is 1e-10 of its scale, from the identity, on the
tasks of `jorth bench speed`: Procrustes, a trace, and robust alignment, a torch function. One
thread; medians over the seeds. The picture has the gradient norm against iterations.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

import jorth
from jorth.bench.core.figures import LINES, new_figure
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.methods import TRUST_REGIONS
from jorth.bench.speed.peers import Ended, run_pymanopt
from jorth.bench.speed.problems import problem_of
from jorth.clock import Clock

TASKS = {"procrustes": "Procrustes", "trace": "trace", "robust": "robust alignment"}
SIZES = (8, 32, 64)
SEEDS = (0, 1, 2)
CONDITION = 10.0
TOLERANCE = 1e-10
WRITTEN_OUT = "Newton, Hessian written out"
OURS = {
    "Newton": "riemannian-newton",
    WRITTEN_OUT: "riemannian-newton",
    "L-BFGS": "riemannian-lbfgs",
}
METHODS = (*OURS, TRUST_REGIONS)
STYLES = {"Newton": LINES["Riemannian Newton"], "L-BFGS": LINES["Riemannian L-BFGS"],
          TRUST_REGIONS: LINES["GS-JOBCD"]}  # fmt: skip
SECONDS = 20.0
REPEATS = 3
"""The fastest run counts, as other programs may be running."""
RECORDS = "report/second_order.json"
PICTURE = "images/second_order.png"
PAGE = "results/second_order.md"
DRAWN = 32
"""The size in the picture."""
TEXT = """\
# Newton to the last digit

How many iterations and how much time do Newton's method, L-BFGS and pymanopt's trust regions take
until the gradient norm is 10⁻¹⁰ of its scale? `python benchmarks/second_order.py --docs docs`
writes this page.

![gradient norm against iterations](../images/second_order.png)

*n = 32, p = 16. The last steps of Newton's method double the number of digits. Steps of pymanopt
are those that its trust region accepts.*

The tasks are those of [`jorth bench speed`](../background/benchmarks.md#speed) with p = n/2, a
source of condition 10, one thread and the identity as the start. An entry has iterations and
milliseconds of solving (the least of three runs), medians over three seeds; "late" did not get
there within 20 s. Brackets have the mean number of products f''(X)[V] per iteration; compiled steps
on quadratics need none.

{table}

- On **quadratics** an iteration of Newton's method is one compiled call: fewer iterations than any
  other method and the least time at these sizes. From about n = 80 on L-BFGS is
  [faster](../howto/choosing.md#by-size-and-accuracy-on-quadratics).
- On a **torch function** Newton's method takes f''(X)[V] by autograd. It takes a tenth of the
  iterations of L-BFGS and less time to this accuracy.
- **The Hessian written out** in NumPy, as pymanopt's trust regions get it, goes to
  `jorth.Objective(value, gradient, hessian)`. This hides a quadratic from the compiled steps and
  from the preconditioner. pymanopt's trust regions are faster then, and on the torch function.

## Ill-conditioned noisy data

With a source of condition κ and noise of relative size ε, the best X of a Procrustes problem is far
out, at the end of a narrow curved valley, if κ ε is large. For κ = 10⁴ and ε = 0.1, n = 20, the
curvature varies by a factor of 10⁹ and Newton's method takes 1000 to 3000 iterations; L-BFGS does
not get there in as many. The valley bends, and a step follows it no further than the pole of the
Cayley transform. At κ = 10³ it takes 30 to 80 iterations.
"""


class Recorder:
    """Times and gradient norms of a run of pymanopt; the clock is paused while it records."""

    max_time = SECONDS

    def __init__(self, norm, target):
        self.rows = []
        self._norm, self._target = norm, target
        self._clock = Clock()
        self._clock.start()

    def record(self, X):
        self._clock.pause()
        self.rows.append((self._clock.seconds, self._norm(X)))
        if self.rows[-1][1] <= self._target or self._clock.seconds > SECONDS:
            raise Ended
        self._clock.start()


def built(problem, name):
    """The objective of a method; NumPy functions as for pymanopt, or what a user of jorth has."""
    if name != WRITTEN_OUT:
        return problem.build()
    dense = problem.build_dense()
    return jorth.Objective(dense.value, dense.gradient, dense.hessian)


def run_ours(problem, name):
    result = jorth.minimize(
        built(problem, name), signature=problem.signature, method=OURS[name],
        gradient_tolerance=TOLERANCE, max_time=SECONDS,
    )  # fmt: skip
    rows = list(zip(result.history["time"], result.history["gradient_norm"], strict=True))
    return rows, result.gradient_scale, result.evaluations.hessian


def run_peer(problem, scale):
    dense, s = problem.build_dense(), problem.signature.signs[:, None].astype(float)

    def norm(X):
        M = s * (dense.gradient(X) @ X.T)
        return float(np.linalg.norm(M - M.T) / 2)

    recorder = Recorder(norm, TOLERANCE * scale)
    with suppress(Ended):
        start = np.eye(problem.signature.n)
        run_pymanopt(dense, problem.signature, recorder, TRUST_REGIONS, start)
    return recorder.rows


def measure():
    """The record of every run."""
    torch.set_num_threads(1)
    found = []
    for task in TASKS:
        for n in SIZES:
            for seed in SEEDS:
                cell = SpeedCell(
                    task=task,
                    n=n,
                    p=n // 2,
                    condition=CONDITION,
                    seed=seed,
                    method="",
                    threads=1,
                    max_time=SECONDS,
                )
                problem = problem_of(cell)
                for name in OURS:  # the first call compiles
                    jorth.minimize(
                        built(problem, name), signature=problem.signature, method=OURS[name],
                        max_iterations=2,
                    )  # fmt: skip
                for name in METHODS:
                    runs = []
                    for _ in range(REPEATS):
                        if name in OURS:
                            rows, scale, products = run_ours(problem, name)
                        else:
                            rows, products = run_peer(problem, scale), None
                        runs.append(rows)
                    rows = min(runs, key=lambda rows: rows[-1][0])
                    done = bool(rows[-1][1] <= TOLERANCE * scale)
                    found.append(
                        {"task": task, "n": n, "seed": seed, "method": name, "reached": done,
                         "iterations": len(rows) - 1, "seconds": rows[-1][0],
                         "products": products, "norms": [float(g / scale) for _, g in rows]}
                    )  # fmt: skip
                    print(task, n, seed, name, len(rows) - 1, f"{rows[-1][0]:.4f} s", done)
    return found


def entry(records):
    """Iterations and milliseconds, medians; and products per iteration."""
    if not all(record["reached"] for record in records):
        return "late"
    iterations = statistics.median(record["iterations"] for record in records)
    milliseconds = 1e3 * statistics.median(record["seconds"] for record in records)
    shown = f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"
    text = f"{iterations:.0f}, {shown} ms"
    products = [
        record["products"] / record["iterations"] for record in records if record["products"]
    ]
    return f"{text} ({statistics.median(products):.1f})" if products else text


def table(found):
    lines = [f"| task | n | {' | '.join(METHODS)} |", "|---|---|" + "---|" * len(METHODS)]
    for task, label in TASKS.items():
        for n in SIZES:
            cells = [
                entry([r for r in found if (r["task"], r["n"], r["method"]) == (task, n, name)])
                for name in METHODS
            ]
            lines.append(f"| {label} | {n} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(found, path):
    """The gradient norm against iterations, one panel for each task."""
    figure = new_figure(11.0, 3.8)
    panels = figure.subplots(1, len(TASKS), sharey=True)
    for panel, (task, label) in zip(panels, TASKS.items(), strict=True):
        longest = 0
        for name, (colour, line, marker) in STYLES.items():
            (record,) = (
                r for r in found
                if (r["task"], r["n"], r["seed"], r["method"]) == (task, DRAWN, 0, name)
            )  # fmt: skip
            norms = record["norms"]
            every = max(1, math.ceil(len(norms) / 25))
            panel.semilogy(norms, color=colour, linestyle=line, marker=marker, markersize=5,
                           markevery=every, label=name)  # fmt: skip
            longest = max(longest, len(norms) if name != "L-BFGS" else 0)
        panel.set_xlim(-0.5, min(2.5 * longest, panel.dataLim.x1) + 0.5)
        panel.set_title(label)
        panel.set_xlabel("iterations")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("gradient norm / scale")
    panels[-1].legend(fontsize=9)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", type=Path, help="the folder for records, page and picture")
    parser.add_argument("--draw", action="store_true", help="only draw from the records there")
    options = parser.parse_args()
    if options.draw:
        found = json.loads((options.docs / RECORDS).read_text())
    else:
        found = measure()
    print(table(found))
    if options.docs is None:
        return
    (options.docs / RECORDS).write_text(json.dumps(found, indent=None) + "\n")
    (options.docs / PAGE).write_text(TEXT.format(table=table(found)), encoding="utf-8")
    draw(found, options.docs / PICTURE)


if __name__ == "__main__":
    main()
