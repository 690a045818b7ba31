"""Many problems at once: how a batch of quadratics is solved, and its result."""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import _inputs
from jorth.group.elements import check_feasible, scaled_violation
from jorth.objectives import Quadratic
from jorth.signature import Signature
from jorth.solvers import cpu_batches, device_batches, far_batches
from jorth.solvers.loop import Interrupt
from jorth.solvers.problem import Limits, Status
from jorth.solvers.result import feasibility_limit, public
from jorth.solvers.riemannian.newton import RiemannianNewton

STATUSES = (
    Status.CONVERGED,
    Status.MAX_ITERATIONS,
    Status.STALLED,
    Status.UNBOUNDED,
    Status.NON_FINITE,
    Status.MAX_TIME,
    Status.INTERRUPTED,
    Status.NOT_ATTAINED,
)
"""The status of each code; an unfinished problem has the code -1 until the reason is known."""
UNFINISHED = -1
MAX_ITERATIONS = 1000
"""The most iterations for a problem, if the caller does not say."""


class ProblemResult(NamedTuple):
    """The answer to one problem of a batch."""

    x: Any
    value: float
    status: Status
    iterations: int
    gradient_norm: float
    bound: float | None = None
    gap: float | None = None

    @property
    def success(self) -> bool:
        """Whether the problem converged."""
        return self.status is Status.CONVERGED


@dataclass(frozen=True)
class BatchResult:
    """The outcome of a batch of B problems; ``result[i]`` is that of problem i.

    Attributes:
        x: (B, n, n), of the kind, dtype and device of the data.
        value: (B,), f(x) of each problem.
        codes: (B,), the position in `jorth.solvers.batches.STATUSES` of each status.
        iterations: (B,).
        gradient_norm: (B,), ||skew(J G x^T)||_F of each problem.
        time: Seconds for all problems.
        message: How many problems ended in which way.
        method: The method.
        bound: (B,), a lower bound on f over all J-orthogonal matrices, of `procrustes` with
            ``certify=True``; otherwise None.
        gap: (B,), the gap of each problem, as in `jorth.Result`; None without a bound.
    """

    x: Any
    value: Any
    codes: NDArray[np.int64]
    iterations: NDArray[np.int64]
    gradient_norm: Any
    time: float
    message: str
    method: str
    signature: Signature = field(repr=False)
    bound: Any = None
    gap: Any = None

    @cached_property
    def status(self) -> NDArray[np.object_]:
        """(B,), why each problem ended."""
        return np.array(STATUSES, dtype=object)[self.codes]

    @property
    def success(self) -> NDArray[np.bool_]:
        """(B,), whether each problem converged."""
        converged: NDArray[np.bool_] = self.codes == 0
        return converged

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
        return len(self.codes)

    def __getitem__(self, index: int) -> ProblemResult:
        index = operator.index(index)
        return ProblemResult(
            self.x[index],
            float(self.value[index]),
            STATUSES[self.codes[index]],
            int(self.iterations[index]),
            float(self.gradient_norm[index]),
            None if self.bound is None else float(self.bound[index]),
            None if self.gap is None else float(self.gap[index]),
        )

    def __iter__(self) -> Iterator[ProblemResult]:
        return (self[index] for index in range(len(self)))


class Budget:
    """What a batch may spend, and why it ended early if it did."""

    def __init__(self, limits: Limits, interrupt: Interrupt) -> None:
        given = limits.max_iterations
        self.max_iterations = MAX_ITERATIONS if given is None else given
        self.code = UNFINISHED
        self.started = time.perf_counter()
        self._max_time = limits.max_time
        self._interrupt = interrupt

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def ended(self) -> bool:
        """Whether the time is up or Ctrl-C was pressed."""
        if self._interrupt.requested():
            self.code = STATUSES.index(Status.INTERRUPTED)
        elif self._max_time is not None and self.seconds > self._max_time:
            self.code = STATUSES.index(Status.MAX_TIME)
        return self.code != UNFINISHED


