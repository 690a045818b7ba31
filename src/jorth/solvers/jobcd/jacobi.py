"""J-JOBCD: disjoint pairs at once, one gradient per iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import check_auto, check_choice, check_count, check_theta, real_number
from jorth.group.gradient import skew_gradient
from jorth.objectives import QuadraticForm
from jorth.plane import greedy_matching, random_matching, tournament
from jorth.plane.pairs import MATCHINGS, Matching, rounds_in_tournament, shuffled_tournament
from jorth.plane.problem import RELATIVE_THETA
from jorth.plane.rounds import CHUNK, Majoriser, QuadraticRounds
from jorth.solvers.jobcd.averaged_steps import AveragedSteps, AveragingRule
from jorth.solvers.jobcd.diagonalisation import Trace, rotate_rounds, trace_to_diagonalise
from jorth.solvers.jobcd.majorised import (
    MajorisedState,
    compile_kernels,
    exact_rounds,
    first_curvature,
    majorised_step,
)
from jorth.solvers.jobcd.quadratic_sweeps import oriented, transposed_form
from jorth.solvers.problem import AbstractSolver, Problem, State, Status, StopRun, all_finite

Side = Literal["auto", "left", "right", "both"]
MOMENTUM = 0.7
DECAY = 0.9
RETURN_PATIENCE = 5
"""The `AveragingRule` that was best on probes of 1,200 rows with seed 0."""
REACH = 0.5
"""sqrt(n) times the first angle, found on sparse and on Gaussian rows with n from 4 to 100."""


@dataclass
class ExactForm:
    """A convex quadratic form in the matrix whose rows change, and its rounds on a device."""

    form: QuadraticForm
    rounds: QuadraticRounds | None = None


@dataclass
class JacobiState(MajorisedState):
    """The state of `Jacobi`."""

    turn: int = 0
    """The number of steps, by which sides alternate."""
    round: int = 0
    """The number of single rounds taken from the tournament."""
    pair_factor: float = 1.0
    """The factor on the exact curvatures of pairs that makes up for their interaction."""
    averaged: AveragedSteps | None = None
    trace: Trace | None = field(default=None, metadata=NOT_SAVED)
    exact_forms: dict[str, ExactForm | None] = field(default_factory=dict, metadata=NOT_SAVED)
    """For each side the form, or None if there is none."""


@dataclass(frozen=True, kw_only=True)
class Jacobi(AbstractSolver):
    """J-JOBCD (Algorithm 2 of the paper with the full gradient), on any objective, CPU or CUDA.

    Several rounds of disjoint pairs can be run on the majoriser of one gradient. A complete
    tournament minimises it almost exactly, and needs 10 to 50 times fewer gradients than single
    random matchings. Right steps on tr(X^T A X) are the J-Jacobi method, where disjoint pairs do
    not interact: an iteration is one tournament, and convergence is quadratic.

    Args:
        side: "left" changes rows, "right" columns, "both" alternates; "auto" is "left", or "both"
            with averaged slopes.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        matching: The pairs of a single round per gradient: "random" (the paper), "tournament", or
            "greedy", by the slopes.
        rounds_per_gradient: A number; None takes a tournament of all pairs on the CPU, and on a
            device one round, or 32 exact ones on a convex quadratic.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: "auto" backtracks, starting from what the objective knows; a number L is fixed.
            "per-plane" averages slopes over steps and turns every plane by about the same angle,
            without asking f to fall each time; "auto" does so too if the objective says that it is
            rough (a structural probe with q > 1).
        angle: The first angle of "per-plane"; None takes 0.5 / sqrt(n). It is halved when the run
            goes back to the best point, but doubled at first if f is still flat there.
        majoriser: With one round per gradient, "rows" is Q = L (Z Z^T) (x) I_2, which majorises an
            L-smooth f; "scalar" is Q = L I, the paper's sigma, which does so only for
            sigma >= L lambda_max(Z Z^T).
    """

    side: Side = "auto"
    components: Literal["start", "all"] = "start"
    matching: Matching = "random"
    rounds_per_gradient: int | None = None
    theta: float | None = None
    curvature: float | Literal["auto", "per-plane"] = "auto"
    angle: float | None = None
    majoriser: Literal["rows", "scalar"] = "rows"
    name = "j-jobcd"
    state_type = JacobiState

    def __post_init__(self) -> None:
        check_choice(self.side, "side", ("auto", "left", "right", "both"))
        check_choice(self.components, "components", ("start", "all"))
        check_choice(self.matching, "matching", MATCHINGS)
        check_count(self.rounds_per_gradient, "rounds_per_gradient")
        check_theta(self.theta)
        if not (isinstance(self.curvature, str) and self.curvature == "per-plane"):
            check_auto(self.curvature, "curvature")
        if self.angle is not None:
            real_number(self.angle, "angle", "a number in (0, 1] or None", lambda a: 0 < a <= 1)
        check_choice(self.majoriser, "majoriser", ("rows", "scalar"))
        count = self.rounds_per_gradient
        if self.majoriser == "scalar" and count != 1:
            raise ValueError(f"rounds_per_gradient must be 1 for a scalar majoriser, got {count}")

    def prepare(self) -> None:
        compile_kernels("majoriser", "trace")

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        compile_kernels("majoriser")
        if self.side != "left" and problem.objective.quadratic() is not None:
            compile_kernels("trace")

    def step(self, problem: Problem, state: JacobiState) -> None:
        """One step on a gradient, or a tournament of the J-Jacobi method, which needs none."""
        if self.averages_slopes(problem):
            self._averaged_step(problem, state)
            return
        side = self._next_side(state)
        if side == "right" and state.trace is None:
            state.trace = trace_to_diagonalise(problem, state.X, self.theta)
        if side == "right" and state.trace is not None:
            rounds = shuffled_tournament(problem.signature.n, problem.rng)
            rotate_rounds(problem, state, state.trace, rounds)
            return
        estimate = first_curvature(problem, state, self._fixed_or_auto)
        exact = self._exact_form(problem, state, side)
        if exact is not None:
            self._exact_step(problem, state, exact, side)
            return
        X, G = oriented(state.X, side), oriented(state.gradient, side)
        rounds = self._choose(problem, state, X, G, self.round_count(X))
        propose = partial(self._majoriser(problem).propose, X, G, rounds=rounds)
        adaptive = self.curvature == "auto"
        state.curvature = majorised_step(
            problem, state, propose, estimate, side=side, adaptive=adaptive, secant=True
        )

    def _exact_step(
        self, problem: Problem, state: JacobiState, exact: ExactForm, side: str
    ) -> None:
        """A step with the exact curvature of each pair times ``pair_factor``."""
        X, G = oriented(state.X, side), oriented(state.gradient, side)
        form = exact.form
        majoriser = self._majoriser(problem, form.A, form.D)
        count = self.round_count(X, exact=True)
        if count > 1:
            exact.rounds = exact.rounds or QuadraticRounds(
                form.A,
                form.C,
                form.D,
                torch.from_numpy(problem.signature.signs.copy()),
                all_components=majoriser.all_components,
                theta=majoriser.theta,
            )
            propose = exact_rounds(problem, exact.rounds, X, count)
        else:
            propose = partial(majoriser.propose, X, G, rounds=self._choose(problem, state, X, G, 1))
        state.pair_factor = majorised_step(
            problem, state, propose, state.pair_factor, side=side, adaptive=True, floor=1.0
        )

    def _majoriser(
        self, problem: Problem, A: Tensor | None = None, D: Tensor | None = None
    ) -> Majoriser:
        return Majoriser(
            problem.signature,
            all_components=self.components == "all",
            theta=problem.weight(self.theta),
            A=A,
            D=D,
            scalar=self.majoriser == "scalar",
        )

    @property
    def _fixed_or_auto(self) -> float | Literal["auto"]:
        """The option ``curvature`` of a method that takes majorised steps."""
        assert self.curvature != "per-plane"
        return self.curvature

    def _next_side(self, state: JacobiState) -> str:
        if self.side != "both":
            return "right" if self.side == "right" else "left"
        state.turn += 1
        return "left" if state.turn % 2 == 1 else "right"

    # -- averaged slopes

    def averages_slopes(self, problem: Problem) -> bool:
        rough = problem.objective.objective.nonsmooth
        return self.curvature == "per-plane" or (self.curvature == "auto" and rough)

    def averaging(self, n: int) -> AveragingRule:
        return AveragingRule(self.angle or REACH / math.sqrt(n), MOMENTUM, DECAY, RETURN_PATIENCE)

    def _averaged_step(self, problem: Problem, state: JacobiState) -> None:
        rule = self.averaging(problem.signature.n)
        memory = state.averaged = state.averaged or AveragedSteps.begin(state, rule.angle)
        moved = self._move(problem, state, memory, rule)
        value, gradient, exact = self._evaluate(problem, state, moved)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state.move_to(moved, value, gradient)
        state.exact = exact
        if exact:
            memory.keep_best(state, rule)

    def _move(
        self, problem: Problem, state: JacobiState, memory: AveragedSteps, rule: AveragingRule
    ) -> Tensor:
        """The point after one step along averaged slopes, on the side whose turn it is.

        Lengths are ||Y X^-1 - I||, so that steps do not shrink where X is large.
        """
        sides: tuple[str, ...] = ("left", "right")
        if state.X.shape[0] != state.X.shape[1]:
            sides = ("left",)
        elif self.side not in ("auto", "both"):
            sides = (self.side,)
        side = sides[state.turn % len(sides)]
        state.turn += 1
        X, G = oriented(state.X, side), oriented(state.gradient, side)
        signs = problem.signs
        slopes = memory.direction(skew_gradient(X, G, signs)[None], side, rule)
        H = signs[:, None] * slopes
        count = self.rounds_per_gradient or rounds_in_tournament(len(X))
        rounds = self._choose(problem, state, torch.eye(len(X)).to(X), H[0], count)
        theta = -RELATIVE_THETA if self.theta is None else float(self.theta)
        majoriser = replace(self._majoriser(problem), theta=theta)  # slopes here have no units
        moved = majoriser.relative_rounds(X[None], H, 1 / memory.angle, rounds)[0]
        problem.objective.count.pair_updates += rounds.size // 2
        if not bool(torch.isfinite(moved).all()):
            raise StopRun(Status.NON_FINITE)
        return oriented(moved, side)

    def _evaluate(
        self, problem: Problem, state: JacobiState, X: Tensor
    ) -> tuple[float, Tensor, bool]:
        """Value and gradient after an averaged step, and whether they are exact."""
        return *problem.objective.value_and_gradient(X), True

    def choose_result(self, state: JacobiState, last: State) -> State:
        return last if state.averaged is None else state.averaged.best_of(last)

    # -- what a step consists of

    def _exact_form(self, problem: Problem, state: JacobiState, side: str) -> ExactForm | None:
        """The quadratic form, if steps can use the exact curvature of its pairs.

        It must be convex up to rounding; otherwise there may be no factor with which the pairs
        together majorise it.
        """
        several_on_cpu = self.round_count(state.X) > 1 and state.X.device.type == "cpu"
        if self.curvature != "auto" or several_on_cpu or self.majoriser == "scalar":
            return None
        if side not in state.exact_forms:
            state.exact_forms[side] = None
            form = problem.objective.quadratic()
            if form is not None and _semidefinite(form.A) and _semidefinite(form.D):
                own = transposed_form(form.like(state.X), side, state.X.shape[1])
                state.exact_forms[side] = ExactForm(own)
        return state.exact_forms[side]

    def round_count(self, X: Tensor, *, exact: bool = False) -> int:
        """The rounds per gradient; on a device exact ones are replayed in chunks of 32."""
        if self.rounds_per_gradient is not None:
            return self.rounds_per_gradient
        if X.device.type != "cpu":
            return CHUNK if exact else 1
        return rounds_in_tournament(X.shape[0])

    def _choose(
        self, problem: Problem, state: JacobiState, X: Tensor, G: Tensor, count: int
    ) -> NDArray[np.int64]:
        """The rounds of this iteration: (count, n // 2, 2)."""
        n = X.shape[0]
        if count > 1:
            number = -(-count // rounds_in_tournament(n))
            tables = [shuffled_tournament(n, problem.rng) for _ in range(number)]
            return np.concatenate(tables)[:count]
        if self.matching == "random":
            return random_matching(n, seed=problem.rng)[None]
        if self.matching == "greedy":
            slopes = skew_gradient(X, G, problem.signs).abs()
            greedy: NDArray[np.int64] = greedy_matching(slopes, seed=problem.rng).cpu().numpy()
            return greedy[None]
        start = state.round % rounds_in_tournament(n)
        state.round += 1
        return tournament(n)[start : start + 1]


def _semidefinite(matrix: Tensor | None) -> bool:
    """Whether a matrix is positive semidefinite up to rounding; None stands for the identity."""
    if matrix is None:
        return True
    eigenvalues = torch.linalg.eigvalsh(matrix)
    return bool(eigenvalues[0] >= -1e-12 * eigenvalues.abs().max())
