"""Many problems min 1/2 tr(X^T A X) + <C, X> at once on the CPU: compiled, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import torch
from torch import Tensor

CHUNK = 256
"""The most problems that a thread takes at a time."""
LOOK = 0.02
"""Seconds between two looks at the clock and at Ctrl-C."""

Answer = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def minimize_many(
    A: Tensor,
    C: Tensor,
    signs: Tensor,
    X: Tensor,
    *,
    tolerance: float,
    max_iterations: int,
    ended: Callable[[], bool] = lambda: False,
) -> Answer:
    """Minimise every f from its start, within the component of the start, in float64.

    Args:
        A: (B, n, n), symmetric, or (1, n, n) for all.
        C: (B, n, n), or (1, n, n) for all; (1, n, 0) stands for zero.
        signs: (n,), the diagonal of J.
        X: (B, n, n), J-orthogonal.
        tolerance: The bound on ||skew(J G X^T)||_F / (||A X X^T||_F + ||C X^T||_F).
        max_iterations: The most steps for a problem.
        ended: Asked now and then; once it is true, all problems end where they are.

    Returns:
        X (B, n, n), f (B,), ||skew(J G X^T)||_F (B,), iterations (B,) and status (B,): 0 converged,
        1 max_iterations, 2 stalled, 3 unbounded, 4 not finite, -1 not finished.
    """
    from jorth.solvers.riemannian.compiled_batches import UNFINISHED, Batch, Rule, solve_range

    count = len(X)
    matrices, linear, ours = (_contiguous(part) for part in (A, C, signs))
    codes = np.full(count, UNFINISHED, dtype=np.int64)
    values, norms = np.full((2, count), np.nan)
    steps = np.zeros(count, dtype=np.int64)
    points = _contiguous(X).copy()
    batch = Batch(matrices, linear, ours, points, values, norms, steps, codes)
    rule = Rule(float(tolerance), int(max_iterations), np.zeros(1, dtype=np.int64))
    threads = max(1, min(torch.get_num_threads(), count))
    size = max(1, min(CHUNK, count // (4 * threads)))
    with ThreadPoolExecutor(threads) as pool:
        try:
            futures = [
                pool.submit(solve_range, batch, rule, start, min(start + size, count))
                for start in range(0, count, size)
            ]
            while wait(futures, timeout=LOOK).not_done:
                if ended():
                    rule.stop[0] = 1
        finally:
            rule.stop[0] = 1
    for future in futures:
        future.result()
    answers = (points, values, norms, steps, codes)
    x, value, norm, iterations, status = (torch.from_numpy(part) for part in answers)
    return x, value, norm, iterations, status


def _contiguous(part: Tensor) -> np.ndarray:
    return np.ascontiguousarray(part.detach().double().numpy())
