"""`procrustes`: align two point clouds by the best isometry in any component."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import ArrayLike, is_sparse
from jorth.group import PolishError, random_point, residual
from jorth.group.elements import check_feasible, power_of_two
from jorth.group.polish import orthogonal_factor
from jorth.group.time_column import warn_of_other_time
from jorth.linalg.polar import balance
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers.batch import BatchResult
from jorth.solvers.batch import check_arguments as check_batch_arguments
from jorth.solvers.loop import Interrupt
from jorth.solvers.minimize import minimize, starting_point
from jorth.solvers.problem import AbstractSolver, Limits, Status
from jorth.solvers.procrustes.batches import procrustes_batch
from jorth.solvers.procrustes.certificate import Certificate, certificate_of
from jorth.solvers.procrustes.starts import Clouds, Starts, component_flips
from jorth.solvers.result import Result, best_of, feasibility_limit
from jorth.solvers.stopping import DEFAULT_TOLERANCE, default_tolerance

ALL_DIGITS = 1e-11
"""The tolerance of a run that by default goes on from the best point if the gap is open: Newton's
method needs one step more, and f after 1e-7 may be above a bound of zero."""
MAX_ITERATIONS = 10_000
"""The most iterations of a run by default: 0.1 s of Newton's method for n = 4."""

FINISHED = (Status.CONVERGED, Status.STALLED)
"""After other endings no further start is tried."""
NEARBY = 10.0
"""The condition of the change from the best point to a random start."""


