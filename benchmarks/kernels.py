"""What `roofline.py` times: each kernel with its data, a clock, and the work that `work.py` counts
for it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple
from unittest import mock

import numpy as np
import torch

import jorth
from benchmarks import work
from jorth.clock import Clock
from jorth.kernels import QuadraticRounds, tournament_rounds
from jorth.kernels.quadratic import CHUNK
from jorth.plane import all_pairs, apply_rows, random_matching, tournament

DTYPES = (torch.float64, torch.float32)
BATCH, SMALL = 300, jorth.Signature(18, 18)
"""UltraE's relations."""
ENTITIES, QUERIES = 14951, 561
"""Of FB15k, and as many queries as `kge.evaluate` takes at once."""


class Kernel(NamedTuple):
    """One marker of the picture."""

    name: str
    size: str
    work: work.Work
    measure: Callable[[], float]
    """Seconds of one call."""
    dtype: torch.dtype = torch.float64


def clock(device):
    """CPU seconds of this process; of a device the seconds at which all that was asked of it is
    done."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def seconds(call, device="cpu", *, setup=tuple, repeats=5, loops=1, pick=statistics.median):
    """The time of one call on what ``setup`` returns, the median by default; the first call does
    not count."""
    times = []
    for _ in range(repeats + 1):
        arguments = setup()
        since = clock(device)
        for _ in range(loops):
            call(*arguments)
        times.append((clock(device) - since) / loops)
    return pick(times[1:])


# -- problems


@cache
def planted(n, m=None):
    """A planted noisy Procrustes problem: signature, source and target."""
    signature = jorth.Signature(n // 2, n - n // 2)
    source, target, _ = jorth.datasets.planted_procrustes(
        m or 2 * n, signature, noise=0.1, source_condition=3.0, seed=0
    )
    return signature, source, target


def quadratic(n):
    """A, C and the signs of that problem."""
    signature, source, target = planted(n)
    return source.T @ source / len(source), -source.T @ target / len(source), signature.signs


def random_quadratic(n, dtype, device):
    """A random positive definite A and a small C: what is timed does not depend on them."""
    generator = torch.Generator(device).manual_seed(n)
    A, C = (
        torch.randn(n, n, dtype=dtype, device=device, generator=generator) / n**0.5
        for _ in range(2)
    )
    A = A @ A.mT + torch.eye(n, dtype=dtype, device=device)
    return (A + A.mT) / 2, C


# -- what is timed, on the CPU


def pair_step(n, count=4000):
    from jorth.plane.compiled.quadratic import sweep_quadratic
    from jorth.plane.proximal import StepRule

    A, C, signs = quadratic(n)
    pairs = all_pairs(n, seed=0)[:count]
    rule = StepRule(-1e-12, all_components=False, stop_unbounded=True)

    def setup():
        return np.eye(n), np.eye(n)

    def call(X, Y):
        sweep_quadratic(A, C, X, Y, signs, pairs, rule)

    return seconds(call, setup=setup) / len(pairs)


def sweep(n, block, repeats=3):
    """By blocks of so many rows, or by single pairs if that is 1."""
    from jorth.plane.proximal import StepRule
    from jorth.solvers.jobcd.quadratic_sweeps import BlockedSweep, PairwiseSweep, SweepForm

    A, C, signs = quadratic(n)
    form = SweepForm(A, C, None)
    rule = StepRule(-1e-12, all_components=False, stop_unbounded=True)
    rng = np.random.default_rng(0)

    def call(X):
        if block > 1:
            whole = BlockedSweep(form, X, signs, rng.permutation(n), block, rule)
        else:
            whole = PairwiseSweep(form, X, signs, all_pairs(n, seed=rng), rule)
        for _ in whole.run():
            pass
        whole.rows()

    return seconds(call, setup=lambda: (np.eye(n),), repeats=repeats)


def gradient_round(n):
    from jorth.kernels import Majoriser

    signature, source, target = planted(n)
    objective, X = jorth.Procrustes(source, target), torch.eye(n, dtype=torch.float64)
    G, form = objective.value_and_gradient(X)[1], objective.quadratic()
    majoriser = Majoriser(signature, theta=-1e-12, A=form.A, D=form.D)
    call = partial(majoriser.propose, X, G, 1.0, random_matching(n, seed=0)[None])
    return seconds(call, loops=20, repeats=9)


def turn_rows(n, device="cpu"):
    X = torch.eye(n, dtype=torch.float64, device=device)
    V = torch.eye(2, dtype=torch.float64, device=device).expand(n // 2, 2, 2).contiguous()
    pairs = torch.from_numpy(random_matching(n, seed=0)).to(device)
    return seconds(lambda: apply_rows(X, pairs, V), device, loops=10, repeats=9)


def compression(m, n):
    _, source, target = planted(n, m)
    return seconds(lambda: jorth.Procrustes(source, target), repeats=3)


def probe_gradient(m, n):
    data = np.random.default_rng(0).standard_normal((m, n))
    probe = jorth.StructuralProbe(data, signature=jorth.Signature(n - 1, 1), scale=1.0)
    X = torch.as_tensor(jorth.random_point(jorth.Signature(n - 1, 1), cond=1.1, seed=0))
    return seconds(lambda: probe.value_and_gradient(X))


# -- what is timed anywhere


def gradient(n, dtype, device):
    objective = jorth.Quadratic(*random_quadratic(n, dtype, device))
    X = torch.eye(n, dtype=dtype, device=device)
    return seconds(
        lambda: objective.value_and_gradient(X), device, loops=max(1, 400 // n), repeats=7
    )


def lbfgs_iteration(n, device):
    """The lower quartile over iterations with one trial: those that make the preconditioner anew
    take longer."""
    signature, source, target = planted(n)
    with mock.patch.object(Clock, "now", partial(clock, device)):
        result = jorth.minimize(
            jorth.Procrustes(*(torch.from_numpy(part).to(device) for part in (source, target))),
            signature=signature,
            method="riemannian-lbfgs",
            max_iterations=20,
            max_time=30,
            gradient_tolerance=0.0,
        )
    spent, trials = (np.diff(result.history[name]) for name in ("time", "gradient_evaluations"))
    return float(np.quantile(spent[trials == 1], 0.25))


def optimiser_step(dtype, device):
    X = jorth.random_point(SMALL, cond=4.0, batch=(BATCH,), seed=0, dtype=dtype, device=device)
    parameter = torch.nn.Parameter(X)
    parameter.grad = torch.randn(
        X.shape, dtype=dtype, generator=torch.Generator().manual_seed(0)
    ).to(device)
    optimiser = jorth.optim.JOBCD([parameter], SMALL, lr=1e-3)
    return seconds(optimiser.step, device, repeats=7)


@torch.no_grad()
def scores(dtype, device):
    model = jorth.kge.UltraE(ENTITIES, 10, dtype=dtype, device=device)
    rng = torch.Generator().manual_seed(0)
    head, relation = (
        torch.randint(top, (QUERIES,), generator=rng).to(device) for top in (ENTITIES, 10)
    )
    return seconds(lambda: model.score_tails(head, relation), device, repeats=3)


# -- what is timed on CUDA


def kept_round(n, dtype, replayed):
    """A round of a tournament with Y kept: by `run`, pairs uploaded, or the graph alone."""
    A, _ = random_quadratic(n, dtype, "cuda")
    signs = torch.from_numpy(jorth.Signature(n // 2, n - n // 2).signs.copy())
    rounds = QuadraticRounds(A, None, None, signs, all_components=False, theta=-1e-12)
    rounds.start(torch.eye(n, dtype=dtype, device="cuda"))
    table = tournament_rounds(n, np.random.default_rng(0).permutation(n - 1)[:CHUNK])
    for _ in range(2):  # the first compiles, the second captures
        rounds.run(table)
    call = rounds._graph.replay if replayed else partial(rounds.run, table)
    return seconds(call, "cuda", repeats=7) / CHUNK


def batch_launch(dtype):
    """All rounds of a tournament, inputs converted and pairs uploaded beforehand."""
    from jorth.kernels import Majoriser
    from jorth.kernels.majoriser import FusedLaunch

    X = jorth.random_point(SMALL, cond=4.0, batch=(BATCH,), seed=0, dtype=dtype, device="cuda")
    rounds = tournament(SMALL.n, seed=0)
    launch = FusedLaunch(Majoriser(SMALL), X, torch.randn_like(X), 1e3, rounds)
    return seconds(launch.run, "cuda", loops=20)


# -- the lists


def cpu_kernels(sizes=(100, 300, 1000), m=2000) -> Iterator[Kernel]:
    """All of them on one core."""
    from jorth.solvers.jobcd.majorised import compile_kernels
    from jorth.solvers.jobcd.quadratic_sweeps import rows_of_a_block

    compile_kernels()
    for n in sizes:
        block = rows_of_a_block(n)
        yield Kernel("GS pair step", str(n), work.pair_step(n), partial(pair_step, n))
        yield Kernel("GS sweep, pairs", str(n), work.pair_sweep(n), partial(sweep, n, 1))
        if block > 1:
            yield Kernel(
                "GS sweep, blocks", str(n), work.blocked_sweep(n, block), partial(sweep, n, block)
            )
        yield Kernel("Jacobi round", str(n), work.gradient_round(n), partial(gradient_round, n))
        yield Kernel("apply_rows", str(n), work.turn_rows(n), partial(turn_rows, n))
        yield Kernel(
            "gradient, Quadratic",
            str(n),
            work.quadratic_gradient(n),
            partial(gradient, n, torch.float64, "cpu"),
        )
        yield Kernel(
            "L-BFGS iteration", str(n), work.lbfgs_iteration(n), partial(lbfgs_iteration, n, "cpu")
        )
        yield Kernel(
            "Procrustes, QR",
            f"{10 * m} x {2 * n}",
            work.compression(10 * m, n),
            partial(compression, 10 * m, n),
        )
    yield Kernel(
        "gradient, probe", f"{m} x 50", work.probe_gradient(m, 50), partial(probe_gradient, m, 50)
    )
    yield from _shared_kernels("cpu", torch.float64)


def cuda_kernels(sizes=(1024, 2048, 4096, 8192)) -> Iterator[Kernel]:
    """All of them on a CUDA device, float64 and float32."""
    for dtype in DTYPES:
        size = dtype.itemsize
        for n in sizes:
            for name, replayed in (
                ("Jacobi round, replayed", True),
                ("Jacobi round, called", False),
            ):
                yield Kernel(
                    name,
                    str(n),
                    work.kept_round(n, size),
                    partial(kept_round, n, dtype, replayed),
                    dtype,
                )
            yield Kernel(
                "gradient, Quadratic",
                str(n),
                work.quadratic_gradient(n, size),
                partial(gradient, n, dtype, "cuda"),
                dtype,
            )
        rounds = work.batch_step(BATCH, SMALL.n, SMALL.n - 1, size)
        yield Kernel(
            "batch tournament, launch", "300 x 36", rounds, partial(batch_launch, dtype), dtype
        )
        yield from _shared_kernels("cuda", dtype)
    yield Kernel("apply_rows", "4096", work.turn_rows(4096), partial(turn_rows, 4096, "cuda"))
    yield Kernel(
        "L-BFGS iteration",
        "1024",
        work.lbfgs_iteration(1024),
        partial(lbfgs_iteration, 1024, "cuda"),
    )


def _shared_kernels(device, dtype) -> Iterator[Kernel]:
    size = dtype.itemsize
    yield Kernel(
        "JOBCD step, batch",
        f"{BATCH} x {SMALL.n}",
        work.batch_step(BATCH, SMALL.n, SMALL.n - 1, size),
        partial(optimiser_step, dtype, device),
        dtype,
    )
    yield Kernel(
        "UltraE scores",
        f"{QUERIES} x {ENTITIES}",
        work.scores(QUERIES, ENTITIES, SMALL.n, size),
        partial(scores, dtype, device),
        dtype,
    )