@dataclass
class Answers:
    """The points of a batch, and what is known of them; tensors with the batch first."""

    X: Tensor
    value: Tensor
    norm: Tensor
    iterations: Tensor
    codes: Tensor

    @classmethod
    def unknown(cls, X: Tensor) -> Answers:
        """The starts of problems that have not been solved yet."""
        nothing = X.new_full((len(X),), torch.nan)
        zero = torch.zeros(len(X), dtype=torch.int64, device=X.device)
        return cls(X.clone(), nothing, nothing.clone(), zero, torch.full_like(zero, UNFINISHED))

    def put(self, where: Tensor | slice, found: Answers) -> None:
        """Take over the answers to some of the problems."""
        self.X[where] = found.X
        self.value[where] = found.value
        self.norm[where] = found.norm
        self.iterations[where] = found.iterations
        self.codes[where] = found.codes

    def settle(
        self, A: Tensor, signature: Signature, evaluate: far_batches.Evaluate, *, bounded: bool
    ) -> None:
        """Say of each problem whose X has run away what is known of its f."""
        done = (self.codes != UNFINISHED).nonzero()[:, 0]
        own = A if len(A) == 1 else A[done]
        known = far_batches.far_statuses(
            self.X[done], own, signature, lambda X, index: evaluate(X, done[index])
        )
        unbounded, stalled, not_attained = (
            STATUSES.index(status)
            for status in (Status.UNBOUNDED, Status.STALLED, Status.NOT_ATTAINED)
        )
        self.codes[self.codes == unbounded] = stalled
        for place, status in known.items():
            i = done[place]
            if status is Status.NOT_ATTAINED and self.codes[i] in (0, stalled):
                self.codes[i] = not_attained
            elif status is Status.UNBOUNDED and self.codes[i] == stalled and not bounded:
                self.codes[i] = unbounded


def solve_many(
    A: Tensor, C: Tensor, signs: Tensor, X: Tensor, tolerance: float, budget: Budget
) -> Answers:
    """Minimise 1/2 tr(X^T A X) + <C, X> for each problem, where its data are."""
    if X.device.type == "cpu":
        found = cpu_batches.minimize_many(
            A,
            C,
            signs,
            X,
            tolerance=tolerance,
            max_iterations=budget.max_iterations,
            ended=budget.ended,
        )
        return Answers(*found)
    shape = X.shape
    if not C.shape[-1]:
        C = C.new_zeros((1, 1, 1))
    found = device_batches.minimize_many(
        A.expand(shape),
        C.expand(shape),
        signs,
        X,
        tolerance=tolerance,
        max_iterations=budget.max_iterations,
    )
    return Answers(*found)


def minimize_batch(
    objective: Quadratic, x0: Any, signature: Signature | None, tolerance: float, limits: Limits
) -> BatchResult:
    """`jorth.minimize` for a `Quadratic` of B problems."""
    if signature is None:
        raise ValueError("signature must be given: the objective has none, got None")
    n = _inputs.check_signature(signature).n
    if objective.shape()[0] != n:
        wanted = f"({n}, {n}) or (B, {n}, {n}) for {signature}"
        raise ValueError(f"A must have shape {wanted}, got {tuple(objective.A.shape)}")
    data, count = objective.A, objective.batch
    X = starts(x0, data, count, signature).double()
    A = _stacked(objective.A).double()
    C = A.new_zeros((1, n, 0)) if objective.C is None else _stacked(objective.C).double()
    with Interrupt() as interrupt:
        budget = Budget(limits, interrupt)
        answers = Answers.unknown(X)
        step = problems_at_once(n, X.device)
        for start in range(0, count, step):
            if budget.ended():
                break
            part = slice(start, start + step)
            pieces = (_part(A, part), _part(C, part))
            found = solve_many(*pieces, signature.vector(X), X[part], tolerance, budget)
            answers.put(part, found)
        interrupt.hold()
        answers.settle(A, signature, _evaluation(A, C), bounded=False)
        unfinished = answers.codes == UNFINISHED
        if bool(unfinished.any()):
            value, _ = objective.value_and_gradient(answers.X.to(data))
            answers.value[unfinished] = value.to(answers.value)[unfinished]
        speaks_torch = objective.speaks_torch if x0 is None else isinstance(x0, Tensor)
        numpy_out = not speaks_torch
        return batch_result(answers, budget, signature, data, numpy_out)


