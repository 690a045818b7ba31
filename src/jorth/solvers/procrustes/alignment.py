"""`procrustes`: align two point clouds by the best isometry in any component."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg.lapack import dtrtri
from torch import Tensor

from jorth import arrays
from jorth.group import PolishError, component, random_point
from jorth.group.polishing import orthogonal_factor
from jorth.group.time_column import OtherTimeWarning, warn_of_other_time
from jorth.inputs import ArrayLike, as_array, warn_of_other_order
from jorth.linalg.polar import balanced
from jorth.objectives import Procrustes
from jorth.signature import Signature
from jorth.solvers.batches import check_arguments as check_batch_arguments
from jorth.solvers.loop.budget import Interrupt, Limits
from jorth.solvers.loop.record import Result, best_of
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.status import Status
from jorth.solvers.minimize import minimize, starting_point
from jorth.solvers.procrustes.batches import procrustes_batch
from jorth.solvers.procrustes.certificate import Certificate, certificate_of
from jorth.solvers.procrustes.certified_batches import certify_batch
from jorth.suggestions import explained

Component = tuple[int, int]
Matrix = NDArray[np.float64]
CLEARLY_LOWER = 0.5
"""The factor of M is a start if its f is at most f(M) plus this share of f(I) - f(M); a worse one
usually lies far out."""

FINISHED = (Status.CONVERGED, Status.STALLED)
"""After other endings no further start is tried."""
NEARBY = 10.0
"""The condition of the change from the best point to a random start."""


# one argument for each decision of a user
@explained
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
) -> Result:
    """The J-orthogonal X that minimises f(X) = 1/(2m) ||source X - target||_F^2.

    **Starts.** Let M be the unconstrained least-squares solution. A run starts at the J-orthogonal
    factor of M (`jorth.polish`), or at the identity if there is no factor or f is not clearly lower
    there. If the noise is small, the factor is nearly the answer.

    **Components.** A run stays in the component of its start, and f has a minimum in each of the
    (up to) four. The other components are started from the same points with the sign of one + or -
    coordinate flipped. A component is left out when a bound shows that it holds nothing better. Let
    R be the triangular factor of the source, and S^T S the Schur complement of R^T R for the
    columns of +. Then

        f(X) - f(M) = ||R (X - M)||_F^2 / 2m >= ||S (X[+,+] - M[+,+])||_F^2 / 2m  and likewise for -

    in sum. X[+,+] has no singular value below 1, so the square is at least sigma_min(S)^2 times the
    sum of max(1 - sigma_i, 0)^2 over the singular values of M[+,+]. If det M[+,+] does not have the
    component's sign, there is a singular matrix between the two, and the square is at least
    (sigma_min(S M[+,+]) + sigma_min(S))^2. Within a component the minimum found is a local one.

    **Certificate.** ``bound`` of the result is a lower bound on f over all J-orthogonal matrices,
    and ``gap`` is (value - bound) / max(value, u f(0)). It comes from multipliers of both forms of
    the constraint, X^T J X = J and X J X^T = J. If the gap is at most 1e-6, or hidden by the
    rounding of f, the message says that x is certified: no other X is better. While it is larger,
    further starts are tried: the J-orthogonal factor of the point where the Lagrangian is least,
    and random points. That is usually enough: the bound nearly always equals the least value if the
    noise is below the smallest singular value of source / sqrt(m). For n > 16 the bound uses
    X^T J X = J alone, which certifies small noise only. A gap that stays open does not mean that
    there is a better X.

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
        gradient_tolerance: As in `minimize`; u^(2/3) when omitted, with u the unit roundoff.
        checkpoint: A folder, with a subfolder for each component and each further start.
        certify: Whether to bound f from below; by default yes, but not for many problems, where it
            takes longer than the answers. Those with an open gap are then solved again one by one.
            There is no bound for a thin X.
        starts: The most further starts while the gap is open.
        **options: Options of `minimize` and of the method. Limits apply to each run.

    Returns:
        The `Result` of the best run, with the iterations, evaluations and time of all runs, which
        are its ``stages``. For many problems a `jorth.BatchResult`.
    """
    arrays.check_choice(components, "components", ("all", "start"))
    arrays.whole_number(starts, "starts", 0)
    if certify is not None and not isinstance(certify, (bool, np.bool_)):
        raise ValueError(f"certify must be True or False, got {arrays.shown(certify)}")
    warn_of_other_order(source, target, "source", "target")
    clouds = as_array(source, "source"), as_array(target, "target")
    source, target = clouds
    if any(cloud.ndim == 3 for cloud in clouds):
        limits = Limits(
            max_iterations=options.pop("max_iterations", None),
            max_time=options.pop("max_time", None),
        )
        batch = f"source {arrays.describe(source)}, target {arrays.describe(target)}"
        check_batch_arguments(method, batch, checkpoint=checkpoint, **options)
        answers: Any = procrustes_batch(
            source, target, signature, x0, components, gradient_tolerance, limits
        )
        if certify:
            again = partial(_solve_again, signature, components, gradient_tolerance, starts)
            answers = certify_batch(answers, source, target, signature, again)
        return answers  # type: ignore[no-any-return]
    objective = Procrustes(source, target)
    _check_shapes(objective, source, target, x0, signature)
    warn_of_other_time(signature, *objective.clouds())
    if gradient_tolerance is None:
        gradient_tolerance = float(arrays.unit_roundoff(objective.R) ** (2 / 3))
    options |= dict(signature=signature, gradient_tolerance=gradient_tolerance)
    n, k = objective.shape()
    alike: Any = target if x0 is None else x0
    if k < n:
        if certify:
            wanted = f"left out if target has fewer than {n} columns"
            raise ValueError(f"certify must be {wanted}, got True and {k} columns")
        if x0 is None:
            x0 = arrays.like_input(torch.eye(n, k).to(objective.data()), alike)
        if method is None:
            method = "gs-jobcd"
            options["components"] = components
        return minimize(objective, x0, method=method, checkpoint=checkpoint, **options)

    def run(start: Tensor, name: str) -> Result:
        folder = None if checkpoint is None else Path(checkpoint) / name
        chosen = "auto" if method is None else method
        X = arrays.like_input(start.to(objective.data()), alike)
        return minimize(objective, X, method=chosen, checkpoint=folder, **options)

    with Interrupt() as interrupt:
        interrupt.hold()  # results must not be lost between two runs
        search = _Search(objective, signature, run)
        search.components(x0, everywhere=components == "all")
        if certify is None or certify:
            search.certify(starts if components == "all" else 0)
    return search.result(everywhere=components == "all")


def _solve_again(
    signature: Signature,
    components: Literal["all", "start"],
    gradient_tolerance: float | None,
    starts: int,
    *problem: Any,
) -> Result:
    """A problem (source, target, x0) of a batch on its own."""
    source, target, x0 = (part.cpu() for part in problem)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OtherTimeWarning)  # given for the batch already
        return procrustes(
            source,
            target,
            signature,
            x0=x0,
            components=components,
            gradient_tolerance=gradient_tolerance,
            starts=starts,
        )


class _Search:
    """Runs from several starts, and a bound on what further ones can find.

    Args:
        objective: The problem.
        signature: The signs of J.
        run: Minimises from a start, under a name for its checkpoint.
    """

    def __init__(
        self, objective: Procrustes, signature: Signature, run: Callable[[Tensor, str], Result]
    ) -> None:
        self.objective, self.signature = objective, signature
        self.runs: list[Result] = []
        self.certificate: Certificate | None = None
        self._run = run
        self._M = _least_squares(objective)
        self._bounds = _bounds(objective, signature, self._M)

    @property
    def value(self) -> float:
        """The least f so far."""
        return min((run.value for run in self.runs), default=math.inf)

    def components(self, x0: Any, *, everywhere: bool) -> None:
        """A run in each component that may hold the least f."""
        starts = _starts(self.objective, self.signature, self._M, x0)
        for which in list(starts)[: None if everywhere else 1]:
            if self.runs and self._bounds[which] > self.value:
                continue
            self.runs.append(self._run(starts[which], "{:+d}{:+d}".format(*which)))
            if self.runs[-1].status is Status.INTERRUPTED:
                break

    def certify(self, starts: int) -> None:
        """Bound f from below, and try further starts while the gap is open."""
        self._renew()
        fresh = True
        for turn in range(starts):
            done = self.certificate is None or self.certificate.closed
            if done or any(run.status not in FINISHED for run in self.runs):
                return
            start = self._further(turn, fresh=fresh)
            before = self.value
            self.runs.append(self._run(start, f"start-{turn + 1}"))
            fresh = self.value < before
            if fresh:
                self._renew()

    def _renew(self) -> None:
        """The certificate of the best point so far."""
        best = min(self.runs, key=lambda run: math.inf if math.isnan(run.value) else run.value)
        if math.isfinite(best.value):
            X = arrays.to_tensor(best.x, "x")
            known = min(self._bounds.values())
            self.certificate = certificate_of(self.objective, self.signature, X, known)

    def _further(self, turn: int, *, fresh: bool) -> Tensor:
        """The factor of the relaxed answer, if it is new, or a random point."""
        nearest = None if self.certificate is None else self.certificate.nearest
        if fresh and nearest is not None:
            with suppress(PolishError):
                return orthogonal_factor(balanced(nearest), self.signature, "nearest")
        change = torch.from_numpy(random_point(self.signature, cond=NEARBY, seed=turn))
        flips = [signs for _, signs in _flips(self.signature)]
        change = change * flips[turn % len(flips)].to(change)
        best = min(self.runs, key=lambda run: run.value)
        X = arrays.to_tensor(best.x, "x").double().cpu() @ change
        with suppress(PolishError):  # x has lost its digits
            return orthogonal_factor(X, self.signature, "x")
        return change

    def result(self, *, everywhere: bool) -> Result:
        """The best run with its bound and its gap, which are for all components."""
        best = best_of(self.runs)
        found = self.certificate
        if found is None:
            return best
        message = f"{best.message}; {found.sentence()}"
        if not (everywhere or found.closed):
            message += ", by a bound for all components where one was searched"
        return replace(best, bound=found.bound, gap=found.gap, message=message)


def _check_shapes(
    objective: Procrustes, source: Any, target: Any, x0: Any, signature: Signature
) -> None:
    n, k = objective.shape()
    if n != arrays.check_signature(signature).n:
        found = f"{signature} (p + q = {signature.n}) and a source of shape {tuple(source.shape)}"
        raise ValueError(f"signature must have one sign per column of source, got {found}")
    if k > n:
        found = arrays.describe(target)
        raise ValueError(f"target must have shape (m, k) with k at most {n}, got {found}")
    if x0 is not None:
        start = arrays.tensor_alike(x0, "x0", objective.data(), "target")
        if tuple(start.shape) != (n, k):
            wanted = f"shape {(n, k)} to go with source and target"
            raise ValueError(f"x0 must have {wanted}, got {arrays.describe(x0)}")


def data_start(objective: Procrustes, signature: Signature) -> Tensor:
    """The point at which `procrustes` starts: the factor of M, or the identity."""
    factor = _factor(objective, signature, _least_squares(objective))
    return torch.eye(signature.n).to(objective.data()) if factor is None else factor


def _least_squares(objective: Procrustes) -> Tensor:
    """M (n, n) in float64 on the CPU; if it is not unique, that of least norm."""
    R = objective.R.double().cpu()
    T1 = objective.T1.double().cpu()
    size = R.diagonal().abs()
    if float(size.min()) > len(R) * float(arrays.unit_roundoff(R)) * float(size.max()):
        M: Tensor = torch.linalg.solve_triangular(R, T1, upper=True)
    else:
        M = torch.linalg.lstsq(R, T1, driver="gelsd").solution
    arrays.check_overflow(M, "source and target", "the least-squares solution")
    return M


def _factor(objective: Procrustes, signature: Signature, M: Tensor) -> Tensor | None:
    """The J-orthogonal factor of M, if it exists and f is clearly lower there than at I."""
    data = objective.data()
    try:
        X = orthogonal_factor(balanced(M), signature, "M").to(data)
    except PolishError:
        return None
    points = (X, M, torch.eye(signature.n))
    value, least, at_identity = (objective.value(Y.to(data)).item() for Y in points)
    return X if value - least <= CLEARLY_LOWER * (at_identity - least) else None


def _starts(
    objective: Procrustes, signature: Signature, M: Tensor, x0: Any
) -> dict[Component, Tensor]:
    """A start for each component: x0 first, the others by increasing values of f."""
    found: dict[Component, Tensor] = {}
    candidates = [((1, 1), torch.eye(signature.n).to(objective.data()))]
    factor = _factor(objective, signature, M)
    if factor is not None:
        candidates.append((component(factor, signature), factor))
    flipped = [
        ((plus * own[0], minus * own[1]), X * signs.to(X))
        for own, X in candidates
        for (plus, minus), signs in _flips(signature)
    ]
    for which, X in sorted(flipped, key=lambda start: objective.value(start[1]).item()):
        found.setdefault(which, X)
    if x0 is None:
        return found
    own = starting_point(x0, objective, signature)
    first = component(own, signature)
    return {first: own} | {which: X for which, X in found.items() if which != first}


def _flips(signature: Signature) -> Iterator[tuple[Component, Tensor]]:
    """Diagonals of signs that flip nothing, the last -, the last +, or both.

    Before each there are the signs of its two determinants.
    """
    positions = (signature.positive[-1:], signature.negative[-1:])
    for signs in product(*((1, -1) if len(place) else (1,) for place in positions)):
        diagonal = torch.ones(signature.n)
        for sign, place in zip(signs, positions, strict=True):
            diagonal[place.copy()] = sign
        yield (signs[0], signs[1]), diagonal


def _bounds(objective: Procrustes, signature: Signature, M: Tensor) -> dict[Component, float]:
    """A lower bound on f in each component."""
    floor = objective.value(M.to(objective.data())).item()
    R = objective.R.double().cpu().numpy()
    inverse, singular = dtrtri(R)
    distances = [
        {1: 0.0, -1: 0.0}
        if singular or not len(index) or not np.isfinite(inverse).all()
        else _distances(inverse[index], M.numpy()[np.ix_(index, index)])
        for index in (signature.positive, signature.negative)
    ]
    return {
        (plus, minus): floor + (distances[0][plus] + distances[1][minus]) / (2 * objective.samples)
        for plus, minus in product((1, -1), repeat=2)
    }


def _distances(inverse: Matrix, block: Matrix) -> dict[int, float]:
    """For either sign of det B the least ||S (B - block)||_F^2, or less: see `procrustes`.

    ``inverse`` has those rows of R^-1 that belong to the block: S^T S is the inverse of their Gram
    matrix.
    """
    U, sizes, _ = np.linalg.svd(inverse, full_matrices=False)
    if not sizes[-1] > len(block) * np.finfo(float).eps * sizes[0]:  # R is rounding here
        return {1: 0.0, -1: 0.0}
    least = 1 / sizes[0]
    values = np.linalg.svd(block, compute_uv=False)
    missing = np.maximum(1 - values, 0)
    near = least**2 * float(missing @ missing)
    around = least**2 * (float(missing[:-1] @ missing[:-1]) + (1 + values[-1]) ** 2)
    across = (np.linalg.svd((U / sizes).T @ block, compute_uv=False)[-1] + least) ** 2
    sign = int(np.linalg.slogdet(block)[0])
    return {1: near, -1: near} | {-sign: float(max(around, across)), sign: near}
