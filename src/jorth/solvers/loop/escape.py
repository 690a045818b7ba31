"""X runs away: does f fall without bound, or does it only approach an infimum?

A run sees ||X|| grow and f fall, which both of them do. They are told apart by what is proved of a
quadratic f, and otherwise by the values of f along a curve on which ||X|| grows: the large
rapidities of the hyperbolic CS decomposition of X are scaled by t, so that ||X(t)|| = ||X||^t. Over
equal steps of log ||X|| the falls of f grow or stay (f ~ -||X||^a, f ~ -log ||X||: unbounded), or
they die out (f ~ f* + ||X||^-a: the infimum f* is approached and not attained). Falls that rounding
could explain say nothing. All of this has no units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group import polish
from jorth.group.elements import spectral_norm
from jorth.signature import Signature
from jorth.solvers.loop.boundedness import Proof, planes, prove
from jorth.solvers.loop.record import Record
from jorth.solvers.loop.solver import AbstractSolver, Problem, State
from jorth.solvers.loop.stalls import rounding_level
from jorth.solvers.loop.status import Status

DYING = 0.5
"""f levels off if each fall is at most this share of the one before."""
LASTING = 0.5
"""f falls on and on if the last fall is at least this share of the largest."""
SLOW = 2.0
"""A last fall below this multiple of the one before may be a logarithm, or end after all."""
LEAST_NORM = 2.0
"""Below this norm X has not gone anywhere."""
LEAST_ROOM = 4.0
"""f is looked at beyond X if ||X|| can grow at least by this factor."""
NEARLY = 1e3
GROWTH = 1.05
"""The growth of ||X||, since the gradient was ``NEARLY`` times larger, that is worth a look."""
NOISE = 4.0
"""The rounding of f is taken as this multiple of its change when X is rounded differently."""

Verdict = tuple[Status, str]


@dataclass(frozen=True)
class Levels:
    """Values of f at growing norms, over equal steps of the logarithm, and their rounding."""

    norms: Sequence[float]
    values: Sequence[float]
    rounding: Sequence[float]

    def falls(self) -> list[float]:
        return [before - after for before, after in pairwise(self.values)]

    def _noise(self) -> list[float]:
        return [before + after for before, after in pairwise(self.rounding)]

    def status(self) -> Status | None:
        """UNBOUNDED, NOT_ATTAINED, or None if f rises on the way or rounding hides the answer."""
        falls, noise = self.falls(), self._noise()
        if not all(map(math.isfinite, falls)):
            return None
        if any(fall < -level for fall, level in zip(falls, noise, strict=True)):
            return None
        if falls[-1] > noise[-1] and falls[-1] >= LASTING * max(falls):
            return Status.UNBOUNDED
        clear = all(fall > level for fall, level in zip(falls[:2], noise[:2], strict=True))
        dying = all(
            after <= DYING * before + level
            for (before, after), level in zip(pairwise(falls), noise[1:], strict=True)
        )
        # near a minimum f rises by as much as it fell before: rounding must not hide that
        seen = all(level <= before for before, level in zip(falls, noise[1:], strict=False))
        return Status.NOT_ATTAINED if clear and dying and seen else None

    def explain(self, unit: float) -> str:
        """The figures in the units of f."""
        falls = self.falls()
        first, last = (f"{unit * fall:.2g}" for fall in (falls[0], falls[-1]))
        norms = [f"{norm:.2g}" for norm in self.norms]
        early, late = f"{norms[0]} to {norms[1]}", f"{norms[-2]} to {norms[-1]}"
        text = f"f falls by {first} as ||X|| grows from {early}, and by {last} from {late}"
        if self.status() is Status.UNBOUNDED and falls[-1] < SLOW * falls[-2]:
            text += "; so slow a fall may also lead to an infimum far away"
        return text


def runs_away(norms: NDArray[np.float64], slopes: NDArray[np.float64]) -> bool:
    """Whether ||X|| still grew clearly while the gradient norm fell to a thousandth."""
    if len(norms) < 2 or not norms[-1] >= LEAST_NORM:
        return False
    near = np.fmin.accumulate(slopes) <= NEARLY * slopes[-1]
    before = norms[max(int(near.argmax()) - 1, 0)]
    return bool(norms[-1] >= GROWTH * before)


class Escape:
    """Finds out how f behaves as ||X|| grows, for a run that is about to end."""

    def __init__(self, problem: Problem, solver: AbstractSolver, record: Record) -> None:
        self._problem = problem
        self._solver = solver
        self._record = record

    def in_a_plane(self, state: State) -> Verdict:
        """For a plane problem without a minimiser, on which a solver stopped."""
        form = self._problem.objective.quadratic()
        if form is None:  # only the surrogate is known to have none
            found = self.far_out(state.X)
            return found or (Status.STALLED, "the surrogate of f has no minimiser in some plane")
        X, signs = state.X.double(), self._problem.signs.double()
        same = form.like(X)
        anywhere = getattr(self._solver, "components", "start") == "all"
        classes = [planes(same, X, signs, flip=flip) for flip in (False, True)[: 1 + anywhere]]
        falls = any(plane.falls_without_bound(all_components=anywhere) for plane in classes)
        falls = falls or prove(form, self._problem.signature) is Proof.UNBOUNDED
        if not falls and any(plane.levels_off() for plane in classes):
            return Status.NOT_ATTAINED, "along a boost f levels off and never turns up again"
        return Status.UNBOUNDED, "along a boost f falls without end"

    def converged(self) -> Verdict | None:
        """For a small gradient: NOT_ATTAINED if f goes on falling as ||X|| grows further."""
        if self._problem.compact or not self._runs_away():
            return None
        exponents = [0.25, 0.5, 0.75, 1.0]
        room = self._limit(self._record.scored.X) / self._norm()
        if room >= LEAST_ROOM:  # at a minimum f rises there
            exponents.append(1 + min(0.25, math.log(room) / math.log(self._norm())))
        found = self._judge(self._record.scored.X, exponents)
        return found if found is not None and found[0] is Status.NOT_ATTAINED else None

    def far_out(self, X: Tensor | None = None) -> Verdict | None:
        """For a large ||X||: what the proof or the values on the way back say."""
        return self._judge(self._record.scored.X if X is None else X, [0.25, 0.5, 0.75, 1.0])

    def stalled(self) -> Verdict | None:
        """For a run that got stuck: what the values further out say, unless rounding stopped it."""
        norm, slope = self._norm(), self._record.history.last("gradient_norm")
        X = self._record.scored.X
        if not norm >= LEAST_NORM:
            return None
        if slope <= rounding_level(self._record, norm):
            return self.converged()
        ratio = math.log(self._limit(X)) / math.log(norm)
        if ratio < 1.25:
            return self.far_out()
        return self._judge(X, [1 + (ratio - 1) * step / 3 for step in range(4)])

    def _judge(self, X: Tensor, exponents: list[float]) -> Verdict | None:
        if self._problem.compact:
            return None
        proof = self._proof()
        if proof is Proof.UNBOUNDED:
            reason = "A - mu J has a negative eigenvalue for every mu"
            return Status.UNBOUNDED, f"{reason}, so that f falls without end along some boost"
        levels = None if proof is Proof.ATTAINED else self._levels(X, exponents)
        status = None if levels is None else levels.status()
        bounded = self._problem.bounded or proof is Proof.BOUNDED
        if levels is None or status is None or (bounded and status is Status.UNBOUNDED):
            return None
        return status, levels.explain(self._problem.objective.unit)

    def _norm(self) -> float:
        """||X|| of the point that the run would return, to one per cent."""
        if self._record.feasible:
            return self._record.history.last("norm")
        return spectral_norm(self._record.scored.X)

    def _runs_away(self) -> bool:
        columns = self._record.history.arrays()
        norms = columns["norm"]
        norms[-1] = self._norm()
        return runs_away(norms, columns["gradient_norm"])

    def _proof(self) -> Proof | None:
        form = self._problem.objective.quadratic()
        return None if form is None else prove(form, self._problem.signature)

    def _limit(self, X: Tensor) -> float:
        """u^(-1/2), beyond which feasibility has no digits left."""
        return 1 / math.sqrt(unit_roundoff(X))

    def _levels(self, X: Tensor, exponents: list[float]) -> Levels | None:
        """f along the curve through X, or else along the run; None if it is not known."""
        objective = self._problem.objective.objective
        if objective.nonsmooth or spectral_norm(X) < LEAST_NORM:  # the values say nothing
            return None
        points = None
        if objective.defined_everywhere and self._problem.objective.has_room(3 * len(exponents)):
            points = stretched(X, self._problem.signature, exponents)
        if points is None:
            return self._levels_of_the_run(X)
        found = [self._value_and_rounding(point) for point in points]
        values, rounding = zip(*found, strict=True)
        norms = [float(torch.linalg.matrix_norm(point, ord=2)) for point in points]
        return Levels(norms, values, rounding)

    def _value_and_rounding(self, X: Tensor) -> tuple[float, float]:
        """f at X and how much of it may be rounding, in the unit of the run."""
        evaluate = self._problem.objective.value_and_gradient_beyond_limits
        eps = torch.finfo(X.dtype).eps
        signs = torch.randint(0, 2, X.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
        moves = eps * signs.to(X)
        value, *nearby = (evaluate(X * (1 + side * moves))[0] for side in (0, 1, -1))
        return value, NOISE * max(abs(near - value) for near in nearby) + eps * abs(value)

    def _levels_of_the_run(self, X: Tensor) -> Levels | None:
        """The rows of the history next to four norms at equal steps of the logarithm."""
        columns = self._record.history.arrays()
        norms, values = columns["norm"], columns["value"] / self._problem.objective.unit
        last = float(norms[-1])
        if not last >= LEAST_NORM:
            return None
        rows = [int((norms >= last**t * (1 - 1e-9)).argmax()) for t in (0.25, 0.5, 0.75, 1.0)]
        if len(set(rows)) < len(rows):
            return None
        eps = torch.finfo(X.dtype).eps
        scale = self._record.scale.size
        rounding = [eps * max(abs(values[row]), scale * norms[row] ** 2) for row in rows]
        picked = [[float(column[row]) for row in rows] for column in (norms, values)]
        return Levels(picked[0], picked[1], rounding)


def stretched(X: Tensor, signature: Signature, exponents: Sequence[float]) -> list[Tensor] | None:
    """X with its rapidities of at least a quarter of the largest multiplied by each number.

    ||X||_2 = e^mu becomes e^(t mu), and the points are feasible to rounding. There are none if X
    is thin or has lost its digits.
    """
    if X.shape[0] != X.shape[1]:
        return None
    from jorth.linalg.cs import cs_decomposition

    try:
        exact = X.detach().double()
        if X.dtype != torch.float64:
            exact = polish(exact, signature)
        cs = cs_decomposition(exact, signature)
        large = cs.mu >= cs.mu[0] / 4  # the others stay below all these norms
        longer = [replace(cs, mu=torch.where(large, t * cs.mu, cs.mu)) for t in exponents]
        return [factors.compose().to(X) for factors in longer]
    except ValueError:
        return None
