"""What each compiled engine is worth: whole calls with it, and with its readable reference.

Processor seconds, medians of calls that alternate between the two. "own loop" is for sweeps that
have no second text: the loop over pairs is interpreted, and only the operations on two rows are
compiled. "QR anew" is what LAPACK does instead, in O(n^3). On a CUDA device a second table has the
Triton engines, by the wall clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any
from unittest.mock import patch

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import numpy as np
import torch

import jorth
from jorth import Signature, cholesky_update, kge
from jorth.kge import _loss_numba, loss, model
from jorth.linalg import _jacobi_numba
from jorth.optim import jobcd
from jorth.plane import rounds as plane_rounds
from jorth.plane.rounds import Majoriser
from jorth.solvers.jobcd import _sweeps_numba
from jorth.solvers.riemannian import newton

Call = Callable[[], object]
Replacement = tuple[Any, str, Any]


def device_clock() -> float:
    """Return the seconds of the wall clock, after all that the device has to do."""
    torch.cuda.synchronize()
    return time.perf_counter()


clock: Callable[[], float] = time.process_time


def seconds(call: Call, *replacements: Replacement) -> float:
    """Return the seconds of a call with references in the place of engines."""
    with ExitStack() as stack:
        for what in replacements:
            stack.enter_context(patch.object(*what))
        call()  # compiled and captured before
        began, calls = clock(), 0
        while calls == 0 or clock() - began < 0.05:
            call()
            calls += 1
        return (clock() - began) / calls


def row(labels: str, call: Call, *replacements: Replacement, other: Call | None = None) -> None:
    """Print a row of the table; ``other`` is the call with the reference, if it is another one."""
    times = [(seconds(call), seconds(other or call, *replacements)) for _ in range(5)]
    engine, reference = (median(column) for column in zip(*times, strict=True))
    print(f"| {labels} | {1e3 * engine:.3g} ms | {reference / engine:.1f} |", flush=True)


def interpreted(module: Any, name: str) -> Replacement:
    """Return the source of a compiled function in its own place."""
    return module, name, getattr(module, name).py_func


def numpy_sweep(W: Any, signs: Any, tolerance: float, lengths: Any) -> int:
    """Return the steps of a sweep of one-sided J-Jacobi by NumPy, without care for long boosts."""
    n, steps = len(W), 0
    for i, j in zip(*np.triu_indices(n, 1), strict=True):
        cosine = W[i, :-n] @ W[j, :-n] / (lengths[i] * lengths[j])
        if abs(cosine) <= tolerance:
            continue
        steps, ratio = steps + 1, lengths[j] / lengths[i]
        if signs[i] == signs[j]:
            t = np.arctan(2 * cosine / (ratio - 1 / ratio)) / 2
            turn = np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        else:
            t = np.arctanh(-2 * cosine / (1 / ratio + ratio)) / 2
            turn = np.array([[np.cosh(t), np.sinh(t)], [np.sinh(t), np.cosh(t)]])
        W[[i, j]] = turn @ W[[i, j]]
        lengths[[i, j]] = np.linalg.norm(W[[i, j], :-n], axis=1)
    return steps


def solvers(n: int) -> None:
    """Print the engines of solvers, on matrices (n, n)."""
    sig, rng = Signature(n // 2, n - n // 2), np.random.default_rng(0)
    S, isometry = rng.standard_normal((4 * n, n)), jorth.random_point(sig, cond=3.0, seed=1)
    T = S @ isometry + 0.1 * rng.standard_normal((4 * n, n))
    A, Cs, rows = S.T @ S, rng.standard_normal((20, n, n)), torch.tensor(np.hstack([S, T]))

    def minimize(f: Any, method: str = "auto", iterations: int | None = None) -> Call:
        return lambda: jorth.minimize(f, signature=sig, method=method, max_iterations=iterations)

    def misfit(X: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return (rows[:, :n] @ X - rows[:, n:]).square().sum(1).add(1).sqrt().mean()

    at = f"n = {n} | riemannian/_newton_numba | torch"
    no_newton = (newton, "_runs_compiled", lambda problem, X: False)
    row(f"Newton, {at} | auto | `Procrustes`", minimize(jorth.Procrustes(S, T)), no_newton)
    alone = [minimize(jorth.Quadratic(A, C), "riemannian-newton") for C in Cs]
    batch, one_by_one = minimize(jorth.Quadratic(A, Cs)), lambda: [call() for call in alone]
    row(f"Newton, {at} | batches | 20 `Quadratic`", batch, no_newton, other=one_by_one)
    rounds = (Majoriser, "compiled_rounds", Majoriser.torch_rounds)
    call = minimize(jorth.FiniteSum(misfit, rows), "j-jobcd", 20)
    row(f"rounds, n = {n} | plane/_numba | torch | auto | `FiniteSum`, 20 its", call, rounds)
    at = f"n = {n} | jobcd/_sweeps_numba | own loop"
    trace, sweep = (interpreted(_sweeps_numba, f"sweep_{x}") for x in ("trace", "quadratic"))
    call = minimize(jorth.HyperbolicEigenvalue(A))
    row(f"J-Jacobi, {at} | auto | `HyperbolicEigenvalue`", call, trace)
    call = minimize(jorth.Quadratic(A, -S.T @ T), "gs-jobcd", 20)
    row(f"sweeps, {at} | gs-jobcd | `Quadratic`, 20 its", call, sweep)
    by_numpy = (interpreted(_jacobi_numba, "orthogonalise"), (_jacobi_numba, "_sweep", numpy_sweep))
    labels = f"one-sided J-Jacobi, n = {n} | linalg/_jacobi_numba | NumPy"
    row(f"{labels} | `hsvd` | {4 * n} x {n}", partial(jorth.hsvd, S, sig), *by_numpy)
    row(f"{labels} | `eigh` | {n} x {n}", partial(jorth.eigh, A, sig), *by_numpy)
    R, more = np.triu(rng.standard_normal((10 * n, 10 * n))), rng.standard_normal((2, 10 * n))
    labels = f"rows into R, n = {10 * n} | linalg/_updating_numba | QR anew"
    update, anew = partial(cholesky_update, R, add=more), partial(np.linalg.qr, np.r_[R, more], "r")
    row(f"{labels} | `cholesky_update` | 2 rows", update, other=anew)


def training(n: int) -> None:
    """Print the engines of training, on matrices (n, n)."""
    p = torch.nn.Parameter(torch.eye(n).repeat(10, 1, 1))
    optimiser = jorth.optim.JOBCD([p], Signature(n - 1, 1))

    def step() -> None:
        optimiser.zero_grad()
        torch.autograd.backward((p - 1).square().sum())
        optimiser.step()

    labels = "optim/_step_numba | torch | `optim.JOBCD` | training step, 10 matrices"
    row(f"angle step, n = {n} | {labels}", step, (jobcd, "runs_compiled", lambda p: False))
    graph = kge.hierarchy_with_cycles(depth=6)
    config = kge.Config(p=n - 1, epochs=2, evaluate_every=2)
    trained, at = kge.train(graph, config).model, f"n = {n} | kge/_loss_numba | torch"
    arcs = (_loss_numba, "write_squared_arcs", model._square_and_slope)
    no_pass = (loss, "backend_for", lambda signed: None)
    train, rank = partial(kge.train, graph, config), partial(kge.evaluate, trained, graph.test)
    row(f"softmax, {at} | `kge.train` | 1,093 entities, 2 epochs", train, no_pass, arcs)
    row(f"squared arcs, {at} | `kge.evaluate` | 1,093 entities", rank, arcs)


def triton() -> None:
    """Print the engines of a CUDA device."""

    def in_torch(module: Any) -> Replacement:
        return module, "runs_triton", lambda device: False

    for n in (256, 1024, 4096):
        sig = Signature(n // 2, n - n // 2)
        S, T, _ = jorth.datasets.planted_procrustes(2 * n, sig, noise=0.1, seed=0)
        f = jorth.Procrustes(*(torch.from_numpy(part).cuda() for part in (S, T)))
        run = partial(jorth.minimize, f, signature=sig, method="j-jobcd", max_iterations=4)
        labels = f"rounds, n = {n} | plane/_triton | torch | j-jobcd | `Procrustes`, 4 its"
        row(labels, run, in_torch(plane_rounds))
    for count, n in ((1, 33), (62, 8), (1000, 8), (64, 64)):
        p = torch.nn.Parameter(torch.eye(n, device="cuda").repeat(count, 1, 1))
        p.grad = torch.randn_like(p)
        step = jorth.optim.JOBCD([p], Signature(n - 1, 1), lr=1e-4).step
        labels = f"angle step, {count} x {n} | optim/_step_triton | torch | `optim.JOBCD` | step"
        row(labels, step, in_torch(jobcd))
    graph = kge.hierarchy_with_cycles(depth=8)
    config = kge.Config(p=32, epochs=2, evaluate_every=2, device="cuda", dtype="float32")
    trained, entities = kge.train(graph, config).model, len(graph.entities)
    train, rank = partial(kge.train, graph, config), partial(kge.evaluate, trained, graph.test)
    labels = f"{{}} | kge/_loss_triton | torch | `{{}}` | {entities} entities"
    row(labels.format("softmax", "kge.train"), train, in_torch(loss), in_torch(model))
    row(labels.format("squared arcs", "kge.evaluate"), rank, in_torch(model))


if __name__ == "__main__":
    print("| operation | engine | reference | default of | task | with the engine | ratio |")
    print("|---|---|---|---|---|---|---|")
    for size in (5, 32):
        solvers(size)
        training(size)
    if torch.cuda.is_available():
        clock = device_clock
        triton()