def problems_at_once(n: int, device: torch.device) -> int:
    """The size of a chunk: on the CPU such that it stays in the cache, else one for all."""
    return max(64, 2**20 // n**2) if device.type == "cpu" else 2**31


def _evaluation(A: Tensor, C: Tensor) -> far_batches.Evaluate:
    """f = 1/2 tr(X^T A X) + <C, X> of some problems."""

    def evaluate(X: Tensor, index: Tensor) -> Tensor:
        slope = (A if len(A) == 1 else A[index]) @ X / 2
        if C.shape[-1]:
            slope = slope + (C if len(C) == 1 else C[index])
        return (X * slope).sum((1, 2))

    return evaluate


def _stacked(matrix: Tensor) -> Tensor:
    return matrix[None] if matrix.ndim == 2 else matrix


def _part(stack: Tensor, part: slice) -> Tensor:
    return stack if len(stack) == 1 else stack[part]


def starts(x0: Any, data: Tensor, count: int, signature: Signature) -> Tensor:
    """A start (B, n, n) for each problem: x0, which may be shared, or the identity."""
    n = signature.n
    if x0 is None:
        return torch.eye(n).to(data).expand(count, n, n)
    X = _inputs.tensor_alike(x0, "x0", data, "the problems' data").detach()
    if X.shape not in ((n, n), (count, n, n)):
        wanted = f"({n}, {n}) or ({count}, {n}, {n}) for {count} problems"
        raise ValueError(f"x0 must have shape {wanted}, got {_inputs.describe(x0)}")
    _inputs.check_finite(X, "x0")
    check_feasible(X, signature, "x0", limit=feasibility_limit(X))
    return X.expand(count, n, n)


def batch_result(
    answers: Answers, budget: Budget, signature: Signature, data: Tensor, numpy_out: bool
) -> BatchResult:
    """The result in the kind and dtype of the data."""
    unfinished = answers.codes == UNFINISHED
    if bool(unfinished.any()):
        budget.ended()
        answers.codes[unfinished] = budget.code
    codes = answers.codes.cpu().numpy()
    counts = Counter(codes.tolist())
    ways = [f"{count} {STATUSES[code].name}" for code, count in sorted(counts.items())]
    parts = (answers.X, answers.value, answers.norm)
    x, value, norm = (public(part.to(data.dtype), numpy_out=numpy_out) for part in parts)
    return BatchResult(
        x=x,
        value=value,
        codes=codes,
        iterations=answers.iterations.cpu().numpy(),
        gradient_norm=norm,
        time=budget.seconds,
        message=f"{len(codes)} problems: {', '.join(ways)}",
        method=RiemannianNewton.name,
        signature=signature,
    )


def check_arguments(method: Any, batch: str, **given: Any) -> None:
    """Raise an error for arguments that make no sense for a batch; ``given`` has their defaults.

    ``batch`` says what makes it one.
    """
    by_name = isinstance(method, str) and method in ("auto", RiemannianNewton.name)
    if method is not None and not by_name and not isinstance(method, RiemannianNewton):
        wanted = f'"auto" or "{RiemannianNewton.name}" for a batch ({batch})'
        raise ValueError(f"method must be {wanted}, got {_inputs.describe(method)}")
    for name, value in given.items():
        if value is not None and value is not False:
            found = _inputs.describe(value)
            raise ValueError(f"{name} must be omitted for a batch ({batch}), got {found}")
