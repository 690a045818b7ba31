"""Ways to train J-orthogonal parameters: five tasks, every method, a grid of rates, five seeds.

    python benchmarks/training.py --workers 16 --plot docs/images/optimisers.png
    python benchmarks/training.py --quick

Losses are those on all data, against steps and against time: the clock stands still while a run is
scored, and starts after two steps on a copy, so that compiled kernels are there. Each finished run
is a line of ``--records``; the same command continues what was interrupted. At the end the tables
of docs/results/training.md are printed.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import numpy as np
import pandas as pd
import torch

import jorth
from benchmarks.training_tasks import DEFAULT_RATE, METHODS, TASKS, Training

POINTS, WARM = 40, 2
QUICK_STEPS, QUICK_RATES = 80, (0.01, 0.1)
CONTEXT = multiprocessing.get_context("spawn")
OURS = "JOBCD"
OFF_THE_GROUP = 2.0**-12
"""u^(1/2) in float32: beyond, a residual is no rounding."""
Record = dict[str, Any]


class Run(NamedTuple):
    """What is run."""

    task: str
    method: str
    lr: float
    seed: int


def plan(seeds: list[int], quick: bool = False) -> list[Run]:
    """All runs, one seed after the other."""
    return [
        Run(task, name, lr, seed)
        for seed in seeds
        for task in TASKS
        for name, method in METHODS.items()
        for lr in method.rates
        if not quick or lr in QUICK_RATES
    ]


def measure(run: Run, steps: int | None = None) -> Record:
    """The record of a run, ready for JSON; "failed" says why a run does not count, else it is None.

    It is scored close together at first, and after the last step.
    """
    torch.set_num_threads(1)
    record: Record = run._asdict() | dict(failed=None, steps=[], loss=[], ms=[])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rates too large: what becomes of them is recorded
        try:
            _train(run, record, steps)
        except Exception as error:  # a run that fails is a line of the table
            record["failed"] = f"{type(error).__name__}: {error}"[:200]
    return record


def _train(run: Run, record: Record, steps: int | None) -> None:
    task = TASKS[run.task](run.seed) if steps is None else TASKS[run.task](run.seed, steps)
    warm = Training(task, run.method, run.lr)
    for step in range(min(WARM, task.steps)):
        warm.step(step)
    warm.score()
    training, seconds, done = Training(task, run.method, run.lr), 0.0, 0
    for count in sorted({math.ceil(task.steps * (k / POINTS) ** 2) for k in range(POINTS + 1)}):
        start = time.perf_counter()
        for step in range(done, count):
            training.step(step)
        seconds, done = seconds + time.perf_counter() - start, count
        loss, X = training.score(), [x.detach() for x in training.current()]
        for name, value in dict(steps=count, loss=loss, ms=1e3 * seconds).items():
            record[name].append(float(f"{value:.4g}"))
        if not (math.isfinite(loss) and all(torch.isfinite(x).all() for x in X)):
            raise FloatingPointError(f"the loss or a parameter is not finite after step {count}")
    residuals = [torch.as_tensor(jorth.residual(x, task.signature)).max() for x in X]
    record["residual"] = float(max(residuals))
    record["norm"] = float(max(torch.linalg.matrix_norm(x, 2).max() for x in X))
    if METHODS[run.method].feasible and not record["residual"] <= OFF_THE_GROUP:
        record["failed"] = f"it left the group: residual {record['residual']:.0e}"


def read(path: Path) -> list[Record]:
    """The lines of a file of records; a last line cut short is left out."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run_all(runs: list[Run], path: Path, workers: int, steps: int | None) -> list[Record]:
    """Return all records, from the file or from runs that are added to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = read(path)
    done = {tuple(record[key] for key in Run._fields) for record in records}
    missing = [run for run in runs if run not in done]
    print(f"{len(missing)} of {len(runs)} runs are not yet in {path}", flush=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with path.open("a") as file, ProcessPoolExecutor(workers, CONTEXT) as pool:
        for record in pool.map(partial(measure, steps=steps), missing):
            print(json.dumps(record), file=file, flush=True)
            records.append(record)
    return records


# -- tables


def loss_at(record: Record, ms: float) -> float:
    """The loss after so much training: the logarithm is interpolated between scores."""
    if record["failed"]:
        return math.inf
    return math.exp(np.interp(ms, record["ms"], np.log(record["loss"])))


def frame(records: list[Record]) -> pd.DataFrame:
    """A row per run, with its "final" loss and that at "equal" time; infinite where it failed.

    Equal time is the median of JOBCD with its defaults, the column "budget" in ms.
    """
    found = pd.DataFrame(records)
    default = found[(found["method"] == OURS) & (found["lr"] == DEFAULT_RATE)]
    budget = default["ms"].str[-1].groupby(default["task"]).median()
    found["budget"] = found["task"].map(budget)
    found["final"] = [loss_at(record, math.inf) for record in records]
    found["equal"] = [loss_at(*pair) for pair in zip(records, found["budget"], strict=True)]
    return found


def best(found: pd.DataFrame, column: str = "final") -> pd.DataFrame:
    """For each task and method the mean loss at the rate "lr" where it is least."""
    means = found.groupby(["task", "method", "lr"])[column].mean().reset_index()
    return means.loc[means.groupby(["task", "method"])[column].idxmin()].set_index(
        ["task", "method"]
    )


def tables(found: pd.DataFrame) -> str:
    """Final losses of each task at the best rates, and losses at equal time, as Markdown."""
    lines, chosen, equal = [], best(found), best(found, "equal")
    feasible = [name for name, method in METHODS.items() if method.feasible]
    columns = ("method", "lr", "loss", "over the best", "ms per step", "residual", "norm", "failed")
    tasks = [task for task in TASKS if task in set(found["task"])]
    for task in tasks:
        least = chosen.loc[task].loc[feasible, "final"].min()
        lines += ["", f"### {task}", "", *head(*columns)]
        rates = [("JOBCD, default", OURS, DEFAULT_RATE)]
        rates += [(name, name, chosen.loc[(task, name), "lr"]) for name in METHODS]
        for title, name, lr in rates:
            every = found[(found["task"] == task) & (found["method"] == name)]
            rows = every[every["lr"] == lr]
            if title != name:
                every = rows
            loss, spread = rows["final"].mean(), rows["final"].std(ddof=0)
            speed = (rows["ms"].str[-1] / rows["steps"].str[-1]).mean()
            numbers = f"{loss:.3g} ± {spread:.1g} | {loss / least:.2f} | {speed:.2f}"
            ends = f"{rows['residual'].max():.0e} | {rows['norm'].max():.2g}"
            failed = f"{every['failed'].notna().sum()} of {len(every)}"
            lines.append(f"| {title} | {lr:g} | {numbers} | {ends} | {failed} |")
    budgets = found.groupby("task")["budget"].first() / 1e3
    lines += ["", "### Equal time", ""]
    lines += head("method", *(f"{task}, {budgets[task]:.3g} s" for task in tasks))
    for name in METHODS:
        rows = [equal.loc[(task, name)] for task in tasks]
        cells = (f"{row['equal']:.3g} ({row['lr']:g})" for row in rows)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def head(*names: str) -> list[str]:
    return [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]


# -- picture


def draw(found: pd.DataFrame, path: Path) -> None:
    """A column per task: means over the seeds at the best rates, against steps and seconds."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    chosen = best(found)
    with rc_context({"font.size": 7, "axes.linewidth": 0.6}):
        tasks = [task for task in TASKS if task in set(found["task"])]
        figure = Figure(figsize=(10, 5), layout="constrained")
        panels = figure.subplots(2, len(tasks), sharey="col", squeeze=False)
        for task, (above, below) in zip(tasks, panels.T, strict=True):
            curves = [(name, name, chosen.loc[(task, name), "lr"], {}) for name in METHODS]
            curves[0] = (f"{OURS}, best rate", OURS, curves[0][2], dict(linestyle="-."))
            thick = dict(linewidth=2.4, zorder=5)
            curves.append((f"{OURS}, default (lr = {DEFAULT_RATE:g})", OURS, DEFAULT_RATE, thick))
            limits = []
            for title, name, lr, look in curves:
                key = (found["task"] == task) & (found["method"] == name) & (found["lr"] == lr)
                rows = found[key & found["failed"].isna()]
                if rows.empty:
                    continue
                steps, loss, ms = (np.mean([*rows[key]], axis=0) for key in ("steps", "loss", "ms"))
                colour, style = METHODS[name].line
                look = dict(color=colour, linestyle=style, linewidth=0.9) | look
                above.plot(steps[1:], loss[1:], label=title, **look)
                below.plot(ms[1:] / 1e3, loss[1:], **look)
                if METHODS[name].feasible:
                    limits.append((loss.min() / 1.3, 1.5 * loss[0]))
            above.set(title=task, xlabel="steps", xscale="log", yscale="log")
            below.set(xlabel="seconds", xscale="log", yscale="log")
            below.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
            for axes in (above, below):
                axes.grid(alpha=0.25, linewidth=0.5)
        for row in panels:
            row[0].set_ylabel("loss")
        legend = panels[0][0].get_legend_handles_labels()
        figure.legend(*legend, loc="outside lower center", ncols=5, frameon=False)
        figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--quick", action="store_true", help="one seed, two rates, 80 steps")
    parser.add_argument("--records", type=Path, help="default: out/training[_quick].jsonl")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    given = parser.parse_args()
    path = given.records or Path(f"out/training{'_quick' if given.quick else ''}.jsonl")
    runs = plan(given.seeds[:1] if given.quick else given.seeds, given.quick)
    found = frame(run_all(runs, path, given.workers, QUICK_STEPS if given.quick else None))
    print(tables(found))
    if given.plot is not None:
        draw(found, given.plot)


if __name__ == "__main__":
    main()
