"""J-JOBCD: disjoint pairs at once, one gradient an iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import check_choice, check_count, check_theta, real_number
from jorth.group.slopes import skew_gradient
from jorth.kernels.quadratic import CHUNK
from jorth.objectives import QuadraticForm
from jorth.plane import greedy_matching, random_matching, tournament
from jorth.solvers.jobcd.averaged_steps import Averaging, best_of, keep_best, walk
from jorth.solvers.jobcd.curvature import check_curvature, first_curvature, majorised_step
from jorth.solvers.jobcd.device_rounds import exact_rounds
from jorth.solvers.jobcd.diagonalisation import is_diagonalisation, rotate_rounds
from jorth.solvers.jobcd.pair_steps import (
    Proposal,
    compile_kernels,
    oriented,
    propose_pairs,
    propose_rounds,
    transposed_form,
)
from jorth.solvers.loop.budget import all_finite
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State
from jorth.solvers.loop.status import Status, StopRun

Matching = Literal["random", "round-robin", "greedy"]
Side = Literal["auto", "left", "right", "both"]
MOMENTUM, DECAY, PATIENCE = 0.7, 0.9, 5
"""Of averaged slopes: found on probes of 1,200 rows, seed 0."""
REACH = 0.5
"""sqrt(n) times the first angle: found on sparse and on Gaussian rows, n from 4 to 100."""


@dataclass(frozen=True, kw_only=True)
class Jacobi(AbstractSolver):
    """J-JOBCD (Algorithm 2 of the paper with the full gradient), on any objective, CPU or CUDA.

    Several rounds of disjoint pairs can be run on the majoriser of one gradient; a whole tournament of them solves it
    almost exactly and needs 10 to 50 times fewer gradients than one random matching. Right steps on tr(X^T A X) are the
    J-Jacobi method, whose disjoint pairs are exact together: a tournament an iteration, quadratic convergence.

    Args:
        side: "left" changes rows, "right" columns, "both" takes turns; "auto" is left, and both with averaged slopes.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        matching: With one round per gradient: "random" (the paper), "round-robin", or "greedy" on the slopes.
        rounds_per_gradient: A number; None takes a tournament of all pairs on the CPU, and on a device one round, or 32
            exact ones on a convex quadratic.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature.
        curvature: "auto" backtracks, starting from what the objective knows; a number L is fixed. "per-plane" averages
            slopes over steps and turns every plane by about the same angle, without asking f to fall each time;
            "auto" does so too where the objective says that it is rough (a structural probe with q > 1).
        angle: Of "per-plane", at the start; None takes 0.5 / sqrt(n). It is halved when the walk goes back to the best
            point, but doubled at first where that is still near the start.
        majoriser: With one round per gradient: "rows" is Q = L (Z Z^T) (x) I_2, which majorises an L-smooth f; "scalar"
            is Q = L I, the paper's sigma, which does so only for sigma >= L lambda_max(Z Z^T).
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

    def __post_init__(self) -> None:
        check_choice(self.side, "side", ("auto", "left", "right", "both"))
        check_choice(self.components, "components", ("start", "all"))
        check_choice(self.matching, "matching", ("random", "round-robin", "greedy"))
        check_count(self.rounds_per_gradient, "rounds_per_gradient")
        check_theta(self.theta)
        if not (isinstance(self.curvature, str) and self.curvature == "per-plane"):
            check_curvature(self.curvature)
        if self.angle is not None:
            real_number(
                self.angle, "angle", "a number in (0, 1] or None", lambda number: 0 < number <= 1
            )
        check_choice(self.majoriser, "majoriser", ("rows", "scalar"))
        if self.majoriser == "scalar" and self.rounds_per_gradient != 1:
            raise ValueError(
                f"rounds_per_gradient must be 1 for the scalar majoriser, got {self.rounds_per_gradient!r}"
            )

    def prepare(self) -> None:
        """Compile the pair solvers."""
        compile_kernels()

    def step(self, problem: Problem, state: State) -> None:
        """One gradient step; of the J-Jacobi method a whole tournament, whose rounds need no gradient."""
        if self.averages(problem):
            self._walk(problem, state)
            return
        side = self.take_side(state)
        if is_diagonalisation(problem, state, side, self.theta):
            rotate_rounds(problem, state, tournament(problem.signature.n, seed=problem.rng))
            return
        X, G = oriented(state.X, side), oriented(state.gradient, side)
        form, key = self._exact_form(problem, state, side), "curvature"
        first_curvature(problem, state, self._bound)
        if (
            form is not None
        ):  # the exact curvature of each pair, times a factor for what the pairs have in common
            key = "safeguard"
            state.numbers.setdefault(key, 1.0)
        propose: Callable[[float], Proposal]
        rounds = self.rounds(X, exact=form is not None)
        if form is not None and rounds > 1:
            everywhere = self.components == "all"
            propose = exact_rounds(problem, state, X, form, side, rounds, self.theta, everywhere)
        else:
            pairs = self.choose(problem, state, X, G)
            propose = partial(self.propose, problem, X, G, pairs, form=form)
        majorised_step(
            problem,
            state,
            propose,
            side=side,
            adaptive=self.curvature == "auto",
            key=key,
            floor=0.0 if form is None else 1.0,
            secant=form is None,
        )

    @property
    def _bound(self) -> float | Literal["auto"]:
        """The curvature of majorised steps."""
        assert self.curvature != "per-plane"
        return self.curvature

    def take_side(self, state: State) -> str:
        """The side of this iteration."""
        if self.side != "both":
            return "right" if self.side == "right" else "left"
        turn = state.numbers.get("turn", 0.0)
        state.numbers["turn"] = turn + 1
        return "left" if turn % 2 == 0 else "right"

    # -- averaged slopes

    def averages(self, problem: Problem) -> bool:
        """Whether slopes are averaged over steps."""
        return self.curvature == "per-plane" or (
            self.curvature == "auto" and problem.objective.objective.rough
        )

    def averaging(self, n: int) -> Averaging:
        """How a walk over matrices of n rows goes."""
        return Averaging(self.angle or REACH / math.sqrt(n), MOMENTUM, DECAY, PATIENCE)

    def walk(self, problem: Problem, state: State) -> Tensor:
        """The next point of a walk."""
        sides = {"auto": ("left", "right"), "both": ("left", "right")}.get(self.side, (self.side,))
        if state.X.shape[0] != state.X.shape[1]:
            sides = ("left",)
        n = problem.signature.n
        rounds = self.rounds_per_gradient or (n - 1 + n % 2)

        def propose(X: Tensor, G: Tensor, L: float) -> Proposal:
            return self.propose(problem, X, G, self.choose(problem, state, X, G, rounds), L, None)

        return walk(problem, state, self.averaging(n), sides, propose)

    def _walk(self, problem: Problem, state: State) -> None:
        averaging = self.averaging(problem.signature.n)
        if "best" not in state.numbers:
            keep_best(state, averaging)
        moved = self.walk(problem, state)
        value, gradient, exact = self.look(problem, state, moved)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state.X.copy_(moved)
        state.value, state.gradient, state.exact = value, gradient, exact
        if exact:
            keep_best(state, averaging)

    def look(self, problem: Problem, state: State, X: Tensor) -> tuple[float, Tensor, bool]:
        """Value and gradient at a point of a walk, and whether they are exact."""
        return *problem.objective.value_and_gradient(X), True

    def settle(self, state: State, last: State) -> State:
        """The best point of a walk."""
        return best_of(state, last)

    # -- what a step consists of

    def _exact_form(self, problem: Problem, state: State, side: str) -> QuadraticForm | None:
        """The quadratic form, where the exact curvature of pairs can be used and majorises with some factor."""
        several_on_cpu = self.rounds(state.X) > 1 and state.X.device.type == "cpu"
        if self.curvature != "auto" or several_on_cpu or self.majoriser == "scalar":
            return None
        key = f"form {side}"
        if key not in state.cache:
            form = problem.objective.quadratic()
            usable = form is not None and positive_semidefinite(form)
            state.cache[key] = (
                transposed_form(form.like(state.X), side, state.X.shape[1])
                if form and usable
                else None
            )
        found: QuadraticForm | None = state.cache[key]
        return found

    def rounds(self, X: Tensor, *, exact: bool = False) -> int:
        """The number of rounds per gradient; exact ones on a device are as many as are replayed together."""
        if self.rounds_per_gradient is not None:
            return self.rounds_per_gradient
        if X.device.type != "cpu":
            return CHUNK if exact else 1
        n = X.shape[0]
        return n - 1 + n % 2

    def choose(
        self, problem: Problem, state: State, X: Tensor, G: Tensor, rounds: int | None = None
    ) -> NDArray[np.int64]:
        """The rounds of this iteration: (r, n // 2, 2)."""
        n, rounds = X.shape[0], rounds or self.rounds(X)
        if rounds > 1:
            tournaments = [
                tournament(n, seed=problem.rng) for _ in range(-(-rounds // (n - 1 + n % 2)))
            ]
            return np.concatenate(tournaments)[:rounds]
        if self.matching == "random":
            return random_matching(n, seed=problem.rng)[None]
        if self.matching == "greedy":
            S = skew_gradient(X, G, problem.signs).abs()
            greedy: NDArray[np.int64] = greedy_matching(S, seed=problem.rng).cpu().numpy()
            return greedy[None]
        turn = int(state.numbers.get("round", 0))
        state.numbers["round"] = turn + 1
        table = tournament(n)
        start = turn % len(table)
        return table[start : start + 1]

    def propose(
        self,
        problem: Problem,
        X: Tensor,
        G: Tensor,
        rounds: NDArray[np.int64],
        L: float,
        form: QuadraticForm | None,
    ) -> Proposal:
        """The step with curvature L."""
        everywhere = self.components == "all"
        if len(rounds) == 1:
            return propose_pairs(
                problem,
                X,
                G,
                rounds[0],
                L,
                form=form,
                theta=self.theta,
                everywhere=everywhere,
                scalar=self.majoriser == "scalar",
            )
        return propose_rounds(problem, X, G, rounds, L=L, theta=self.theta, everywhere=everywhere)


def positive_semidefinite(form: QuadraticForm) -> bool:
    """Whether the form is convex, up to rounding: else no factor need make its pairs a majoriser together."""
    import torch

    for matrix in (form.A, form.D):
        if matrix is not None:
            eigenvalues = torch.linalg.eigvalsh(matrix)
            if eigenvalues[0] < -1e-12 * eigenvalues.abs().max():
                return False
    return True
