"""How a run ended: one table, of which the first row that fits holds.

    after an iteration                 f is looked at                      the run ends as
    a plane has no minimiser           along all boosts (quadratics)       UNBOUNDED, NOT_ATTAINED
    the callback asks to stop                                              INTERRUPTED
    a small gradient, and ||X|| grew   at norms up to ||X|| and one more   NOT_ATTAINED
    a small gradient, all components   in all planes                       UNBOUNDED, or it goes on
    `NormAbove` is met                 at norms up to ||X||                UNBOUNDED, NOT_ATTAINED
    a criterion is met                                                     its status
    Ctrl-C was pressed                                                     INTERRUPTED
    the last iteration                                                     MAX_ITERATIONS
    ||X|| has grown beyond u^(-1/2)    at norms up to ||X||                UNBOUNDED, NOT_ATTAINED
    no progress                        at larger norms                     UNBOUNDED, NOT_ATTAINED

or else, where f tells nothing, as STALLED. As X runs away, ||X|| grows and f falls, whether f falls
without bound or approaches an infimum. The two are told apart by what is proved of a quadratic f,
and otherwise by the values of f along a curve on which ||X|| grows: the large rapidities of the
hyperbolic CS decomposition of X are scaled by t, so that ||X(t)|| = ||X||^t. Over equal steps of
log ||X|| the falls of f grow or stay (f ~ -||X||^a, f ~ -log ||X||: unbounded), or they die out
(f ~ f* + ||X||^-a: the infimum f* is approached and not attained). Falls that rounding could
explain say nothing. All of this has no units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import frobenius, unit_roundoff
from jorth.group import polish
from jorth.group.exp_log import cayley_step
from jorth.objectives import QuadraticForm
from jorth.objectives.quadratic import is_definite
from jorth.signature import Signature
from jorth.solvers.problem import Problem, State, Status, gradient_size
from jorth.solvers.result import COLUMNS, History, spectral_norm
from jorth.solvers.stationarity import lower_plane
from jorth.solvers.stopping import STALL_PATIENCE, Criterion, GradientNorm, RelativeGradient

Ending: TypeAlias = tuple[Status, str]
"""A status and the reason, which may be empty."""

LEAST_NORM = 2.0
"""Below this norm X has not gone anywhere."""
LEAST_ROOM = 4.0
"""f is looked at beyond X if ||X|| can grow at least by this factor."""
INWARD = (0.25, 0.5, 0.75, 1.0)
"""The exponents t of ||X||^t at which f is looked at on the way to X."""


@dataclass
class Termination:
    """Decide how a run ended, from its problem and its history."""

    problem: Problem
    history: History
    criteria: tuple[Criterion, ...]
    all_components: bool
    """Whether steps may lead to other components."""
    leads_on: tuple[Tensor, float, Tensor] | None = None
    """A point in another component or over a rise, f and its gradient there, for the next step."""

    def ending(self, state: State, *, asked: bool) -> Ending | None:
        """Return why the run ends after its last iteration, or None: the table, row by row."""
        problem, history, self.leads_on = self.problem, self.history, None
        if state.unbounded:
            return self._plane_without_minimiser(state.X)
        if asked:
            return Status.INTERRUPTED, "the callback asked to stop"
        for criterion in self.criteria:
            if criterion.met(history):
                return self._met(criterion, state)
        if problem.objective.limit_reached() is Status.INTERRUPTED:
            return Status.INTERRUPTED, ""
        most = problem.objective.limits.max_iterations
        if most is not None and history.iteration >= most:
            return Status.MAX_ITERATIONS, ""
        norm, u = history.norms_of_point.of_x, unit_roundoff(state.X)
        scored = state.exact and history.scored_at == history.iteration > 0
        if problem.stop_unbounded and scored and norm > u**-0.5:
            grown = norm > 10 * history.rows[0][COLUMNS.index("norm")]
            if grown and history.value < history.last("value", 2):
                reason = "||X|| has grown beyond u^(-1/2), where feasibility has no digits left"
                return self._divergence() or (Status.STALLED, reason)
        idle = history.improvement.idle >= STALL_PATIENCE
        if not (state.exact and (state.stalled or idle)):
            return None
        self._look_for_scale()
        if self.criteria[0].met(history):  # relative to that scale
            return self._met(self.criteria[0], state)
        found = None
        if norm >= LEAST_NORM and self._is_rounding(norm):
            found = self._small_gradient()
        elif norm >= LEAST_NORM:
            ratio = math.log(u**-0.5) / math.log(norm)
            beyond = [1 + (ratio - 1) * step / 3 for step in range(4)]
            found = self._divergence(INWARD if ratio < 1.25 else beyond)
        patience = f"{STALL_PATIENCE} iterations without a better value or gradient norm"
        return found or (Status.STALLED, self._explain_stall(patience if idle else state.reason))

    # -- the rows of the table

    def _plane_without_minimiser(self, X: Tensor) -> Ending:
        """Return the ending of a run in which some pair has no best step at X."""
        form, far = self.problem.objective.quadratic(), X.double()
        proof = falls = levels_off = None
        if form is not None:
            proof = prove(form, self.problem.signature)
            scale, signs = self.problem.objective.gradient_scale, self.problem.signs.double()
            falls, levels_off = boost_ends(form.like(far), far, signs, scale, self.all_components)
        if proof == "unbounded" or (falls and proof is None):
            return Status.UNBOUNDED, "along a boost f falls without bound"
        if levels_off and not falls:
            return Status.NOT_ATTAINED, "along a boost f levels off and never rises again"
        # only the surrogate has none, or rounding hides the minimiser
        stalled = Status.STALLED, "the surrogate of f has no minimiser in some plane"
        return self._divergence(X=X) or stalled

    def _met(self, criterion: Criterion, state: State) -> Ending | None:
        """Return the ending by a criterion, unless X runs away or a plane leads on.

        A critical point is not block stationary if f is lower in a plane, where all components are
        allowed: the next step leads there.
        """
        reason, history = criterion.explain(self.history), self.history
        found = None
        if state.exact and isinstance(criterion, (GradientNorm, RelativeGradient)):
            if history.norms_of_point.of_x >= LEAST_NORM:
                found = self._small_gradient()
            if found is None and self.all_components:
                self.leads_on, unbounded = lower_plane(self.problem, state)
                if unbounded:
                    found = self._plane_without_minimiser(state.X)
                elif self.leads_on is not None:
                    return None
            if history.iteration == 0:
                hint = "jorth.hessian_check tells whether it is a minimum"
                reason += f"; the start is a critical point; {hint}"
        elif state.exact and criterion.status is Status.STALLED:  # the norm alone
            found = self._divergence()
        if found is not None:
            return found[0], f"{found[1]}; {reason}"
        if criterion.status is Status.STALLED:
            reason += ", and the values of f do not show what happens beyond"
        return criterion.status, reason

    def _divergence(
        self, exponents: Sequence[float] = INWARD, X: Tensor | None = None
    ) -> Ending | None:
        """Return UNBOUNDED or NOT_ATTAINED by a proof, or by f where ||X(t)|| = ||X||^t."""
        problem, X = self.problem, self.history.point.X if X is None else X
        form = problem.objective.quadratic()
        proof = None if form is None else prove(form, problem.signature)
        if proof == "unbounded":
            reason = "A - mu J has a negative eigenvalue for every mu, so f falls without bound"
            return Status.UNBOUNDED, f"{reason} along some boost"
        curve = None
        if not (problem.compact or proof == "attained"):
            curve = self._curve(X, exponents)
        status = None if curve is None else curve.classify()
        bounded = problem.bounded or proof == "bounded"
        if curve is None or status is None or (bounded and status is Status.UNBOUNDED):
            return None
        falls = [problem.objective.unit * fall for fall in curve.falls]
        a, b, c, d = (f"{norm:.2g}" for norm in (*curve.norms[:2], *curve.norms[-2:]))
        reason = f"f falls by {falls[0]:.2g} as ||X|| grows from {a} to {b}"
        reason += f", and by {falls[-1]:.2g} from {c} to {d}"
        if status is Status.UNBOUNDED and falls[-1] < 2 * falls[-2]:  # as a logarithm does
            reason += "; so slow a fall may also lead to an infimum far away"
        return status, reason

    def _small_gradient(self) -> Ending | None:
        """Return NOT_ATTAINED if ||X|| grew as the gradient fell to 1e-3 of it, and f falls on."""
        norm = self.history.norms_of_point.of_x
        if len(self.history.rows) < 2 or self.problem.compact:
            return None
        _, _, _, slopes, _, norms = np.array(self.history.rows).T[:6]
        near = np.fmin.accumulate(slopes) <= 1e3 * slopes[-1]
        before = max(int(near.argmax()) - 1, 0)
        if not norm >= 1.05 * norms[before]:
            return None
        found = self._divergence(with_one_beyond(norm, unit_roundoff(self.history.point.X)))
        return found if found is not None and found[0] is Status.NOT_ATTAINED else None

    def _explain_stall(self, reason: str) -> str:
        """Return the reason for which a run stalled, where it stands, and what to do."""
        slope, norm = self.history.last("gradient_norm"), self.history.last("norm")
        share = slope / (self.problem.objective.scale or math.nan)
        if not math.isfinite(share):
            return reason
        where = f"{reason}; the gradient norm {slope:.2g} is {share:.1g} of its scale"
        if not self._is_rounding(norm):
            remedy = "jorth.objectives.check_objective finds wrong gradients and kinks"
            return f"{where}; another method may get further from x0=result.x; {remedy}"
        dtype = str(self.history.point.X.dtype).removeprefix("torch.")
        where += f", which rounding in {dtype} explains"
        if norm >= 100:
            remedy = "scale the data, or start where the minimiser has a smaller norm"
            return f"{where} at ||X|| = {norm:.2g}: {remedy}"
        better = ", and float64 goes further" if dtype == "float32" else ""
        return f"{where}: gradient_tolerance={2 * share:.0e} accepts it{better}"

    def _look_for_scale(self) -> None:
        """Take the scale of the gradient from a neighbour, if the run began at a minimum."""
        objective = self.problem.objective
        known = objective.scale_is_known or not objective.objective.defined_everywhere
        if known or objective.limit_reached() is not None:
            return
        X = self.history.point.X
        random = torch.Generator().manual_seed(0)
        S = torch.randn(len(X), len(X), generator=random, dtype=torch.float64).to(X)
        S = S - S.mT
        S = S * (0.5 / max(frobenius(S), 0.5))
        neighbour = cayley_step(self.problem.signs[:, None] * S, X).contiguous()
        value, gradient = objective.value_and_gradient(neighbour, limited=False)
        size = gradient_size(neighbour, gradient, spectral_norm(neighbour)) * objective.unit
        if math.isfinite(value) and 1e3 * objective.scale < size < math.inf:
            self.history.gradient_scale = objective.scale = size

    # -- what they look at

    def _is_rounding(self, norm: float) -> bool:
        """Return whether rounding explains the gradient norm: it is at most 1e3 u ||X||^2."""
        u = unit_roundoff(self.history.point.X)
        level = 1e3 * u * max(norm, 1.0) ** 2 * self.problem.objective.scale
        return self.history.last("gradient_norm") <= level

    def _curve(self, X: Tensor, exponents: Sequence[float]) -> Curve | None:
        """Return f along the curve through X, or along the run, if it may say something."""
        objective = self.problem.objective
        if objective.objective.nonsmooth or spectral_norm(X) < LEAST_NORM:
            return None
        affordable = objective.limit_reached(3 * len(exponents)) is None
        if objective.objective.defined_everywhere and affordable:

            def evaluate(point: Tensor) -> float:
                return objective.value_and_gradient(point, limited=False)[0]

            curve = Curve.through(X, self.problem.signature, exponents, evaluate)
            if curve is not None:
                return curve
        _, _, values, _, _, norms = np.array(self.history.rows).T[:6]
        values = values / objective.unit
        if not norms[-1] >= LEAST_NORM:
            return None
        rows = [int((norms >= norms[-1] ** t * (1 - 1e-9)).argmax()) for t in INWARD]
        if len(set(rows)) < len(rows):
            return None
        size = np.maximum(abs(values[rows]), objective.gradient_scale * norms[rows] ** 2)
        rounding = torch.finfo(X.dtype).eps * size
        return Curve(norms[rows].tolist(), values[rows].tolist(), rounding.tolist())


class Curve(NamedTuple):
    """Values of f over equal steps of log ||X||, and how much of them may be rounding."""

    norms: list[float]
    values: list[float]
    rounding: list[float]

    @classmethod
    def through(
        cls,
        X: Tensor,
        signature: Signature,
        exponents: Sequence[float],
        evaluate: Callable[[Tensor], float],
    ) -> Curve | None:
        """Return f where ||X(t)|| = ||X||^t, unless X is thin or has lost its digits.

        The rapidities of X of at least a quarter of the largest are multiplied by t, so that the
        points are feasible to rounding. The rounding of f is a multiple of its change when every
        entry of X is rounded differently.
        """
        if X.shape[0] != X.shape[1]:
            return None
        from jorth.linalg.cs import cs_decomposition

        try:
            exact = X.detach().double()
            if X.dtype != torch.float64:
                exact = polish(exact, signature)
            cs = cs_decomposition(exact, signature)
        except ValueError:
            return None
        large = cs.mu >= cs.mu[0] / 4  # the others stay below all these norms
        eps = torch.finfo(X.dtype).eps
        signs = torch.randint(0, 2, X.shape, generator=torch.Generator().manual_seed(0))
        moves = eps * (2 * signs - 1).to(X)
        curve = cls([], [], [])
        for t in exponents:
            point = replace(cs, mu=torch.where(large, t * cs.mu, cs.mu)).compose().to(X)
            value, *nearby = (evaluate(point * (1 + side * moves)) for side in (0, 1, -1))
            curve.norms.append(float(torch.linalg.matrix_norm(point, ord=2)))
            curve.values.append(value)
            curve.rounding.append(4 * max(abs(near - value) for near in nearby) + eps * abs(value))
        return curve

    @property
    def falls(self) -> list[float]:
        return [before - after for before, after in pairwise(self.values)]

    def classify(self) -> Status | None:
        """Return UNBOUNDED or NOT_ATTAINED, or None if f rises or its falls may be rounding."""
        falls, noise = self.falls, [one + other for one, other in pairwise(self.rounding)]
        if not all(map(math.isfinite, falls)):
            return None
        if any(fall < -level for fall, level in zip(falls, noise, strict=True)):
            return None
        if falls[-1] > noise[-1] and falls[-1] >= 0.5 * max(falls):
            return Status.UNBOUNDED
        clear = all(fall > level for fall, level in zip(falls[:2], noise[:2], strict=True))
        dying = all(
            after <= 0.5 * before + level
            for (before, after), level in zip(pairwise(falls), noise[1:], strict=True)
        )
        # near a minimum f rises by as much as it fell before: rounding must not hide that
        visible = all(level <= before for before, level in zip(falls, noise[1:], strict=False))
        return Status.NOT_ATTAINED if clear and dying and visible else None


def with_one_beyond(norm: float, u: float) -> tuple[float, ...]:
    """Return `INWARD`, and an exponent above 1, where a minimum shows, unless X is far out."""
    room = u**-0.5 / norm
    if room < LEAST_ROOM:
        return INWARD
    return *INWARD, 1 + min(0.25, math.log(room) / math.log(norm))


# -- what can be proved of a quadratic


Proof = Literal["attained", "bounded", "unbounded"]
"""f grows with ||X|| in every direction and has a minimum; f is bounded below; f falls for ever."""


def prove(form: QuadraticForm, signature: Signature) -> Proof | None:
    """Return what the pencil A - mu J tells about f = 1/2 tr(X^T A X D) + <C, X>, if anything.

    X^T J X is fixed, so that A can be replaced by A - mu J. If this is positive definite for some
    mu, f grows with ||X||^2. If it is semidefinite for no mu, there is a null vector x, x^T J x =
    0, with x^T A x < 0, and f falls like -e^(2 mu) along a boost. For an indefinite D nothing is
    known.
    """
    if signature.p == 0 or signature.q == 0:
        return "attained"
    D = form.D
    sign = 1 if D is None else next((sign for sign in (1, -1) if is_definite(sign * D)), 0)
    if sign == 0:
        return None
    from jorth.linalg.eigh import is_definite_pencil

    A = sign * form.A.detach().double().cpu()
    size = frobenius(A)
    if size == 0:
        return "bounded" if form.C is None else None
    A = A / size
    unit = torch.eye(len(A), dtype=A.dtype)
    rounding = 16 * torch.finfo(form.A.dtype).eps

    def definite(shift: float) -> bool:
        return is_definite_pencil((A + shift * unit).numpy(), signature.signs)

    if definite(-rounding):
        return "attained"
    if not definite(max(1e-10, rounding)):  # x^T A x is clearly negative
        return "unbounded"
    return "bounded" if form.C is None and definite(rounding) else None


def boost_ends(
    form: QuadraticForm, X: Tensor, signs: Tensor, scale: float, all_components: bool
) -> tuple[bool, bool]:
    """Return whether f falls without bound along some boost of two rows, and whether it levels off.

    Along a boost f is A u + B / u + C u^2 + D / u^2 + const. It falls for u > 0 or, if all
    components are allowed, for any u, and after a change of sign of the first row of a pair.
    ``scale`` is the size of the terms of the gradient.
    """
    pairs = torch.cartesian_prod(*((signs == sign).nonzero()[:, 0] for sign in (1, -1)))
    i, j = pairs[:, 0], pairs[:, 1]
    A, XD = form.A, X if form.D is None else X @ form.D
    G = A @ XD if form.C is None else A @ XD + form.C
    a, b, c = A[i, i, None], A[i, j, None], A[j, j, None]
    rest_i, rest_j = G[i] - a * XD[i] - b * XD[j], G[j] - b * XD[i] - c * XD[j]
    size = scale * float(X.square().sum(1).max()) * len(X)
    noise = 4 * torch.finfo(X.dtype).eps * size
    falls = levels_off = False
    for side in (1.0, -1.0) if all_components else (1.0,):
        flat = []
        for turn in (1.0, -1.0):  # u and 1 / u
            half, half_d = (X[i] + turn * X[j]) / 2, (XD[i] + turn * XD[j]) / 2
            square = ((a + 2 * side * turn * b + c) * half * half_d).sum(1) / 2
            linear = ((side * rest_i + turn * rest_j) * half).sum(1)
            fall = abs(linear) if all_components else -linear
            falls |= bool(((square < -noise) | ((square <= noise) & (fall > noise))).any())
            flat.append((abs(linear) <= noise) & (abs(square) <= noise))
        levels_off |= bool((flat[0] ^ flat[1]).any())
    return falls, levels_off
