"""`procrustes`: align point clouds by the best isometries in any component."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, is_sparse
from jorth.group import PolishError, random_point
from jorth.group.polish import orthogonal_factor
from jorth.group.time_column import warn_of_other_time
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers import batch
from jorth.solvers.batch import STATUSES, UNFINISHED, Answers, BatchResult
from jorth.solvers.certificate import Certificate, Neighbourhood, defects
from jorth.solvers.loop import Interrupt
from jorth.solvers.minimize import minimize
from jorth.solvers.problem import Evaluations, Limits, Status
from jorth.solvers.procrustes_starts import Clouds, Matrix, Starts, component_flips, factor
from jorth.solvers.result import Result, public
from jorth.solvers.stopping import DEFAULT_TOLERANCE

AIM = 1e-4
"""Newton's method goes on to this share of the tolerance: one step more, without which few gaps of
problems without noise close."""
NEARBY = 10.0
"""The condition of the change from the best point to a random start."""
CONVERGED, STALLED, INTERRUPTED, NON_FINITE = (
    STATUSES.index(status)
    for status in (Status.CONVERGED, Status.STALLED, Status.INTERRUPTED, Status.NON_FINITE)
)


# one argument for each decision of a user; half of the lines check what was given
def procrustes(
    source: ArrayLike,
    target: ArrayLike,
    signature: Signature,
    *,
    x0: ArrayLike | None = None,
    components: Literal["all", "start"] = "all",
    gradient_tolerance: float | None = None,
    max_iterations: int | None = None,
    max_time: float | None = None,
    certify: bool | None = None,
    starts: int = 4,
) -> Result | BatchResult:
    """Find the J-orthogonal X that minimises f(X) = 1/(2m) ||source X - target||_F^2.

    **Starts.** Newton's method starts at the J-orthogonal factor of the least-squares solution M
    (`jorth.polish`), or at the identity if there is no factor or f is not clearly lower there.

    **Components.** A run stays in the component of its start, and f has a minimum in each of the
    (up to) four. The others are started from the same points with the sign of one + or - coordinate
    flipped, unless a bound shows that they hold nothing better.

    **Certificate.** ``bound`` of the result is a lower bound on f over all J-orthogonal matrices,
    rounding included, and ``gap`` is (value - bound) / max(value, u f(0)). The message says that x
    is certified, no X is better, if value - bound is at most 1e-6 of the value, or within the
    rounding of f. Otherwise further starts are tried. The bound is nearly always sharp if the noise
    is below the smallest singular value of source / sqrt(m); for n > 16 it takes little noise, or
    few rows. An open gap does not mean that there is a better X.

    Everything is computed in float64, on the CPU.

    Without full column rank of the source there may be no minimiser or many. If f only approaches
    its infimum as ||X|| grows, the status is NOT_ATTAINED.

    For another method, a history or a checkpoint call `jorth.minimize` with a `jorth.Procrustes`.

    Args:
        source: (m, n), dense or scipy.sparse; or (B, m, n), dense, for B problems at once.
        target: (m, n), or (B, m, n); or (m, k) with k < n, for a thin X (n, k) with X^T J X =
            diag(s_1, ..., s_k), which "gs-jobcd" finds from the first k columns of the identity.
        signature: The signs of J. There is a warning if it is Lorentz, and the points have their
            time at the other end.
        x0: Your own start; another start is tried in its component only if the gap is open. For
            many problems (n, n) or (B, n, n).
        components: "all", or "start" for the component of x0 alone and no further starts; without
            x0, that of the start with the lowest value.
        gradient_tolerance: The bound on ||skew(J G X^T)||_F / (||A||_F + ||B||_F), with A =
            source^T source / m and B = source^T target / m; 1e-7 when omitted.
        max_iterations: The most iterations of each run, 1000 when omitted.
        max_time: Seconds for all problems and runs together.
        certify: Whether to bound f from below; by default yes, but not for many problems, where it
            takes longer than the answers. There is no bound for a thin X.
        starts: The most further starts while the gap is open.

    Returns:
        The `Result` of the best run, with the iterations, evaluations and time of all runs, and
        without a history. For many problems a `jorth.BatchResult`.

    >>> sig = jorth.Signature(3, 1)
    >>> source, target, X = jorth.datasets.planted_procrustes(100, sig, noise=0.01)
    >>> fit = jorth.procrustes(source, target, sig)
    >>> np.abs(fit.x - X).max() < 0.02 and fit.gap < 1e-6
    True
    """
    _inputs.check_choice(components, "components", ("all", "start"))
    _inputs.whole_number(starts, "starts", 0)
    if certify is not None and not isinstance(certify, (bool, np.bool_)):
        raise ValueError(f"certify must be True or False, got {_inputs.describe(certify)}")
    tolerance = DEFAULT_TOLERANCE if gradient_tolerance is None else gradient_tolerance
    _inputs.check_number(tolerance, "gradient_tolerance", 0)
    limits = Limits(max_iterations=max_iterations, max_time=max_time)
    n = _inputs.check_signature(signature).n
    data = _inputs.to_tensor(target, "target").detach()
    S: Any = source if is_sparse(source) else _inputs.tensor_after(source, "source", data).detach()
    many = 3 in (S.ndim, data.ndim)
    if many:
        if is_sparse(S) or S.ndim != 3 or S.shape[2] != n or not S.numel():
            wanted = f"(B, m, {n}) with B and m at least 1 for {signature}"
            raise ValueError(f"source must have shape {wanted}, got {_inputs.describe(S)}")
        if data.shape != S.shape:
            wanted = f"{tuple(S.shape)} like source"
            raise ValueError(f"target must have shape {wanted}, got {_inputs.describe(data)}")
    elif data.ndim == 2 and data.shape[1] < n:
        if certify:
            wanted = f"left out if target has fewer than {n} columns"
            raise ValueError(f"certify must be {wanted}, got True and {data.shape[1]} columns")
        warn_of_other_time(signature, S, data)
        if x0 is None:
            x0 = _inputs.like_input(torch.eye(n, data.shape[1]).to(data), target)
        return minimize(
            Procrustes(S, data), x0, signature=signature, method="gs-jobcd", components=components,
            gradient_tolerance=gradient_tolerance, max_iterations=max_iterations, max_time=max_time,
        )  # fmt: skip
    else:
        objective = Procrustes(S if is_sparse(S) else S.double(), data.double())
        if objective.shape() != (n, n):
            wanted = f"{n} columns for {signature}"
            found = f"shapes {tuple(S.shape)} and {tuple(data.shape)}"
            raise ValueError(f"source and target must have {wanted}, got {found}")
    warn_of_other_time(signature, S, data)
    count = len(data) if many else 1
    alike = target if x0 is None else x0
    start = None
    if x0 is not None:
        start = batch.starts(x0, data, count, signature)
        if data.dtype is not torch.float64:
            start = orthogonal_factor(torch.from_numpy(start), signature, "x0").numpy()
    certify = not many if certify is None else bool(certify)

    def search(part: slice) -> _Search:
        if many:
            clouds = Clouds.of(*(rows[part].cpu().double().numpy() for rows in (S, data)))
        else:
            clouds = Clouds.compressed(objective)
        found = _Search(clouds, signature, tolerance, limits, starts if certify else None)
        found.solve(None if start is None else start[part], everywhere=components == "all")
        return found

    with Interrupt() as interrupt:
        limits.interrupt = interrupt
        limits.clock.start()
        searches = _in_chunks(search, S) if many else [search(slice(0, 1))]
        interrupt.hold()
        limits.clock.pause()
    return _result(searches, limits, data, alike, many=many, certify=certify)


@dataclass
class _Search:
    """The search for the best minima of B problems, and for bounds which nothing is below.

    Attributes:
        starts: The most further starts of a problem whose gap is open; None for no bounds at all.
        best: The best points so far, in the units of the clouds, with the iterations of all runs.
        runs: (B,), how many there were.
        proof: What is known of the least f, in these units.
    """

    clouds: Clouds
    signature: Signature
    tolerance: float
    limits: Limits
    starts: int | None
    best: Answers = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.clouds.scale)
        self.signs = self.signature.signs.astype(np.float64)
        self.runs = np.zeros(count, dtype=np.int64)
        unknown = np.full(count, np.nan)
        self.proof = Certificate(unknown, unknown.copy(), np.zeros(count, dtype=bool))

    def solve(self, x0: Matrix | None, *, everywhere: bool) -> None:
        """Search all components or one, and then near and far where the gap is open."""
        begin = Starts(self.clouds, self.signature, x0)
        every, turns = np.arange(len(self.runs)), len(begin.components)
        self._run(every, begin.points(0))
        if self.starts is not None:
            self._certify(every)
        for turn in range(1, turns if everywhere else 1):
            todo = np.flatnonzero(~self.proof.closed & (self.best.codes != INTERRUPTED))
            if todo.size:
                todo = todo[begin.bound(turn, todo) <= self.best.value[todo]]
            if todo.size:
                self._run(todo, begin.points(turn)[todo])
        if self.starts is None:
            return
        for one in np.flatnonzero(~self.proof.closed & np.isfinite(self.best.value)).tolist():
            which = np.array([one])
            known = min(begin.bound(turn, which)[0] for turn in range(turns))
            nearest = self._certify(which, known, thorough=True)
            for turn in range(self.starts if everywhere else 0):
                if self.proof.closed[one] or self.best.codes[one] not in (CONVERGED, STALLED):
                    break
                better = self._run(which, self._further(one, turn, nearest))
                nearest = self._certify(which, known, thorough=True) if better else None

    def _run(self, which: NDArray[np.intp], X: Matrix) -> bool:
        """Solve some problems from X, keep what is better, and return whether anything is."""
        clouds = self.clouds.select(which)
        size = self.tolerance * clouds.gradient_scale
        found = batch.solve_quadratics(clouds.A, clouds.C, self.signs, X, AIM * size, self.limits)
        found.codes[(found.norm <= size) & (found.codes == STALLED)] = CONVERGED
        found.value = clouds.value(found.X)

        def value(i: int, X: Tensor) -> float:
            return float(clouds.select(np.array([i])).value(X.numpy()[None])[0])

        found.classify(clouds.A, self.signature, value, bounded=True)
        found.codes[np.isnan(clouds.scale)] = NON_FINITE
        cut = found.codes == UNFINISHED
        if cut.any():
            found.codes[cut] = STATUSES.index(self.limits.reached() or Status.INTERRUPTED)
        first = not self.runs.any()
        self.runs[which] += 1
        if first:
            self.best = found
            return True
        best = self.best
        best.iterations[which] += found.iterations
        found.iterations = best.iterations[which]
        better = found.value < best.value[which]
        for own, new in zip(vars(best).values(), vars(found).values(), strict=True):
            own[which[better]] = new[better]
        # what has not been searched may hold something better
        best.codes[which[cut]] = found.codes[cut]
        return bool(better.any())

    def _certify(
        self, which: NDArray[np.intp], known: float = 0.0, *, thorough: bool = False
    ) -> Matrix | None:
        """Bound f in some problems; return the Lagrangian's minimiser if it is known."""
        seen = Neighbourhood(self.clouds.select(which), self.best.X[which], self.signature)
        found = seen.certificate(known, thorough=thorough)
        for own, new in zip(self.proof[:3], found[:3], strict=True):
            own[which] = new
        return found.nearest

    def _further(self, one: int, turn: int, nearest: Matrix | None) -> Matrix:
        """Return the factor of the Lagrangian's minimiser, if it is new, or a random point."""
        if nearest is not None:
            X = factor(nearest[None], self.signs)
            if np.isfinite(X).all():
                return X
        change = random_point(self.signature, cond=NEARBY, seed=turn)
        flips = component_flips(self.signature)
        change = change * flips[turn % len(flips)]
        with suppress(PolishError):  # x has lost its digits
            point = torch.from_numpy(self.best.X[one] @ change)
            change = orthogonal_factor(point, self.signature, "x").numpy()
        return np.asarray(change[None])


