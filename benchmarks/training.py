"""Ways to train J-orthogonal parameters: five tasks, every method, a grid of rates, five seeds.

    python benchmarks/training.py --workers 16 --plot docs/images/optimisers.png
    python benchmarks/training.py --quick

Losses are those on all data, against steps and against time. Runs are spread over processes, each
with one thread and, where there are enough, one core of its own. Each finished run is a line of
``--records``; the same command continues what was interrupted. At the end the tables of
docs/results/training.md are printed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks.training_methods import METHODS, QUICK
from benchmarks.training_picture import draw
from benchmarks.training_results import Results, tables
from benchmarks.training_runs import Run, blank, measure
from benchmarks.training_tasks import TASKS

SEEDS = (0, 1, 2, 3, 4)
QUICK_STEPS = 80
ATTEMPTS = 5
"""So many times the processes are started anew when one of them dies."""


def plan(seeds: tuple[int, ...], quick: bool = False) -> list[Run]:
    """All runs, one seed after the other."""
    return [
        Run(task, name, lr, seed)
        for seed in seeds
        for task in TASKS
        for name, method in METHODS.items()
        for lr in method.rates
        if not quick or lr in QUICK
    ]


def results(
    runs: list[Run], make: Callable[[Run], dict[str, Any]], workers: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """The records of the runs as they finish, until the time is over.

    A process that dies takes the others with it: all are started again with what is left. What is
    left after the last attempt has failed.
    """
    deadline = time.monotonic() + seconds
    for _ in range(ATTEMPTS):
        unfinished = []
        pool = _processes(workers)
        try:
            jobs = {pool.submit(make, run): run for run in runs}
            for job in futures.as_completed(jobs, timeout=max(0.0, deadline - time.monotonic())):
                if job.exception() is None:
                    yield job.result()
                else:
                    unfinished.append(jobs[job])
        except futures.TimeoutError:
            return
        finally:
            pool.shutdown(cancel_futures=True)
        runs = unfinished
        if not runs:
            return
    yield from (blank(run, "its process died") for run in runs)


def _processes(workers: int) -> futures.ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    free, cores = context.Queue(), sorted(os.sched_getaffinity(0))
    for core in cores[:workers] if workers <= len(cores) else []:
        free.put(core)
    pinned = workers <= len(cores)
    return futures.ProcessPoolExecutor(workers, context, _take_core, (free,) if pinned else ())


def _take_core(free: Any = None) -> None:
    """Keep this process on a core of its own."""
    if free is not None:
        os.sched_setaffinity(0, {free.get()})


def read(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of records; a last line cut short is left out."""
    lines = path.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def run_all(runs: list[Run], records: Path, workers: int, seconds: float, steps: int | None) -> int:
    """Add what is missing to the file of records; the number of runs that still are."""
    records.parent.mkdir(parents=True, exist_ok=True)
    lines = read(records) if records.exists() else []
    done = {tuple(line[key] for key in Run._fields) for line in lines if "task" in line}
    missing = [run for run in runs if tuple(run) not in done]
    print(f"{len(missing)} of {len(runs)} runs are not yet in {records}", flush=True)
    kept = "".join(json.dumps(line) + "\n" for line in lines)  # without a line cut short
    with records.open("w") as file:
        file.write(kept)
        left = len(missing)
        for record in results(missing, partial(measure, steps=steps), workers, seconds):
            print(json.dumps(record), file=file, flush=True)
            left -= 1
            if left % 100 == 0:
                print(f"{left} runs left", flush=True)
    return left


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes, one thread each")
    parser.add_argument("--plot", type=Path, help="where the picture goes")
    parser.add_argument("--quick", action="store_true", help="one seed, two rates, 80 steps")
    parser.add_argument("--records", type=Path, help="default: out/training[_quick].jsonl")
    parser.add_argument("--minutes", type=float, default=600.0, help="then runs are interrupted")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = parser.parse_args(arguments)
    seeds = tuple(given.seeds[:1] if given.quick else given.seeds)
    quick = "_quick" if given.quick else ""
    records = given.records or Path(f"out/training{quick}.jsonl")
    steps = QUICK_STEPS if given.quick else None
    runs = plan(seeds, given.quick)
    left = run_all(runs, records, given.workers, 60 * given.minutes, steps)
    if left:
        print(f"{left} runs are missing: the same command continues")
    found = Results(read(records))
    print(tables(found))
    if given.plot is not None:
        draw(found, given.plot)


if __name__ == "__main__":
    main()
