"""Why a run has stalled, with figures and with what can be done about it."""

from __future__ import annotations

import math

import torch

from jorth._inputs import frobenius, unit_roundoff
from jorth.group.exp_log import cayley_step
from jorth.group.gradient import skew_gradient
from jorth.solvers.loop.budget import CountedObjective
from jorth.solvers.loop.record import Record
from jorth.solvers.loop.scale import gradient_size
from jorth.solvers.loop.solver import Problem, Scored

ROUNDING_LEVEL = 1e3
"""A gradient norm up to this many u ||X||^2, relative to its scale, is what rounding leaves."""
FAR = 100.0
"""From this norm of X on, it is ||X||^2 that costs the digits."""
WRONG = 0.1
"""The gradient is called wrong if slopes of f differ from it by more than this share."""
NEIGHBOUR = 0.5
"""The norm of the step to the neighbour at which the scale of the gradient is looked up."""
TINY = 1e-3
"""A scale below this share of that at the neighbour is no scale: the run began at a minimum."""
LONGER = 8.0
"""The ratio of the two steps over which slopes of f are taken."""


def rounding_level(record: Record, norm: float) -> float:
    """The gradient norm that may be rounding, in the units of f."""
    u = float(unit_roundoff(record.scored.X))
    return ROUNDING_LEVEL * u * max(norm, 1.0) ** 2 * record.scale.largest


def explain(problem: Problem, record: Record, reason: str, tolerance: float) -> str:
    """The reason for which a run stalled, where it stands, and what to do."""
    slope, norm = record.history.last("gradient_norm"), record.history.last("norm")
    scale = record.scale.largest
    share = slope / scale if scale > 0 else math.inf
    where = f"{reason}; the gradient norm {slope:.2g} is {share:.1g} of its scale"
    if not math.isfinite(share):
        return reason
    if slope <= rounding_level(record, norm):
        return f"{where}, {_at_rounding(record, norm, share)}"
    wrong = _disagreement(problem, record.scored)
    if wrong is not None:
        return f"{where}. {wrong}"
    return f"{where}, and {tolerance:.2g} was asked for. {_advice(record)}"


def _at_rounding(record: Record, norm: float, share: float) -> str:
    dtype = record.scored.X.dtype
    name = str(dtype).removeprefix("torch.")
    if norm >= FAR:
        return (
            f"which rounding in {name} explains at ||X|| = {norm:.2g}: it grows with ||X||^2. "
            "Scale the data, or start where the minimiser has a smaller norm"
        )
    better = ", and float64 goes further" if dtype == torch.float32 else ""
    return (
        f"which rounding in {name} explains: gradient_tolerance={2 * share:.0e} accepts it{better}"
    )


def _advice(record: Record) -> str:
    other = "riemannian-lbfgs" if record.method != "riemannian-lbfgs" else "accelerated-gs-jobcd"
    return f'Another method may get further: minimize(..., result.x, method="{other}")'


def _disagreement(problem: Problem, point: Scored) -> str | None:
    """Whether f has a kink at X or its gradient is wrong, if differences of f over two steps agree.

    Where rounding decides the differences, they do not agree.
    """
    objective = problem.objective
    if objective.quadratic() is not None or not _may_look(objective, 4):
        return None
    g = skew_gradient(point.X, point.gradient, problem.signs)
    slope = frobenius(g)
    step = float(unit_roundoff(point.X)) ** (1 / 3)
    (ahead, behind), longer = (
        _rates(problem, point, g / slope, length) for length in (step, LONGER * step)
    )
    if not (_alike(ahead, longer[0]) and _alike(behind, longer[1])):
        return None
    unit = objective.unit
    if not _alike(ahead, behind):
        sides = f"{ahead * unit:.2g} on one side and {behind * unit:.2g} on the other"
        return f"f is not smooth here: along its gradient it changes at the rate {sides}"
    rate = (ahead + behind) / 2
    if _alike(rate, slope):
        return None
    return (
        f"The gradient is probably wrong: along it f changes at the rate {rate * unit:.2g}, "
        f"not {slope * unit:.2g}. See jorth.objectives.check_objective"
    )


def _may_look(objective: CountedObjective, evaluations: int) -> bool:
    """Whether f may be evaluated beside X, and the limits leave so many evaluations."""
    return objective.objective.defined_everywhere and objective.has_room(evaluations)


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= WRONG * max(abs(one), abs(other))


def _rates(problem: Problem, point: Scored, S: torch.Tensor, length: float) -> tuple[float, float]:
    """The rates at which f changes along S ahead of X and behind it."""
    evaluate = problem.objective.value_and_gradient_beyond_limits
    move = length * problem.signs[:, None] * S
    ahead, behind = (evaluate(cayley_step(K, point.X).contiguous())[0] for K in (move, -move))
    return (ahead - point.value) / length, (point.value - behind) / length


def look_around(problem: Problem, record: Record) -> None:
    """Take the scale of the gradient at a neighbour of X into account, if f does not state one.

    A run that starts at a minimum sees no other gradient than rounding, and that is no scale.
    """
    objective = problem.objective
    if record.scale.stated or not _may_look(objective, 1):
        return
    X = record.scored.X
    n = len(X)
    S = torch.randn(n, n, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(X)
    S = S - S.mT
    S = S * (NEIGHBOUR / max(frobenius(S), NEIGHBOUR))
    neighbour = cayley_step(problem.signs[:, None] * S, X).contiguous()
    value, gradient = objective.value_and_gradient_beyond_limits(neighbour)
    size = gradient_size(neighbour, gradient) * objective.unit
    if math.isfinite(value) and record.scale.largest < TINY * size:
        record.scale.raise_to(size)
