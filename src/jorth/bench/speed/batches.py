"""Many small Procrustes problems: all in one call, one after the other, and by a peer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from jorth.bench.core.cells import GAPS
from jorth.bench.core.records import Row
from jorth.bench.core.runs import NoResult
from jorth.bench.speed.cells import BATCH, SpeedCell
from jorth.bench.speed.dense import DenseProcrustes, Matrix
from jorth.bench.speed.methods import LOOP, ONE_CALL, TRUST_REGIONS
from jorth.bench.speed.peers import Countdown, Trace, run_pymanopt
from jorth.bench.speed.problems import clouds
from jorth.clock import Clock
from jorth.signature import Signature
from jorth.solvers import procrustes

Numbers = NDArray[np.float64]
ROWS = 20  # of each cloud, or 2n if that is more
SAMPLE = 20  # this many problems are solved one by one, and have an optimum to compare with
TIMES = 5  # how often they are solved; the median counts


@dataclass(frozen=True)
class Batch:
    """Source and target (B, m, n); the start's values and the optima of the first SAMPLE."""

    source: Matrix
    target: Matrix
    signature: Signature
    firsts: Numbers
    optima: Numbers

    def gap(self, values: Numbers) -> float:
        """The largest relative gap of the sample."""
        return float(np.max((values[:SAMPLE] - self.optima) / (self.firsts - self.optima)))

    def sample(self) -> list[tuple[Matrix, Matrix]]:
        return list(zip(self.source[:SAMPLE], self.target[:SAMPLE], strict=True))


def timed_batch(cell: SpeedCell) -> Row:
    """Seconds per problem from the data to a result, and the largest gap of the sample.

    Ours run with their default tolerances, the peer to the smallest of GAPS.
    """
    batch = _batch(Signature(cell.p, cell.n - cell.p), cell.condition, cell.seed)
    count = SAMPLE
    if cell.method == ONE_CALL:
        count = len(batch.source)
        seconds, values = _median(lambda: _in_one_call(batch))
    elif cell.method == LOOP:
        seconds, values = _median(lambda: _in_a_loop(batch))
    else:
        values, gradients = _by_peer(batch, cell.max_time)
        seconds, _ = _median(lambda: _again_by_peer(batch, gradients))
    gap = batch.gap(values)
    each = seconds / count
    return {
        "status": "reached" if gap <= min(GAPS) else "stopped",
        "reached": {f"{min(GAPS):g}": each} if gap <= min(GAPS) else {},
        "gap": gap,
        "time": each,
        "clock": "processor" if Clock.now is time.process_time else "wall",
        "problems": count,
    }


def _median(solve: Callable[[], Numbers]) -> tuple[float, Numbers]:
    """The median time of several calls, and the values of the last one."""
    times = []
    for _ in range(TIMES):
        began = Clock.now()
        values = solve()
        times.append(Clock.now() - began)
    return float(np.median(times)), values


def _in_one_call(batch: Batch) -> Numbers:
    try:
        return np.asarray(procrustes(batch.source, batch.target, batch.signature).value)
    except ValueError as error:
        raise NoResult("missing", "this version of jorth has no batches") from error


def _in_a_loop(batch: Batch) -> Numbers:
    return np.array([procrustes(*pair, batch.signature).value for pair in batch.sample()])


def _by_peer(batch: Batch, max_time: float) -> tuple[Numbers, list[int]]:
    """The values that trust regions reach from the identity, and their numbers of gradients."""
    values, gradients = [], []
    targets = batch.optima + 0.9 * min(GAPS) * (batch.firsts - batch.optima)
    for pair, target in zip(batch.sample(), targets, strict=True):
        dense = DenseProcrustes(*pair)
        trace = Trace(dense.value, target, max_time)
        run_pymanopt(dense, batch.signature, trace, TRUST_REGIONS, np.eye(batch.signature.n))
        values.append(trace.records[-1][1])
        gradients.append(len(trace.records) - 1)
    return np.array(values), gradients


def _again_by_peer(batch: Batch, gradients: list[int]) -> Numbers:
    for pair, count in zip(batch.sample(), gradients, strict=True):
        start = np.eye(batch.signature.n)
        run_pymanopt(
            DenseProcrustes(*pair), batch.signature, Countdown(count), TRUST_REGIONS, start
        )
    return np.array([])


@lru_cache(maxsize=1)
def _batch(signature: Signature, condition: float, seed: int) -> Batch:
    rows = max(ROWS, 2 * signature.n)
    rng = np.random.default_rng([seed, signature.n])
    pairs = [clouds(signature, condition, rng, rows=rows) for _ in range(BATCH)]
    source, target = map(np.stack, zip(*pairs, strict=True))
    identity = np.eye(signature.n)
    firsts = [DenseProcrustes(*pair).value(identity) for pair in pairs[:SAMPLE]]
    optima = [
        procrustes(*pair, signature, method="riemannian-lbfgs").value for pair in pairs[:SAMPLE]
    ]
    return Batch(source, target, signature, np.array(firsts), np.array(optima))
