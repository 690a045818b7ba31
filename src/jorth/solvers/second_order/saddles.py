"""`minimize(..., saddles="leave")`: down along negative curvature, and on from there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from jorth.arrays import frobenius, like_input, tensor_after, unit_roundoff
from jorth.group.retractions import cayley_step
from jorth.objectives import AbstractObjective
from jorth.objectives.base import hash_tensors
from jorth.signature import Signature
from jorth.solvers.loop.budget import CountedObjective, Evaluations, Interrupt, Limits
from jorth.solvers.loop.chain import handed_over, join, shares, with_offsets
from jorth.solvers.loop.record import Result
from jorth.solvers.loop.run import Settings
from jorth.solvers.loop.scale import gradient_size
from jorth.solvers.loop.status import Status, StopRun
from jorth.solvers.second_order.hessian import Hessian, HessianCheck, NotFinite, examine
from jorth.solvers.stationarity import point_of
from jorth.storage.checkpoint import FILE, Folder

MOST_ROUNDS = 100
CHECKED = (Status.CONVERGED, Status.STALLED)
"""A run that ended for another reason need not be at a critical point."""
ENOUGH = 0.25
"""A step is accepted with this part of the decrease that the negative curvature predicts."""
VERDICTS = {
    "minimum": "a minimum",
    "degenerate": "zero to within the tolerance {0.tolerance:.1g}: it may be no minimum",
    "saddle": "but no step along it lowers f in this precision",
    "not critical": "but the gradient norm {0.gradient_norm:.1g} is too large to decide by it",
}


@dataclass
class Way:
    """What was found at the end of a round.

    Attributes:
        X: The point below the saddle; None if it is no saddle.
        check: The check of the Hessian; None if there was none.
        broken_off: The limit that ended the check, if one did.
        note: What the message should say if there is no check.
        count: The evaluations of the check and of the step.
        seconds: Their time.
    """

    X: Tensor | None = None
    check: HessianCheck | None = None
    broken_off: Status | None = None
    note: str = ""
    count: Evaluations = field(default_factory=Evaluations)
    seconds: float = 0.0


def leave_saddles(
    solve: Callable[[Any, Settings], Result],
    x0: Any,
    objective: AbstractObjective,
    signature: Signature,
    settings: Settings,
) -> Result:
    """Run ``solve(start, settings)``, and again from below every saddle at which it ends.

    The limits are for all rounds together, including the checks of the Hessian. A step away from a
    saddle counts as an iteration. The folder of a round holds its checkpoint, the step away from
    its end and the folder of the next round.
    """
    if objective.ranks is not None:
        raise ValueError('saddles must be "stay" for a Sharded objective, got "leave"')
    rounds: list[Result] = []
    start = x0
    with Interrupt() as interrupt:
        interrupt.hold()  # results must not be lost between two rounds
        while True:
            of_round = _settings_of_round(settings, rounds, objective.samples)
            result = solve(start, of_round)
            if rounds and not result.value <= rounds[-1].value:
                return _above_the_saddle(rounds, result)
            limits = shares(settings.limits, [*rounds, result], objective.samples, 1)
            counted = CountedObjective(objective, limits, interrupt.requested)
            way = _way_out(counted, signature, result, limits, of_round.folder)
            rounds.append(_with(result, way))
            if way.X is None or len(rounds) == MOST_ROUNDS:
                return _ended(rounds, way)
            start = like_input(way.X, result.x)


def doubted(result: Result, objective: AbstractObjective, tolerance: float) -> Result:
    """The result; if the run ended at its start because that is critical, the message says so.

    There is no doubt if f is constant, or is a convex quadratic without a slope in any direction.
    """
    level = tolerance * result.gradient_scale
    ended_at_start = result.success and result.iterations == 0 and result.gradient_norm <= level
    if not ended_at_start or objective.constant or _is_least(result.x, objective, level):
        return result
    doubt = "the start is a critical point; jorth.hessian_check tells whether it is a minimum"
    return replace(result, message=f"{result.message}; {doubt}")


def _is_least(x: Any, objective: AbstractObjective, level: float) -> bool:
    """Whether no matrix at all has a lower f. Nothing is evaluated."""
    form = objective.quadratic()
    if form is None or not objective.bounded_below():
        return False
    X = tensor_after(x, "x", form.A)
    form = form.like(X)
    slope = form.second_derivative(X)
    return gradient_size(X, slope if form.C is None else slope + form.C) <= level


def descend(hessian: Hessian, S: Tensor, eigenvalue: float) -> Tensor | None:
    """The lower one of R(t J S) X and R(-t J S) X, with t halved from 1 until f falls enough.

    None if f does not fall for any t for which the curvature predicts more than rounding.
    """
    X, objective = hessian.X, hessian.objective
    size = max(abs(hessian.value), hessian.gradient_size * frobenius(X))
    t = 1.0
    while -eigenvalue * t * t > 20 * unit_roundoff(X) * size:
        K = t * hessian.signs[:, None] * S
        points = [cayley_step(turn, X).contiguous() for turn in (K, -K)]
        values = [objective.value_and_gradient(point)[0] for point in points]
        finite = [value if math.isfinite(value) else math.inf for value in values]
        if min(finite) <= hessian.value + ENOUGH * eigenvalue * t * t / 2:
            return points[finite.index(min(finite))]
        t /= 2
    return None


def _way_out(
    counted: CountedObjective,
    signature: Signature,
    result: Result,
    limits: Limits,
    folder: Path | None,
) -> Way:
    """The check at the end of a round and the step away from it, or what the folder has of them."""
    start, _ = handed_over(result, signature)
    X = point_of(counted.objective, start, signature)
    saved = None if folder is None else Folder(_exit(folder), {"end": hash_tensors("end", X)})
    if folder is not None and saved is not None and _is_left(folder):
        found = saved.open(X.device, None)
        assert found is not None
        tensors, numbers = found
        count = Evaluations(**numbers["count"])
        return Way(tensors["X"], count=count, seconds=numbers["seconds"])
    if result.status not in CHECKED:
        return Way()
    way = Way()
    counted.clock.start()
    try:
        _check_and_step(way, counted, signature, X, limits)
    except StopRun as stop:
        way.broken_off = stop.status
    except NotFinite as error:
        way.note = f"; the Hessian could not be checked: {error}"
    counted.clock.pause()
    way.count, way.seconds = counted.count, counted.clock.seconds
    if way.X is not None and saved is not None:
        saved.open(X.device, None)
        saved.save({"X": way.X}, {"count": way.count.as_dict(), "seconds": way.seconds})
    return way


def _check_and_step(
    way: Way, counted: CountedObjective, signature: Signature, X: Tensor, limits: Limits
) -> None:
    """Check the Hessian at X and step down if it has a negative eigenvalue.

    At a point whose gradient is not zero, the Hessian depends on the retraction by terms of the
    size of the gradient; less than that is not a saddle.
    """
    hessian = Hessian(counted, signature, X)
    check, S = examine(hessian)
    way.check = check
    if check.kind == "not critical":
        return
    if not check.smallest < -(check.rounding + 2 * check.gradient_norm):
        return
    if limits.max_iterations == 0:
        raise StopRun(Status.MAX_ITERATIONS)
    way.X = descend(hessian, S, check.smallest / counted.unit)


def _settings_of_round(settings: Settings, rounds: Sequence[Result], samples: int) -> Settings:
    """The settings with what the earlier rounds have left of the limits."""
    limits = shares(settings.limits, rounds, samples, 1)
    folder = settings.folder
    if folder is not None:
        folder = folder.joinpath(*(f"round-{number + 2}" for number in range(len(rounds))))
        if _is_left(folder):  # the end of this round must not move
            limits = Limits(max_iterations=0, max_time=0, max_evaluations=0)
    return replace(
        settings,
        limits=limits,
        checkpoint=folder,
        callback=with_offsets(settings.callback, rounds),
        least_scale=rounds[-1].gradient_scale if rounds else settings.least_scale,
    )


def _exit(folder: Path) -> Path:
    return folder / "exit"


def _is_left(folder: Path) -> bool:
    """Whether the saddle at the end of the round in this folder was left before."""
    return (_exit(folder) / FILE).exists()


def _with(result: Result, way: Way) -> Result:
    """The result of a round with its check, and with what that and the step away took."""
    check = way.check
    if check is not None:
        check = replace(check, direction=like_input(check.direction, result.x))
    return replace(
        result,
        hessian=check,
        iterations=result.iterations + (way.X is not None),
        evaluations=result.evaluations + way.count,
        time=result.time + way.seconds,
    )


def _joined(rounds: Sequence[Result]) -> Result:
    last = rounds[-1]
    return last if len(rounds) == 1 else replace(join(rounds), method=last.method)


def _ended(rounds: Sequence[Result], way: Way) -> Result:
    """The result of all rounds, whose message says what was left and what was found at the end."""
    result = _joined(rounds)
    left = len(rounds) - 1
    message = result.message
    status = result.status
    if way.broken_off is not None:
        status = way.broken_off
        here = "while the Hessian was checked" if way.check is None else "at a saddle"
        message = f"{status.value} {here}: before, {message}"
    if way.X is not None:
        status = Status.STALLED
        message = f"{status.value}: {MOST_ROUNDS} saddles were left, and this is another"
    elif left:
        message += f"; left {left} saddle{'s' if left > 1 else ''}"
    if way.check is not None and way.X is None:
        verdict = "a saddle" if way.broken_off else VERDICTS[way.check.kind].format(way.check)
        message += f"; the smallest Hessian eigenvalue is {way.check.smallest:.3g}, {verdict}"
    return replace(result, status=status, message=message + way.note)


def _above_the_saddle(rounds: Sequence[Result], result: Result) -> Result:
    """The last saddle, if a method that does not descend has ended above it or nowhere."""
    saddle = rounds[-1]
    ended = (Status.NON_FINITE, Status.INTERRUPTED)
    status = result.status if result.status in ended else Status.STALLED
    return replace(
        _joined([*rounds, result]),
        x=saddle.x,
        value=saddle.value,
        gradient_norm=saddle.gradient_norm,
        residual=saddle.residual,
        violation=saddle.violation,
        status=status,
        message=f"{status.value}: x is a saddle, and the run from below it ended above it",
    )
