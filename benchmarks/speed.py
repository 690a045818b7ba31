"""The grid of `jorth bench speed` in several processes, then docs/results/speed.md and its picture.

    python benchmarks/speed.py --cores 16 --minutes 8 --docs docs
    python benchmarks/speed.py --minutes 0 --docs docs     # the page alone, from the rows so far

Every process has as many cores as its problems have threads, for itself. The largest problems
start first. When the time is over, what is unfinished is interrupted: finished runs are kept, and
the same command continues.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from jorth.bench import read_rows
from jorth.bench.speed.cells import ONE_SEED, Plan
from jorth.bench.speed.methods import GROUPS
from jorth.bench.speed.page import page
from jorth.bench.speed.picture import picture
from jorth.bench.speed.table import entries
from jorth.bench.speed.terminal import shown

COMMAND = [sys.executable, "-c", "from jorth.cli import main; main()", "bench", "speed"]
PAUSE = 0.2  # seconds between two looks at the processes


def parts(plan):
    """The options of each process, and the number of its threads.

    Problems of one task and size share a process; large ones have their own.
    """
    found = {}
    for cell in plan.cells():
        options = ["--task", cell.task, "--n", cell.n, "--threads", cell.threads]
        if cell.n >= ONE_SEED:
            options += ["--p-share", cell.p / cell.n, "--condition", cell.condition]
        options += [text for seed in plan.seeds for text in ("--seed", seed)]
        found[tuple(map(str, options))] = cell
    for options, cell in sorted(found.items(), key=lambda part: -part[1].n):
        yield list(options), cell.threads


def of_the_picture():
    """Plain JOBCD at the large size of the picture, which the short plan leaves out."""
    plan = Plan(tasks=("procrustes",), sizes=(ONE_SEED,), shares=(0.5,), threads=(1,), seeds=(0,))
    return replace(plan, methods=GROUPS["plain"])


def run(jobs, folder, cores, seconds):
    """Start the processes as cores become free, and interrupt them when the time is over."""
    deadline = time.monotonic() + seconds
    waiting, running = list(jobs), []
    folder.mkdir(parents=True, exist_ok=True)
    while (waiting or running) and time.monotonic() < deadline:
        for process, used in [job for job in running if job[0].poll() is not None]:
            running.remove((process, used))
            cores |= used
        for job in [job for job in waiting if job[1] <= len(cores)]:
            if job[1] <= len(cores):
                used = {cores.pop() for _ in range(job[1])}
                running.append((start(job[0], folder, used), used))
                waiting.remove(job)
        time.sleep(PAUSE)
    for process, _ in running:
        process.send_signal(signal.SIGINT)
    for process, _ in running:
        process.wait()
    print(f"{len(waiting)} processes were not started, {len(running)} interrupted")


def start(options, folder, cores):
    """One process on its own cores; what it prints goes to a file beside the rows."""
    name = "-".join(option for option in options if not option.startswith("--"))
    with (folder / f"{name[:60]}.log").open("w") as log:
        process = subprocess.Popen([*COMMAND, *options, "-o", str(folder)], stdout=log, stderr=log)
    os.sched_setaffinity(process.pid, cores)
    return process


def write(folder, docs):
    """Print the tables; write the page and the picture into the docs."""
    rows = read_rows(folder)
    found = entries(rows)
    Console(highlight=False, width=100).print(shown(rows, found))
    if docs is not None:
        (docs / "results" / "speed.md").write_text(page(found))
        drawn = picture(found)
        if drawn is not None:
            (docs / "images" / "speed.png").write_bytes(drawn)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/speed"), help="folder of the rows")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--largest", type=int, default=1000, help="the largest n")
    parser.add_argument("--seed", type=int, action="append", help="default: 0, 1 and 2")
    parser.add_argument("--docs", type=Path, help="where results/speed.md and images/speed.png go")
    given = parser.parse_args()
    plan = Plan(short=True, seeds=given.seed or Plan.seeds)
    jobs = [([*options, "--short"], threads) for options, threads in parts(plan)]
    jobs = [job for job in jobs if int(job[0][3]) <= given.largest]
    if given.largest >= ONE_SEED:
        extra = [text for name in GROUPS["plain"] for text in ("--solver", name)]
        jobs += [([*options, *extra], threads) for options, threads in parts(of_the_picture())]
    cores = set(sorted(os.sched_getaffinity(0))[: given.cores])
    run([job for job in jobs if job[1] <= len(cores)], given.output, cores, 60 * given.minutes)
    write(given.output, given.docs)


if __name__ == "__main__":
    main()
