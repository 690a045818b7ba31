"""J-JOBCD: disjoint pairs at once, one gradient per iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth._inputs import check_auto, check_choice, check_count
from jorth.group.gradient import skew_gradient
from jorth.objectives.quadratic import is_semidefinite
from jorth.plane import random_matching, tournament
from jorth.plane.pairs import rounds_in_tournament, tournament_rounds
from jorth.plane.problem import RELATIVE_THETA
from jorth.plane.rounds import CHUNK, Proposal, QuadraticRounds
from jorth.solvers.jobcd.base import PairMethod, PairState
from jorth.solvers.jobcd.sweeps import (
    Pairs,
    first_curvature,
    majorised_step,
    oriented,
    transposed_form,
)
from jorth.solvers.problem import NOT_SAVED, Problem, State, Status, StopRun, all_finite

MOMENTUM, DECAY = 0.7, 0.9
"""The weights of past slopes and squares in averages: best on probes of 1,200 rows with seed 0."""


@dataclass
class JacobiState(PairState):
    """The state of `Jacobi`."""

    pair_factor: float = 1.0
    """The factor on the exact curvatures of pairs that makes up for their interaction."""
    averaged: AveragedSteps | None = None
    exact_rounds: QuadraticRounds | None = field(default=None, metadata=NOT_SAVED)
    """Rounds on a convex quadratic f, where the exact curvature of pairs is used."""


@dataclass(frozen=True, kw_only=True)
class Jacobi(PairMethod):
    """J-JOBCD (Algorithm 2 of the paper with the full gradient), on any objective, CPU or CUDA.

    Several rounds of disjoint pairs can be run on the majoriser of one gradient. A complete
    tournament minimises it almost exactly, and needs 10 to 50 times fewer gradients than single
    random matchings. Right steps on tr(X^T A X) are the J-Jacobi method as in `GaussSeidel`: an
    iteration is one tournament, in compiled code on the CPU, and convergence is quadratic.

    Args:
        side: "left" changes rows, "right" columns; "auto" is "left", but with averaged slopes both
            in turn.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        rounds_per_gradient: 1 draws one random matching (the paper); None takes a tournament of
            all pairs on the CPU, and on a device one round, or 32 exact ones on a convex quadratic.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: "auto" backtracks, starting from what the objective knows; a number L is fixed.
            "per-plane" averages slopes over steps and turns every plane by about the same angle,
            without asking f to fall each time; "auto" does so too if the objective says that it is
            rough (a structural probe with q > 1).
        majoriser: With one round per gradient, "rows" is Q = L (Z Z^T) (x) I_2, which majorises an
            L-smooth f; "scalar" is Q = L I, the paper's sigma, which does so only for
            sigma >= L lambda_max(Z Z^T).
        accelerate: On a quadratic objective, take the exact steps on the pairs of a tournament one
            after the other, in a frame and extrapolated as in `GaussSeidel`.

    >>> sig = jorth.Signature(2, 1)
    >>> f = jorth.HyperbolicEigenvalue(np.diag([1.0, 2.0, 3.0]))
    >>> solver = jorth.Jacobi(side="right")
    >>> jorth.minimize(f, jorth.random_point(sig), signature=sig, method=solver).success
    True
    """

    side: Literal["auto", "left", "right"] = "auto"
    rounds_per_gradient: int | None = None
    curvature: float | Literal["auto", "per-plane"] = "auto"
    name = "j-jobcd"
    state_type = JacobiState
    reach = 0.5
    """sqrt(n) times the first angle of averaged steps."""
    patience = 5
    """Points without a better one before averaged steps go back to the best."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.side, "side", ("auto", "left", "right"))
        check_count(self.rounds_per_gradient, "rounds_per_gradient")
        if not (isinstance(self.curvature, str) and self.curvature == "per-plane"):
            check_auto(self.curvature, "curvature")
        count = self.rounds_per_gradient
        if self.majoriser == "scalar" and count != 1:
            raise ValueError(f"rounds_per_gradient must be 1 for a scalar majoriser, got {count}")
        tournaments = self.side != "right" and count is None and self.curvature != "per-plane"
        if self.accelerate and not tournaments:
            raise ValueError("accelerate must be False for other than left tournaments")

    def step(self, problem: Problem, state: JacobiState) -> None:
        """Take one step on a gradient, or a tournament of exact steps on a quadratic f."""
        if self.averages_slopes(problem):
            self._averaged_step(problem, state)
        else:
            super().step(problem, state)

    def sweep_pairs(self, n: int, rng: np.random.Generator | None) -> Pairs:
        return tournament(n, seed=rng).reshape(-1, 2)

    # -- majorised steps

    def plain_step(self, problem: Problem, state: JacobiState) -> None:
        """Take rounds on the majoriser of the gradient, and go there if f falls enough."""
        assert self.curvature != "per-plane"
        estimate = first_curvature(problem, state, self.curvature)
        X, G = oriented(state.X, self.side), oriented(state.gradient, self.side)
        if state.exact_rounds is not None:  # the exact curvature of each pair, times a factor
            propose = self._exact_proposal(problem, state.exact_rounds, X)
            state.pair_factor = majorised_step(
                problem, state, propose, state.pair_factor,
                side=self.side, adaptive=True, floor=1.0,
            )  # fmt: skip
            return
        rounds = self._rounds(problem, self.round_count(X))
        propose = partial(self.majorise(problem).propose, X, G, rounds=rounds)
        adaptive = self.curvature == "auto"
        state.curvature = majorised_step(
            problem, state, propose, estimate, side=self.side, adaptive=adaptive, secant=True
        )

    def _rounds(self, problem: Problem, count: int) -> Pairs:
        """Return a random matching, or the first rounds of tournaments: (count, n // 2, 2)."""
        n = problem.signature.n
        if count == 1:
            return random_matching(n, seed=problem.rng)[None]
        number = -(-count // rounds_in_tournament(n))
        tables = [tournament(n, seed=problem.rng) for _ in range(number)]
        return np.concatenate(tables)[:count]

    def round_count(self, X: Tensor, *, exact: bool = False) -> int:
        """Return the rounds per gradient; on a device exact ones are replayed in chunks of 32."""
        if self.rounds_per_gradient is not None:
            return self.rounds_per_gradient
        if X.device.type != "cpu":
            return CHUNK if exact else 1
        return rounds_in_tournament(X.shape[0])

    # -- exact curvatures on a convex quadratic

    def choose_path(self, problem: Problem, state: JacobiState) -> None:
        """Make rounds for a convex quadratic; no factor need majorise another one."""
        super().choose_path(problem, state)
        X, form = oriented(state.X, self.side), problem.objective.quadratic()
        if form is None or not self._takes_exact_rounds(X):
            return
        if all(M is None or is_semidefinite(M) for M in (form.A, form.D)):
            form, columns = transposed_form(form.like(X), self.side, X.shape[1]), X.shape[1]
            state.exact_rounds = QuadraticRounds(
                form.A, form.C, form.D, columns, torch.from_numpy(problem.signature.signs.copy()),
                all_components=self.components == "all", theta=problem.weight(self.theta),
            )  # fmt: skip

    def _takes_exact_rounds(self, X: Tensor) -> bool:
        """Check that exact rounds are asked for: several are faster on a device only."""
        exact = self.curvature == "auto" and self.majoriser == "rows"
        return exact and (X.device.type != "cpu" or self.round_count(X) == 1)

    def _exact_proposal(
        self, problem: Problem, rounds: QuadraticRounds, X: Tensor
    ) -> Callable[[float], Proposal]:
        """Return the proposal from X as a function of the factor on the curvatures of pairs.

        The gradient of each round comes from Y = X D X^T in O(n^2); f is evaluated at the end.
        """
        n, count = len(X), self.round_count(X, exact=True)
        if count == 1:
            pairs = self._rounds(problem, 1)
        else:
            length = rounds_in_tournament(n)
            drawn = [problem.rng.permutation(length) for _ in range(-(-count // length))]
            pairs = tournament_rounds(n, np.concatenate(drawn)[:count])

        def propose(factor: float) -> Proposal:
            rounds.start(X)
            rounds.run(pairs, factor)
            # the only wait for the device
            decrease, unbounded = torch.stack([rounds.decrease, rounds.unbounded.double()]).tolist()
            # only a decrease is tested: the curvature of a quadratic f is right by construction
            return Proposal(rounds.X.clone(), decrease, math.inf, count * (n // 2), bool(unbounded))

        return propose

    # -- averaged slopes

    def averages_slopes(self, problem: Problem) -> bool:
        """Check whether f has no curvature to speak of."""
        nonsmooth = problem.objective.objective.nonsmooth
        return self.curvature == "per-plane" or (self.curvature == "auto" and nonsmooth)

    def _averaged_step(self, problem: Problem, state: JacobiState) -> None:
        """Go on along averaged slopes, whether f falls or not; see `AveragedSteps`."""
        if state.averaged is None:
            angle = self.reach / math.sqrt(problem.signature.n)
            state.averaged = AveragedSteps.begin(state, angle)
        moved = self._averaged_move(problem, state, state.averaged)
        value, gradient, exact = self._evaluate(problem, state, moved)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state.move_to(moved, value, gradient)
        state.exact = exact
        if exact:
            state.averaged.keep_best(state, self.patience)

    def _averaged_move(self, problem: Problem, state: JacobiState, memory: AveragedSteps) -> Tensor:
        """Return the point after a step of a fixed ||Y X^-1 - I||, on the side whose turn it is."""
        square = state.X.shape[0] == state.X.shape[1]
        in_turn = self.side == "auto" and square and memory.turn % 2 == 1
        side = "right" if self.side == "right" or in_turn else "left"
        memory.turn += 1
        X, G = oriented(state.X, side), oriented(state.gradient, side)
        signs = problem.signs
        H = signs[:, None] * memory.direction(skew_gradient(X, G, signs), side)
        rounds = self._rounds(problem, self.rounds_per_gradient or rounds_in_tournament(len(X)))
        theta = -RELATIVE_THETA if self.theta is None else float(self.theta)
        majoriser = replace(self.majorise(problem), theta=theta)  # slopes here have no units
        moved = majoriser.relative_rounds(X[None], H[None], 1 / memory.angle, rounds)[0]
        problem.objective.count.pair_updates += rounds.size // 2
        if not bool(torch.isfinite(moved).all()):
            raise StopRun(Status.NON_FINITE)
        return oriented(moved, side)

    def _evaluate(
        self, problem: Problem, state: JacobiState, X: Tensor
    ) -> tuple[float, Tensor, bool]:
        """Return value and gradient after an averaged step, and whether they are exact."""
        return *problem.objective.value_and_gradient(X), True

    def choose_result(self, state: JacobiState, last: State) -> State:
        """Return the best point of averaged steps, unless the last one is as good."""
        averaged = state.averaged
        if averaged is None or not averaged.best < last.value:
            return last
        return State(averaged.best_point, averaged.best, averaged.best_gradient)


@dataclass
class AveragedSteps:
    """What averaged steps remember: steps for a rough f, whose curvature along a step is of no use.

    Slopes S = skew(J G X^T) at a point are those of the nearest peaks, and their mean is what many
    points share. Each plane turns by about the same angle, proportional to 1 / sqrt(n), and f may
    rise for a while: after some points without a better one the run goes back to the best and
    halves the angle. Near the start f often rises before it falls: while f is within a quarter of
    its first value, the patience is four times longer, and the angle is doubled, at most twice.
    """

    angle: float
    value_at_start: float
    best: float
    best_point: Tensor
    best_gradient: Tensor
    turn: int = 0
    """The number of steps, by which sides alternate."""
    worse: int = 0
    """Scored points since the best one."""
    returns: int = 0
    """How often the run has gone back."""
    averages: dict[str, list[Any]] = field(default_factory=dict)
    """For each side the number of its steps, and the sums of slopes and of their squares."""

    @classmethod
    def begin(cls, state: State, angle: float) -> AveragedSteps:
        """Return the memory at the start, which is the best point so far."""
        return cls(angle, state.value, state.value, state.X.clone(), state.gradient.clone())

    def direction(self, S: Tensor, side: str) -> Tensor:
        """Average the slopes S of a side; return the mean over the root mean square, 0 for 0/0."""
        zero = torch.zeros_like(S, dtype=torch.float64)
        steps, mean, square = self.averages.get(side, (0, zero, zero))
        mean = mean.lerp(S.double(), 1 - MOMENTUM)
        square = square.lerp(S.double().square(), 1 - DECAY)
        self.averages[side] = [steps + 1, mean, square]
        # sums are divided by the sums of their weights, and so right from the first step
        root = (square / (1 - DECAY ** (steps + 1))).sqrt()
        direction = torch.where(root > 0, mean / (1 - MOMENTUM ** (steps + 1)) / root, 0.0)
        return direction.to(S.dtype)

    def keep_best(self, state: State, patience: int) -> None:
        """Remember the best scored point; go back to it when the patience runs out."""
        if state.value < self.best:
            self.best = state.value
            self.best_point = state.X.clone()
            self.best_gradient = state.gradient.clone()
            self.worse = 0
            return
        self.worse += 1
        start = self.value_at_start
        flat = max(state.value, start) - self.best < 0.25 * abs(start)
        if self.worse < patience * (4 if flat else 1):
            return
        self.returns += 1
        self.angle *= 2 if flat and self.returns <= 2 else 0.5
        self.worse = 0
        self.averages.clear()
        state.move_to(self.best_point, self.best, self.best_gradient.clone())