# one argument for each decision of a user
def procrustes(
    source: ArrayLike,
    target: ArrayLike,
    signature: Signature,
    *,
    x0: ArrayLike | None = None,
    components: Literal["all", "start"] = "all",
    method: str | AbstractSolver | None = None,
    gradient_tolerance: float | None = None,
    checkpoint: str | Path | None = None,
    certify: bool | None = None,
    starts: int = 4,
    **options: Any,
) -> Result | BatchResult:
    """The J-orthogonal X that minimises f(X) = 1/(2m) ||source X - target||_F^2.

    **Starts.** Let M be the unconstrained least-squares solution. A run starts at the J-orthogonal
    factor of M (`jorth.polish`), or at the identity if there is no factor or f is not clearly lower
    there. If the noise is small, the factor is nearly the answer.

    **Components.** A run stays in the component of its start, and f has a minimum in each of the
    (up to) four. The other components are started from the same points with the sign of one + or -
    coordinate flipped. A component is left out when a bound shows that it holds nothing better:
    f(X) is at least f(M) + lambda ||X - M||_F^2 / 2 with lambda the least eigenvalue of
    source^T source / m, and no singular value of X[+,+] or X[-,-] is below 1. Within a component
    the minimum found is a local one.

    **Certificate.** ``bound`` of the result is a lower bound on f over all J-orthogonal matrices,
    and ``gap`` is (value - bound) / max(value, u f(0)). It comes from multipliers of both forms of
    the constraint, X^T J X = J and X J X^T = J, and allows for all rounding errors. The message
    says that x is certified, no X is better, if value - bound is at most 1e-6 of the value; or if
    the gap is at most 1e-3, and value - bound below u f(0) and the rounding of f at x. Otherwise
    further starts are tried: the J-orthogonal factor of the point where the Lagrangian is least,
    and random points. That is usually enough: the bound nearly always equals the least value if the
    noise is below the smallest singular value of source / sqrt(m). For n > 16 only small noise, or
    few rows (m <= n), are certified. A gap that stays open does not mean that there is a better X.

    **Precision.** Everything is computed in float64. For float32 data ``value``, ``bound`` and
    ``gap`` are those of the answer before x is rounded to float32.

    If the source has full column rank, f is coercive. Otherwise, and always with m < n, there may
    be no minimiser or many of them: M is then the least-squares solution of least norm, no
    component is left out, and x is where the best run ended. If f only approaches its infimum as
    ||X|| grows, its status is NOT_ATTAINED: x is a point with a small gradient, or the last one
    before X loses its digits.

    **Many problems.** With source and target (B, m, n), all B problems are solved at once by
    Newton's method, on a device if the data are there. x0 may be (n, n) or (B, n, n); of the
    options, max_iterations (of each problem, 1000 when omitted) and max_time (of all) apply.

    Args:
        source: (m, n), dense or scipy.sparse; or (B, m, n), dense.
        target: (m, n), or (B, m, n); or (m, k) with k < n, for a thin X (n, k) with X^T J X =
            diag(s_1, ..., s_k). A thin X starts at the first k columns of the identity, and its
            default method is "gs-jobcd", which takes ``components``.
        signature: The signs of J. There is a warning if it is Lorentz, and the points have their
            time at the other end.
        x0: Your own start; another start is tried in its component only if the gap is open.
        components: "all", or "start" for the component of x0 alone and no further starts; without
            x0, that of the start with the lowest value.
        method: Any method of `minimize`; "auto" when omitted.
        gradient_tolerance: As in `minimize`, but 1e-7 for float32 data too, unless X is thin. When
            omitted, the best run goes on to 1e-11 if the gap is open.
        checkpoint: A folder, with a subfolder for each component and each further start.
        certify: Whether to bound f from below; by default yes, but not for many problems, where it
            takes longer than the answers. Those with an open gap are then solved again one by one.
            There is no bound for a thin X.
        starts: The most further starts while the gap is open.
        **options: Options of `minimize` and of the method. Limits apply to each run; max_iterations
            is 10,000 when omitted, and None for no limit.

    Returns:
        The `Result` of the best run, with the iterations, evaluations and time of all runs, which
        are its ``stages``. For many problems a `jorth.BatchResult`.
    """
    _inputs.check_choice(components, "components", ("all", "start"))
    _inputs.whole_number(starts, "starts", 0)
    if certify is not None and not isinstance(certify, (bool, np.bool_)):
        raise ValueError(f"certify must be True or False, got {_inputs.describe(certify)}")
    clouds: tuple[Any, ...] = tuple(
        cloud
        if isinstance(cloud, (np.ndarray, Tensor)) or is_sparse(cloud)
        else _inputs.to_floats(cloud, name)
        for cloud, name in ((source, "source"), (target, "target"))
    )
    source, target = clouds
    finer = ALL_DIGITS if gradient_tolerance is None else None
    if gradient_tolerance is None:
        gradient_tolerance = DEFAULT_TOLERANCE

    def search(objective: Procrustes, start: Any, alike: Any, **own: Any) -> _Search:
        """Search for the answer to one problem, with points of the kind of ``alike``."""

        def run(X: Tensor, name: str, tolerance: float | None = None) -> Result:
            folder = None if checkpoint is None else Path(checkpoint) / name
            own["gradient_tolerance"] = gradient_tolerance if tolerance is None else tolerance
            X = _inputs.like_input(X.to(objective.data()), alike)
            return minimize(objective, X, checkpoint=folder, **own)

        found = _Search(objective, signature, run, finer)
        certified = certify is None or bool(certify)
        found.run(start, everywhere=components == "all", starts=starts if certified else None)
        return found

    if any(cloud.ndim == 3 for cloud in clouds):
        most = options.pop("max_iterations", None)
        limits = Limits(max_iterations=most, max_time=options.pop("max_time", None))
        batch = f"source {_inputs.describe(source)}, target {_inputs.describe(target)}"
        check_batch_arguments(method, batch, checkpoint=checkpoint, **options)

        def again(source: Tensor, target: Tensor, x0: Tensor) -> tuple[Result, Certificate | None]:
            """Solve a problem of the batch on its own."""
            start = None
            with suppress(PolishError):  # after many steps x0 may have drifted
                start = orthogonal_factor(x0, signature, "x0")
            own = dict(signature=signature, max_iterations=MAX_ITERATIONS if most is None else most)
            found = search(Procrustes(source, target), start, source, **own)
            return found.result(), found.certificate

        proof = again if certify else None
        return procrustes_batch(
            source, target, signature, x0, components, gradient_tolerance, limits, proof
        )
    options = dict(max_iterations=MAX_ITERATIONS) | options | dict(signature=signature)
    n = _inputs.check_signature(signature).n
    data = _inputs.to_tensor(target, "target")
    thin = data.ndim == 2 and data.shape[1] < n
    if thin or is_sparse(source):
        objective = Procrustes(source, target if thin else data.double())
    else:
        objective = Procrustes(_inputs.to_tensor(source, "source").double(), data.double())
    if objective.shape()[0] != n:
        found = f"{signature} (p + q = {n}) and a source of shape {tuple(clouds[0].shape)}"
        raise ValueError(f"signature must have one sign per column of source, got {found}")
    if data.shape[1] > n:
        wanted = f"shape (m, k) with k at most {n}"
        raise ValueError(f"target must have {wanted}, got {_inputs.describe(target)}")
    warn_of_other_time(signature, *objective.clouds())
    alike: Any = target if x0 is None else x0
    if x0 is not None:
        start = _inputs.tensor_alike(x0, "x0", data, "target")
        if tuple(start.shape) != objective.shape():
            wanted = f"shape {objective.shape()} to go with source and target"
            raise ValueError(f"x0 must have {wanted}, got {_inputs.describe(x0)}")
    if thin:
        if certify:
            wanted = f"left out if target has fewer than {n} columns"
            raise ValueError(f"certify must be {wanted}, got True and {data.shape[1]} columns")
        if x0 is None:
            x0 = _inputs.like_input(torch.eye(*objective.shape()).to(data), alike)
        if method is None:
            method = "gs-jobcd"
            options["components"] = components
        if finer is not None and data.dtype is torch.float32:
            gradient_tolerance = default_tolerance(data)
        return minimize(
            objective, x0, method=method, gradient_tolerance=gradient_tolerance,
            checkpoint=checkpoint, **options,
        )  # fmt: skip
    if x0 is not None and data.dtype is not torch.float64:
        _inputs.check_finite(start, "x0")
        check_feasible(start, signature, "x0", limit=feasibility_limit(start))
        x0 = orthogonal_factor(start.double(), signature, "x0")

    options["method"] = "auto" if method is None else method
    with Interrupt() as interrupt:
        interrupt.hold()  # results must not be lost between two runs
        result = search(objective, x0, alike, **options).result()
    return _rounded(result, data.dtype, signature)


