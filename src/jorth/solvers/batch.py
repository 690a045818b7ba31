"""Many problems min 1/2 tr(X^T A X) + <C, X> at once: compiled Newton on several threads.

It runs on the CPU in float64. Data on another device are solved here too, and the answers go back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import _inputs
from jorth.group.elements import check_feasible, scaled_violation
from jorth.objectives import Quadratic
from jorth.objectives.quadratic import is_definite
from jorth.signature import Signature
from jorth.solvers.loop import Interrupt
from jorth.solvers.problem import Limits, Status
from jorth.solvers.result import feasibility_limit, public
from jorth.solvers.riemannian.newton import RiemannianNewton
from jorth.solvers.stopping import default_tolerance
from jorth.solvers.termination import Curve, with_one_beyond

Matrix: TypeAlias = NDArray[np.float64]
STATUSES: tuple[Status, ...] = (
    *(Status.CONVERGED, Status.MAX_ITERATIONS, Status.STALLED, Status.UNBOUNDED),
    *(Status.NON_FINITE, Status.MAX_TIME, Status.INTERRUPTED, Status.NOT_ATTAINED),
)
"""The status of each code; an unfinished problem has the code -1 until the reason is known."""
UNFINISHED = -1
MOST_ENTRIES_AT_ONCE = 1024
"""The most entries of X that are solved without a thread, and without a look at limits and Ctrl-C:
1,000 iterations at n = 32 take 0.2 s."""


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a batch of B problems, with arrays of B entries.

    Attributes:
        x: (B, n, n), of the kind, dtype and device of the data.
        value: (B,), f(x) of each problem.
        status: (B,), why each problem ended.
        iterations: (B,).
        gradient_norm: (B,), ||skew(J G x^T)||_F of each problem.
        time: Seconds for all problems.
        message: How many problems ended in which way.
        method: The method.
        bound: (B,), a lower bound on f over all J-orthogonal matrices, of `procrustes` with
            ``certify=True``; otherwise None.
        gap: (B,), the gap of each problem, as in `jorth.Result`; None without a bound.

    >>> As = np.stack([np.eye(2), 2 * np.eye(2)])
    >>> results = jorth.minimize(jorth.Quadratic(As), signature=jorth.Signature(1, 1))
    >>> results.value
    array([1., 2.])
    """

    x: Any
    value: Any
    status: NDArray[np.object_]
    iterations: NDArray[np.int64]
    gradient_norm: Any
    time: float
    message: str
    method: str
    signature: Signature = field(repr=False)
    bound: Any = None
    gap: Any = None

    @property
    def success(self) -> NDArray[np.bool_]:
        """(B,), whether each problem converged."""
        return np.array([status is Status.CONVERGED for status in self.status])

    def __str__(self) -> str:
        """A few lines for `print`; `repr` has the numbers of all problems."""
        lines = {
            "status": self.message,
            "method": self.method,
            "time": f"{self.time:.3g} s",
            "x": _inputs.describe(self.x),
        }
        return "\n".join(f"{name:<6}  {text}" for name, text in lines.items())

    @cached_property
    def residual(self) -> Any:
        """(B,), max |x^T J x - J| / max(1, ||x||_2^2)."""
        X = _inputs.to_tensor(self.x, "x")
        signs = self.signature.vector(X)
        return _inputs.like_input(scaled_violation(X, signs, torch.diag(signs)), self.x)

    def __len__(self) -> int:
        return len(self.status)


@dataclass
class Answers:
    """The points of a batch, and what is known of them."""

    X: Matrix
    value: Matrix
    norm: Matrix
    iterations: NDArray[np.int64]
    codes: NDArray[np.int64]

    def classify(
        self, A: Matrix, signature: Signature, value: Callable[[int, Tensor], float], bounded: bool
    ) -> None:
        """Find UNBOUNDED and NOT_ATTAINED among large X; f of problem i is ``value(i, X)``."""
        stalled, limit = map(STATUSES.index, (Status.STALLED, Status.MAX_ITERATIONS))
        self.codes[self.codes == STATUSES.index(Status.UNBOUNDED)] = stalled
        if signature.p == 0 or signature.q == 0:
            return
        becomes = {
            Status.NOT_ATTAINED: [STATUSES.index(Status.CONVERGED), stalled, limit],
            Status.UNBOUNDED: [] if bounded else [stalled],
        }
        far = np.einsum("bij,bij->b", self.X, self.X) >= 100 * signature.n
        for i in np.flatnonzero(far & (self.codes != UNFINISHED)).tolist():
            X, status = torch.from_numpy(self.X[i]), None
            signs, u = signature.vector(X), _inputs.unit_roundoff(X)
            feasible = scaled_violation(X, signs, torch.diag(signs)) <= math.sqrt(u)
            if feasible and not is_definite(torch.from_numpy(A[i if len(A) > 1 else 0])):
                exponents = with_one_beyond(float(torch.linalg.matrix_norm(X, ord=2)), u)
                curve = Curve.through(X, signature, exponents, partial(value, i))
                status = None if curve is None else curve.classify()
            if status is not None and self.codes[i] in becomes[status]:
                self.codes[i] = STATUSES.index(status)


