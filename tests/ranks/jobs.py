"""What the processes of the tests do, one process for comparison, and a job that loses one."""

import os
import signal
import time

import torch

import jorth
from tests.objectives.test_data_taken import Stored

SIG = jorth.Signature(4, 3)
ROWS, FIRST = 41, 26  # of which the first process has the first 26
SOURCE, TARGET, _ = (
    torch.from_numpy(a) for a in jorth.datasets.planted_procrustes(ROWS, SIG, noise=0.1, seed=5)
)


def robust(X, batch):
    S, T = batch
    return (S @ X - T).square().sum(dim=1).add(1.0).sqrt().mean()


def objective(kind, rows, *, shared):
    S, T = SOURCE[rows], TARGET[rows]
    if kind == "Procrustes":
        own = jorth.Procrustes(S, T)
    elif shared:  # from files
        own = jorth.FiniteSum(robust, (Stored(S.numpy()), Stored(T.numpy())), chunk=4)
    else:
        own = jorth.FiniteSum(robust, (S, T))
    return jorth.Sharded(own) if shared else own


def rows_of(rank):
    """All rows for one process on its own."""
    return slice(None) if rank is None else slice(0, FIRST) if rank == 0 else slice(FIRST, None)


OPTIONS = {
    "j-jobcd": {"max_iterations": 12},
    "one round": {"max_iterations": 25, "rounds_per_gradient": 1},
    "vr-j-jobcd": {"max_iterations": 60, "difference_batch": 2, "probability": 0.2},
    "small batches": {"max_iterations": 60, "difference_batch": 2, "batch": 11, "probability": 0.4},
    "averaged": {"max_iterations": 60, "curvature": "per-plane"},
    "gs-jobcd": {"max_iterations": 6},
}
METHODS = {"one round": "j-jobcd", "small batches": "vr-j-jobcd", "averaged": "vr-j-jobcd"}
CASES = [(kind, name) for kind in ("FiniteSum", "Procrustes") for name in OPTIONS]
"""An objective and a method."""


def solve(case, rank, **further):
    """The points on the way, and the result."""
    kind, name = case
    points = []
    options = {
        "signature": SIG,
        "method": METHODS.get(name, name),
        "gradient_tolerance": 0.0,
        **OPTIONS[name],
    }
    callback = further.pop("callback", lambda X, row: None)

    def noted(X, row):
        points.append(X)
        return callback(X, row)

    result = jorth.minimize(
        objective(kind, rows_of(rank), shared=rank is not None),
        torch.eye(SIG.n, dtype=torch.float64),
        callback=noted,
        **options | further,
    )
    return {
        "points": torch.stack([*points, result.x]),
        "values": torch.tensor(result.history["value"]),
        "iterations": result.iterations,
        "evaluations": vars(result.evaluations),
        "status": result.status.name,
    }


def endings(rank):
    """Runs that only one process wants to end, and one where they are not at the same point."""

    def at(iteration, act):
        return lambda X, row: act() if rank == 1 and row["iteration"] == iteration else None

    steps = {"max_iterations": 1000}
    case = ("FiniteSum", "j-jobcd")
    found = {
        "callback": solve(case, rank, callback=at(4, lambda: True), **steps),
        "Ctrl-C": solve(
            case, rank, callback=at(4, lambda: signal.raise_signal(signal.SIGINT)), **steps
        ),
        "twice": solve(case, rank, callback=at(4, asked_twice), **steps),
        "time": solve(case, rank, max_time=0.1, stop=Slow(rank), **steps),
    }
    try:
        jorth.minimize(
            objective("FiniteSum", rows_of(rank), shared=True),
            jorth.random_point(SIG, seed=rank),
            signature=SIG,
        )
    except RuntimeError as error:
        found["points"] = str(error)
    return found


def resuming(rank, folder):
    """Runs in two parts, with checkpoints in folders of which each process has its own."""
    own, case = folder / f"of {rank}", CASES[0]
    solve(case, rank, checkpoint=own / "one", max_iterations=5)
    found = {"resumed": solve(case, rank, checkpoint=own / "one")}
    try:
        solve(case, rank, checkpoint=own / "one", seed=1)
    except jorth.CheckpointMismatch as error:
        found["mismatch"] = str(error)
    return found | {"folder": own.exists()}


def asked_twice():
    for _ in range(2):
        signal.raise_signal(signal.SIGTERM)


class Slow(jorth.stopping.Criterion):
    """Holds the second process up."""

    def __init__(self, rank):
        self.rank = rank

    def met(self, history):
        time.sleep(0.01 * self.rank)
        return False


def meet(rank, meeting):
    """Two processes find each other through a file."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=2
    )


def every_run(rank, folder):
    """All runs of one of two processes."""
    meet(rank, folder / "meeting")
    found = {case: solve(case, rank) for case in CASES}
    found |= endings(rank) | resuming(rank, folder)
    form = objective("Procrustes", rows_of(rank), shared=True).quadratic()
    found["form"] = [form.A, form.C, torch.tensor(form.constant)]
    torch.save(found, folder / str(rank))
    torch.distributed.destroy_process_group()


def resumable(rank, folder):
    """A job with a checkpoint. At its first start one of its processes kills itself on the way."""
    checkpoint = folder / "checkpoint"
    first_time = not checkpoint.exists()
    torch.distributed.barrier()

    def die(now, when):
        if first_time and rank == 1 and now == when:
            os.kill(os.getpid(), signal.SIGKILL)

    callback = lambda X, row: die(row["iteration"], 5)  # noqa: E731
    found = solve(CASES[0], rank, checkpoint=checkpoint, checkpoint_interval=0.0, callback=callback)
    torch.save(found, folder / str(rank))
    torch.distributed.destroy_process_group()


def telling(rank, folder, meeting):
    """`resumable`, with its error in a file."""
    meet(rank, meeting)
    try:
        resumable(rank, folder)
    except jorth.RankLost as error:
        (folder / f"error of {rank}").write_text(str(error))
        raise SystemExit(1) from error
