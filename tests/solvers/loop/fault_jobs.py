"""Runs in processes of their own, for what only a process can suffer: limits, signals, kills.

Each job is given a pipe and tells by it what it found.
"""

import multiprocessing
import os
import resource
import signal
import time
import warnings
from contextlib import contextmanager

import jorth
from jorth.datasets import planted_procrustes
from jorth.solvers import checkpoint as checkpoints
from jorth.solvers import loop

SIG = jorth.Signature(3, 3)
SOURCE, TARGET, _ = planted_procrustes(
    20, SIG, source_condition=3.0, point_condition=4.0, noise=0.1, seed=1
)


def minimize(**options):
    """The problem of all jobs."""
    own = dict(signature=SIG, method="j-jobcd", gradient_tolerance=0.0, max_iterations=12)
    return jorth.minimize(jorth.Procrustes(SOURCE, TARGET), **(own | options))


@contextmanager
def process(job, *arguments):
    """A process that does the job, and the pipe to it.
    It is killed at the end if it is still there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    here, there = context.Pipe()
    started = context.Process(target=job, args=(there, *arguments), daemon=True)
    started.start()
    there.close()
    try:
        yield started, here
    finally:
        if started.is_alive():
            os.kill(started.pid, signal.SIGKILL)
        started.join(60)


def full(pipe, folder, interval):
    """No file may grow beyond 100 bytes after the third iteration."""
    infinite = resource.RLIM_INFINITY

    def limit(X, row):
        if row["iteration"] == 3:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, infinite))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = minimize(checkpoint=folder, checkpoint_interval=interval, callback=limit)
    pipe.send((result, [str(warning.message) for warning in caught]))


def asked(pipe, folder, method):
    """Ctrl-C at the fourth iteration, and a disk so slow that there is time for more of them."""
    replacing = vars(checkpoints)["replacing"]

    def slow(path):
        pipe.send("saving")
        time.sleep(0.5)
        return replacing(path)

    def press(X, row):
        if row["iteration"] == 4:
            os.kill(os.getpid(), signal.SIGINT)

    vars(checkpoints)["replacing"] = slow
    options = dict(checkpoint=folder, checkpoint_interval=1e9, max_iterations=100)
    result = minimize(callback=press, method=method, **options)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send(result)


def hanging(pipe, folder):
    """A disk that does not answer."""

    def hang(path):
        pipe.send("saving")
        time.sleep(600)

    loop.SAVING_SECONDS = 0.2
    vars(checkpoints)["replacing"] = hang
    try:
        minimize(checkpoint=folder, checkpoint_interval=1e9)
    except KeyboardInterrupt:
        pipe.send("left")
