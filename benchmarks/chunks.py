"""Finite sums over memory maps of 1, 4 and 16 times the memory that a process may use, on one
process and on two under torchrun. Limit and peaks are of memory that is not backed by a file.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import jorth

COLUMNS, MB = 64, 10**6


def loss(X, batch):
    S, T = batch
    return (S @ X - T).square().sum(dim=1).add(1).sqrt().mean()


def write(path, rows, seed):
    if not path.exists():
        array = np.lib.format.open_memmap(path, "w+", float, (rows, COLUMNS))
        rng = np.random.default_rng(seed)
        for start in range(0, rows, 10**5):
            part = array[start : start + 10**5]
            part[:] = rng.standard_normal(part.shape)


def status(name):
    """Return an amount of memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])


def work(folder, rows, limit, in_memory):
    """Print the peak and the times of one process."""
    torch.set_num_threads(1)
    X = torch.eye(COLUMNS, dtype=torch.float64)
    warm = np.ones((20_000, COLUMNS))
    jorth.FiniteSum(loss, (warm, warm)).value_and_gradient(X)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    share = slice(rank * rows // size, (rank + 1) * rows // size)
    data = tuple(np.load(folder / f"{name}{rows}.npy", mmap_mode="r")[share] for name in "ST")
    base, peak, running = status("RssAnon"), 0, True
    resource.setrlimit(resource.RLIMIT_DATA, 2 * (status("VmData") + limit * MB,))

    def watch():
        nonlocal peak
        while running:
            peak = max(peak, status("RssAnon") - base)
            time.sleep(0.001)

    threading.Thread(target=watch).start()
    try:
        data = tuple(map(np.array, data)) if in_memory else data
        f = jorth.Sharded(jorth.FiniteSum(loss, data))
        index = torch.from_numpy(np.random.default_rng(0).choice(rows, 1000, replace=False))
        method = {"signature": jorth.Signature(60, 4), "method": "vr-j-jobcd"}
        run = {"max_evaluations": 2, "probability": 0.01, "gradient_tolerance": 0, **method}
        text = ""
        for name, call in {
            "a pass": lambda: f.value_and_gradient(X),
            "1000 samples": lambda: f.sample_gradient(X, index),
            "a run": lambda: jorth.minimize(f, **run),
        }.items():
            start = time.process_time()
            call()
            text += f"  {name} {time.process_time() - start:.3f} s, peak {peak / MB:.0f} MB;"
    except (MemoryError, RuntimeError):
        text = "out of memory"
    running = False
    print(f"{rows * COLUMNS * 16 / MB:.0f} MB, rank {rank} of {size}: {text}", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("out/chunks"))
    parser.add_argument("--limit", type=int, default=400, help="MB beyond the base")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 16], help="times the limit")
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--in-memory", action="store_true")
    options = parser.parse_args()
    if options.rows:
        return work(options.folder, options.rows, options.limit, options.in_memory)
    options.folder.mkdir(parents=True, exist_ok=True)
    for rows in (size * options.limit * MB // (16 * COLUMNS) for size in options.sizes):
        for seed, name in enumerate("ST"):
            write(options.folder / f"{name}{rows}.npy", rows, seed)
        for processes in (1, 2):
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
            command += ["--nproc-per-node", str(processes), __file__, f"--rows={rows}"]
            command += [f"--folder={options.folder}", f"--limit={options.limit}"]
            command += ["--in-memory"] if options.in_memory else []
            subprocess.run(command, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    main()
