"""`procrustes` for many pairs of point clouds at once, in torch operations on all of them.

It goes as for a single pair: starts from the least-squares solution M and the identity, one per
component, and bounds that leave components out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth.group.elements import power_of_two
from jorth.group.polish import orthogonal_factor
from jorth.group.time_column import warn_of_other_time
from jorth.signature import Signature
from jorth.solvers.batch import (
    STATUSES,
    UNFINISHED,
    Answers,
    BatchResult,
    batch_result,
    solve_quadratics,
    starts,
)
from jorth.solvers.loop import Interrupt
from jorth.solvers.problem import Limits, Status
from jorth.solvers.procrustes.certificate import Certificate, Neighbourhood
from jorth.solvers.procrustes.starts import Clouds, Starts
from jorth.solvers.result import Result, public


def procrustes_batch(
    source: Any,
    target: Any,
    signature: Signature,
    x0: Any,
    components: str,
    tolerance: float,
    limits: Limits,
    again: Callable[..., tuple[Result, Certificate | None]] | None,
) -> BatchResult:
    """`jorth.procrustes` for sources and targets (B, m, n), with bounds if ``again`` is given.

    ``again`` solves a single problem (source, target, x0), whose gap is open.
    """
    data = _inputs.to_tensor(target, "target").detach()
    T, S = data.cpu(), _inputs.tensor_alike(source, "source", data, "target").detach().cpu()
    n = _inputs.check_signature(signature).n
    if S.ndim != 3 or S.shape[2] != n or not S.numel():
        wanted = f"(B, m, {n}) with B and m at least 1 for {signature}"
        raise ValueError(f"source must have shape {wanted}, got {_inputs.describe(source)}")
    if T.shape != S.shape:
        wanted = f"{tuple(S.shape)} like source"
        raise ValueError(f"target must have shape {wanted}, got {_inputs.describe(target)}")
    warn_of_other_time(signature, S, T)
    _inputs.check_number(tolerance, "gradient_tolerance", 0)
    own = None if x0 is None else starts(x0, data, len(S), signature)
    if own is not None and T.dtype is not torch.float64:
        own = orthogonal_factor(own, signature, "x0")
    answers = Answers.unknown(starts(own, data, len(S), signature) if own is None else own)
    with Interrupt() as interrupt, _one_thread_each() as threads:
        limits.interrupt = interrupt
        limits.clock.start()

        def solved(part: slice) -> Answers:
            ours = None if own is None else own[part]
            chunk = _Chunk(S[part].double(), T[part].double(), signature, ours)
            return chunk.solve(components, tolerance, limits)

        parts = _parts(S)
        with ThreadPoolExecutor(threads) as pool:
            for part, found in zip(parts, pool.map(solved, parts), strict=True):
                answers.replace(part, found)
        interrupt.hold()
    numpy_out = not isinstance(target if x0 is None else x0, Tensor)
    proof = None if again is None else _certify(answers, S, T, signature, again)
    result = batch_result(answers, limits, signature, data, numpy_out)
    if proof is None:
        return result
    bound, gap = (
        public(torch.from_numpy(part).to(data.device), numpy_out=numpy_out)
        for part in (proof.bound, proof.gap)
    )
    message = f"{result.message}; {int(proof.closed.sum())} certified"
    return replace(result, bound=bound, gap=gap, message=message)


def _certify(
    answers: Answers,
    source: Tensor,
    target: Tensor,
    signature: Signature,
    again: Callable[..., tuple[Result, Certificate | None]],
) -> Certificate:
    """Bound f in each problem; open ones are solved again, one by one, and better answers kept."""
    pieces = []
    for part in _parts(source):
        S, T, X = (x[part].double().cpu().numpy() for x in (source, target, answers.X))
        pieces.append(Neighbourhood(S, T, X, signature).certificate()[:3])
    proof = Certificate(*map(np.concatenate, zip(*pieces, strict=True)))
    open_ = ~torch.from_numpy(proof.closed) & torch.isfinite(answers.value).cpu()
    for place in torch.nonzero(open_)[:, 0].tolist():
        single, found = again(*(x[place].double().cpu() for x in (source, target, answers.X)))
        if found is None:
            continue
        for column, entry in zip(proof[:3], found[:3], strict=True):
            column[place] = entry
        answers.iterations[place] += single.iterations
        # an answer below the bound has drifted off the constraint
        better = single.value < answers.value[place] or found.bound > answers.value[place]
        if better and single.status in STATUSES:
            answers.X[place], answers.value[place] = single.x, single.value
            answers.norm[place] = single.gradient_norm
            answers.codes[place] = STATUSES.index(single.status)
    return proof


@contextmanager
def _one_thread_each() -> Iterator[int]:
    """Let torch take one thread for each chunk and return how many chunks run side by side.

    That is faster for small matrices, and the answers do not depend on the number of threads.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def _parts(source: Tensor) -> list[slice]:
    """Return the chunks: small enough for the cache, and some for each thread."""
    step = max(1, min(2**17 // source[0].numel(), max(32, len(source) // 16)))
    return [slice(start, start + step) for start in range(0, len(source), step)]


class _Chunk:
    """Some pairs of clouds, their starts in each component, and bounds on f there."""

    def __init__(
        self, source: Tensor, target: Tensor, signature: Signature, x0: Tensor | None
    ) -> None:
        size = torch.maximum(source.abs().amax((1, 2)), target.abs().amax((1, 2)))
        self.finite = torch.isfinite(size)
        scale = power_of_two(torch.where(self.finite, size, 1.0))
        self.unit = scale.square()
        healthy = self.finite[:, None, None]
        scale = scale[:, None, None]
        self.clouds = Clouds.of(
            torch.where(healthy, source / scale, 0.0), torch.where(healthy, target / scale, 0.0)
        )
        self.signature = signature
        self.x0 = x0

    def solve(self, components: str, tolerance: float, limits: Limits) -> Answers:
        """The best local minimum over the components that may hold it."""
        count, n = len(self.clouds.A), self.signature.n
        identity = torch.eye(n).to(self.clouds.A).expand(count, n, n)
        best = Answers.unknown(identity if self.x0 is None else self.x0)
        if limits.reached() is None:
            begin = Starts.of(self.clouds, self.signature, self.x0)
            for turn in range(len(begin.points) if components == "all" else 1):
                todo = None if turn == 0 else self._promising(begin, turn, best)
                self._run(best, begin.points[turn], todo, tolerance, limits)
        best.value = self.clouds.value(best.X) * self.unit
        best.norm = best.norm * self.unit
        best.classify(
            self.clouds.A,
            self.signature,
            lambda i, X: float(self.clouds.select(torch.tensor([i])).value(X[None])),
            bounded=True,
        )
        best.codes[~self.finite] = STATUSES.index(Status.NON_FINITE)
        best.value[~self.finite] = best.norm[~self.finite] = torch.nan
        return best

    def _promising(self, begin: Starts, turn: int, best: Answers) -> Tensor:
        """The problems that may have a lower f in the component of this turn."""
        cheap = (begin.cheap_bound(turn) <= best.value) & (best.codes != UNFINISHED)
        todo = cheap.nonzero()[:, 0]
        return todo[begin.bound(turn, todo) <= best.value[todo]] if len(todo) else todo

    def _run(
        self, best: Answers, start: Tensor, todo: Tensor | None, tolerance: float, limits: Limits
    ) -> None:
        """Solve some problems, or all of them, and keep what is better."""
        if limits.reached() is not None or (todo is not None and not len(todo)):
            return
        clouds = self.clouds if todo is None else self.clouds.select(todo)
        X = start if todo is None else start[todo]
        found = solve_quadratics(clouds.A, clouds.C, self.signature.vector(X), X, tolerance, limits)
        found.value = clouds.value(found.X)
        if todo is None:
            best.replace(slice(None), found)
            return
        best.iterations[todo] += found.iterations
        found.iterations = best.iterations[todo]
        better = found.value < best.value[todo]
        best.replace(todo[better], Answers(*(part[better] for part in vars(found).values())))