def _in_chunks(search: Any, rows: Tensor) -> list[_Search]:
    """Search parts of the problems, small enough for the cache, and some for each thread."""
    step = max(1, min(2**17 // rows[0].numel(), max(32, len(rows) // 16)))
    parts = [slice(first, first + step) for first in range(0, len(rows), step)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # in each chunk: faster for small matrices
    try:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(search, parts))
    finally:
        torch.set_num_threads(threads)


def _result(
    searches: list[_Search], limits: Limits, data: Tensor, alike: Any, *, many: bool, certify: bool
) -> Result | BatchResult:
    """Return the answers like ``alike``, in the units, the dtype and on the device of the data."""
    signature = searches[0].signature
    parts = zip(*(vars(found.best).values() for found in searches), strict=True)
    answers = Answers(*map(np.concatenate, parts))
    unit = np.concatenate([found.clouds.scale for found in searches]) ** 2
    answers.value *= unit
    answers.norm *= unit
    proofs = zip(*(found.proof[:3] for found in searches), strict=True)
    bound, gap, closed = map(np.concatenate, proofs)
    bound = np.minimum(bound * unit, answers.value)  # which is rounded in another way
    if many:
        numpy_out = not isinstance(alike, Tensor)
        result = batch.batch_result(answers, limits, signature, data, numpy_out)
        if not certify:
            return result
        bound, gap = (
            public(torch.from_numpy(part).to(data.device), numpy_out=numpy_out)
            for part in (bound, gap)
        )
        message = f"{result.message}; {int(closed.sum())} certified"
        return replace(result, bound=bound, gap=gap, message=message)
    clouds, x = searches[0].clouds, torch.from_numpy(answers.X[0]).to(data)
    runs, status = int(searches[0].runs[0]), STATUSES[int(answers.codes[0])]
    value, norm, scale = (
        float(part[0]) for part in (answers.value, answers.norm, clouds.gradient_scale * unit)
    )
    message = status.value
    if status is Status.CONVERGED:
        at_most = f"at most {searches[0].tolerance:.3g} of its scale {scale:.3g}"
        message += f": the gradient norm {norm:.2g} is {at_most}"
    message += f"; the best of {runs} runs" if runs > 1 else ""
    certify &= math.isfinite(value)
    if certify:
        open_ = f"not certified: a gap of {gap[0]:.2g} remains"
        message += "; certified: no X is better" if closed[0] else f"; {open_}"
    exact = x.double().cpu().numpy()
    defect = defects(exact, searches[0].signs)[0]
    violation = float(abs(defect).max() / max(1.0, np.linalg.norm(exact, 2) ** 2))
    taken = int(answers.iterations[0])
    return Result(
        x=_inputs.like_input(x, alike),
        value=value,
        status=status,
        message=message,
        iterations=taken,
        evaluations=Evaluations(taken + runs, taken + runs, clouds.m * (taken + runs)),
        time=limits.clock.seconds,
        gradient_norm=norm,
        residual=violation,
        violation=violation,
        history={},
        gradient_scale=scale,
        method="riemannian-newton",
        bound=float(bound[0]) if certify else None,
        gap=float(gap[0]) if certify else None,
    )