def solve_quadratics(
    A: Matrix, C: Matrix, signs: Matrix, X: Matrix, target: Matrix, limits: Limits
) -> Answers:
    """Minimise every f from its start, within the component of the start.

    A is (B, n, n), symmetric, C (B, n, n), and X (B, n, n), J-orthogonal; A and C may be (1, n, n)
    for all, and C (1, n, 0) for zero. ``target`` (B,) or (1,) bounds ||skew(J G X^T)||_F. Once the
    limits are reached, all problems end where they are.
    """
    from jorth.solvers.riemannian import _newton_numba as compiled

    n, count = len(signs), len(X)
    # no product of entries over- or underflows then if X is of moderate size
    largest = np.maximum(abs(A).max((1, 2)), abs(C).max((1, 2), initial=0.0))
    known = (largest > 0) & (largest < np.inf)
    scale = np.where(known, np.ldexp(1.0, np.frexp(largest)[1].clip(-1000, 1000)), 1.0)
    divisor = scale[:, None, None]
    problems = compiled.quadratics(A / divisor, C / divisor, np.empty((n, 0)), signs, X)
    rule = compiled.Rule(
        target=target / scale + np.zeros(count),
        max_iterations=1000 if limits.max_iterations is None else limits.max_iterations,
        stop=np.array([limits.reached() is not None], np.int64),
    )

    def solve(first: int) -> None:
        last = min(first + size, count)
        space = compiled.Workspace.of(n)
        compiled.minimize_quadratics(problems, first, last, rule, space)

    threads = max(1, min(torch.get_num_threads(), count))
    if X.size <= MOST_ENTRIES_AT_ONCE:
        size = count
        solve(0)
    else:
        size = max(1, min(256, count // (4 * threads)))
        with ThreadPoolExecutor(threads) as pool:
            try:
                futures = [pool.submit(solve, first) for first in range(0, count, size)]
                while wait(futures, timeout=0.02).not_done:
                    if limits.reached() is not None:
                        rule.stop[0] = 1
            finally:
                rule.stop[0] = 1
        for future in futures:
            future.result()
    found = (problems.X, problems.value * scale, problems.norm * scale)
    return Answers(*found, problems.iterations, problems.status)


def minimize_batch(
    objective: Quadratic, x0: Any, signature: Signature, tolerance: float | None, limits: Limits
) -> BatchResult:
    """Run `jorth.minimize` for a `Quadratic` of B problems."""
    data, signs = objective.A, signature.signs.astype(float)
    if tolerance is None:
        tolerance = default_tolerance(data)
    X = starts(x0, data, objective.batch, signature)
    linear = torch.empty(signature.n, 0) if objective.C is None else objective.C
    A, C = (part.detach().cpu().double().numpy() for part in (data, linear))
    A, C = (part[None] if part.ndim == 2 else part for part in (A, C))
    target = tolerance * (np.linalg.norm(A, axis=(1, 2)) + np.linalg.norm(C, axis=(1, 2)))

    def value(i: int, X: Tensor) -> float:
        x = X.numpy()
        slope = A[i if len(A) > 1 else 0] @ x / 2
        if C.shape[-1]:
            slope = slope + C[i if len(C) > 1 else 0]
        return float((x * slope).sum())

    with Interrupt() as interrupt:
        limits.interrupt = interrupt
        limits.clock.start()
        answers = solve_quadratics(A, C, signs, X, target, limits)
        interrupt.hold()
        answers.classify(A, signature, value, bounded=False)
        speaks_torch = objective.speaks_torch if x0 is None else isinstance(x0, Tensor)
        return batch_result(answers, limits, signature, data, numpy_out=not speaks_torch)


def starts(x0: Any, data: Tensor, count: int, signature: Signature) -> Matrix:
    """Return a start (B, n, n) for each problem: x0, which may be shared, or the identity."""
    n = signature.n
    if x0 is None:
        return np.broadcast_to(np.eye(n), (count, n, n))
    X = _inputs.tensor_alike(x0, "x0", data, "the problems' data").detach()
    if X.shape not in ((n, n), (count, n, n)):
        wanted = f"({n}, {n}) or ({count}, {n}, {n}) for {count} problems"
        raise ValueError(f"x0 must have shape {wanted}, got {_inputs.describe(x0)}")
    _inputs.check_finite(X, "x0")
    check_feasible(X, signature, "x0", limit=feasibility_limit(X))
    return X.double().cpu().expand(count, n, n).numpy()


def batch_result(
    answers: Answers, limits: Limits, signature: Signature, data: Tensor, numpy_out: bool
) -> BatchResult:
    """Return the result in the kind and dtype, and on the device, of the data."""
    codes = answers.codes
    codes[codes == UNFINISHED] = STATUSES.index(limits.reached() or Status.INTERRUPTED)
    counts = Counter(codes.tolist())
    ways = [f"{count} {STATUSES[code].name}" for code, count in sorted(counts.items())]
    parts = (answers.X, answers.value, answers.norm)
    x, value, norm = (
        public(torch.from_numpy(part).to(data), numpy_out=numpy_out) for part in parts
    )
    return BatchResult(
        x=x,
        value=value,
        status=np.array(STATUSES, dtype=object)[codes],
        iterations=answers.iterations,
        gradient_norm=norm,
        time=limits.clock.seconds,
        message=f"{len(codes)} problems: {', '.join(ways)}",
        method=RiemannianNewton.name,
        signature=signature,
    )
