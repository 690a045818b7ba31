"""Processes that are forks of one which has loaded torch and the compiled functions."""

import torch.multiprocessing

LOADED = ["tests.ranks.jobs", "jorth.solvers", "jorth.optim", "jorth.plane._numba"]


def in_processes(work, *args, count=2):
    """Run ``work(rank, *args)`` in each of them and give their exit codes."""
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED, "torch._dynamo"])
    processes = [
        context.Process(target=work, args=(rank, *args), daemon=True) for rank in range(count)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(180)
    return [process.exitcode for process in processes]
