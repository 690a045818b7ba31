"""Two processes that are forks of one which has loaded torch and the compiled functions."""

import torch.multiprocessing

LOADED = ["tests.ranks.jobs", "jorth.solvers", "jorth.optim", "jorth.plane.compiled"]


def in_two_processes(work, *args):
    """Run ``work(rank, *args)`` in both and give their exit codes."""
    context = torch.multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED, "torch._dynamo"])
    processes = [context.Process(target=work, args=(rank, *args), daemon=True) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    return [process.exitcode for process in processes]