def _rounded(result: Result, dtype: torch.dtype, signature: Signature) -> Result:
    """The result with x in the dtype of the data."""
    if dtype is torch.float64:
        return result
    x = _inputs.like_input(_inputs.to_tensor(result.x, "x").to(dtype), result.x)
    violation = float(residual(x, signature))
    return replace(result, x=x, residual=violation, violation=max(violation, result.violation))


class _Search:
    """Runs from several starts, and a bound on what further ones can find.

    Args:
        objective: The problem, in float64.
        signature: The signs of J.
        run: Minimises from a start, under a name for its checkpoint, to a tolerance.
        finer: The tolerance to which the best run goes on while the gap is open; None leaves it.
    """

    def __init__(
        self,
        objective: Procrustes,
        signature: Signature,
        run: Callable[..., Result],
        finer: float | None = None,
    ) -> None:
        self._finer = finer
        self.objective, self.signature = objective, signature
        self.runs: list[Result] = []
        self.certificate: Certificate | None = None
        self._run = run
        self._everywhere = True
        self._known = 0.0
        """A lower bound on f by all components."""

    @property
    def best(self) -> Result:
        """The run with the least f so far."""
        return min(self.runs, key=lambda run: math.inf if math.isnan(run.value) else run.value)

    def run(self, x0: Any, *, everywhere: bool, starts: int | None) -> None:
        """Search the components, and bound f from below unless ``starts`` is None."""
        self._everywhere = everywhere
        begin, unit = _starts(self.objective, self.signature, x0)
        one = torch.zeros(1, dtype=torch.int64)
        for turn in range(len(begin.points) if everywhere else 1):
            if turn and unit * begin.bound(turn, one).item() > self.best.value:
                continue
            self.runs.append(self._run(begin.points[turn, 0], begin.name(turn)))
            if self.runs[-1].status is Status.INTERRUPTED:
                break
            if starts is not None and not turn:
                self._renew()
                if self._is_over():
                    return
        if starts is None:
            return
        least = (begin.bound(turn, one).item() for turn in range(len(begin.points)))
        self._known = unit * min(least)
        self._renew(thorough=True)
        more = everywhere and starts > 0 and self._finer is not None
        if more and not self._is_over() and all(run.success for run in self.runs):
            with suppress(PolishError):  # x has lost its digits
                start = orthogonal_factor(self._point(), self.signature, "x")
                self.runs.append(self._run(start, "all-digits", self._finer))
                self._renew(thorough=True)
        fresh = True
        for turn in range(starts if everywhere else 0):
            if self._is_over() or any(run.status not in FINISHED for run in self.runs):
                return
            start = self._further(turn, fresh=fresh)
            before = self.best.value
            self.runs.append(self._run(start, f"start-{turn + 1}"))
            fresh = self.best.value < before
            if fresh:
                self._renew(thorough=True)

    def _is_over(self) -> bool:
        """Whether the best point is certified, or f is not finite there."""
        return self.certificate is None or bool(self.certificate.closed)

    def _point(self) -> Tensor:
        return _inputs.to_tensor(self.best.x, "x").cpu()

    def _renew(self, *, thorough: bool = False) -> None:
        """The certificate of the best point so far: the cheap ones, or the best one."""
        if math.isfinite(self.best.value):
            seen = (self.objective, self.signature, self._point().numpy(), self._known)
            self.certificate = certificate_of(*seen, thorough=thorough)

    def _further(self, turn: int, *, fresh: bool) -> Tensor:
        """The factor of the relaxed answer, if it is new, or a random point."""
        nearest = None if self.certificate is None else self.certificate.nearest
        if fresh and nearest is not None:
            with suppress(PolishError):
                M = torch.from_numpy(nearest)
                return orthogonal_factor(balance(M), self.signature, "nearest")
        change = torch.from_numpy(random_point(self.signature, cond=NEARBY, seed=turn))
        flips = component_flips(self.signature)
        change = change * flips[turn % len(flips)]
        with suppress(PolishError):  # x has lost its digits
            return orthogonal_factor(self._point() @ change, self.signature, "x")
        return change

    def result(self) -> Result:
        """The best run with its bound and its gap, which are for all components."""
        best = best_of(self.runs)
        found = self.certificate
        if found is None:
            return best
        message = f"{best.message}; {found.sentence()}"
        if not (self._everywhere or found.closed):
            message += ", by a bound for all components where one was searched"
        return replace(best, bound=found.bound, gap=found.gap, message=message)


def _least_squares(R: Tensor, T1: Tensor) -> Tensor:
    """M (n, n); if it is not unique, that of least norm. No bound depends on that decision."""
    size = R.diagonal().abs()
    if float(size.min()) > len(R) * _inputs.unit_roundoff(R) * float(size.max()):
        M: Tensor = torch.linalg.solve_triangular(R, T1, upper=True)
    else:
        M = torch.linalg.lstsq(R, T1, driver="gelsd").solution
    _inputs.check_overflow(M, "source and target", "the least-squares solution")
    return M


def _starts(objective: Procrustes, signature: Signature, x0: Any = None) -> tuple[Starts, float]:
    """The starts of a single problem, and the unit of the bounds on f."""
    R, T1 = (part.double().cpu() for part in (objective.R, objective.T1))
    scale = power_of_two(torch.maximum(R.abs().amax(), T1.abs().amax()))
    R, T1, rest = R / scale, T1 / scale, objective.floor / float(scale) / float(scale)
    clouds = Clouds.of(R[None], T1[None], objective.samples, rest)
    own = None
    if x0 is not None:
        own = starting_point(x0, objective, signature).double().cpu()[None]
    return Starts.of(clouds, signature, own, _least_squares(R, T1)[None]), float(scale) ** 2
