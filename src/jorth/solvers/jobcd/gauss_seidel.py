"""GS-JOBCD: one pair after the other, each moved to the global minimiser in its plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._checkpoint import NOT_SAVED
from jorth._inputs import check_auto, check_choice, check_theta, whole_number
from jorth.group.gradient import skew_gradient
from jorth.plane import all_pairs, random_pairs
from jorth.plane.rounds import Majoriser
from jorth.solvers.jobcd.diagonalisation import Trace, rotate_pairs, trace_to_diagonalise
from jorth.solvers.jobcd.majorised import (
    MajorisedState,
    compile_kernels,
    first_curvature,
    majorised_step,
)
from jorth.solvers.jobcd.quadratic_sweeps import (
    SIZES,
    BlockedSweep,
    PairwiseSweep,
    StepRule,
    SweepForm,
    oriented,
    rows_of_a_block,
)
from jorth.solvers.problem import AbstractSolver, Problem


@dataclass
class GaussSeidelState(MajorisedState):
    """The state of `GaussSeidel`, with what the first sweep finds out about the problem."""

    trace: Trace | None = field(default=None, metadata=NOT_SAVED)
    form: SweepForm | None = field(default=None, metadata=NOT_SAVED)
    concave: bool = field(default=False, metadata=NOT_SAVED)
    """Whether f is concave and the run continues all the same."""


@dataclass(frozen=True, kw_only=True)
class GaussSeidel(AbstractSolver):
    """GS-JOBCD (Algorithm 1 of the paper). An iteration is a sweep of n (n - 1) / 2 pair updates.

    On a quadratic objective (`Quadratic`, `Procrustes`) the steps are exact, cost O(n) each, and
    run in compiled code on the CPU, by blocks of rows if n is large. Right steps on tr(X^T A X) are
    the J-Jacobi method: they diagonalise X^T A X and converge quadratically. On any other objective
    each pair needs a gradient and a scalar majoriser with backtracking, which is expensive; prefer
    `Jacobi` there.

    Args:
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        order: "sweep" takes all pairs once, in random order; "random" draws with replacement (the
            paper); "cyclic" goes row by row; "greedy" takes all pairs once, the steepest first.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature. With
            ``on_unbounded="continue"`` on a concave quadratic (the paper's eigenvalue problem) it
            alone bounds the steps, and None takes the curvature itself.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        majoriser: "rows" takes the exact Q = (Z D Z^T) (x) A_BB on a quadratic objective, and
            L (Z Z^T) (x) I_2 on any other; "scalar" takes Q = L I with a fixed ``curvature`` L, the
            paper's sigma, which majorises f only for sigma >= L_f lambda_max(Z Z^T).
        block_size: For a "sweep" on a quadratic objective. The rows are divided at random into
            blocks of this size, and the pairs of two blocks are treated together, in cache; 1 takes
            single pairs. "auto" uses blocks from n = 192 on.
    """

    side: Literal["left", "right"] = "left"
    components: Literal["start", "all"] = "start"
    order: Literal["sweep", "random", "cyclic", "greedy"] = "sweep"
    theta: float | None = None
    curvature: float | Literal["auto"] = "auto"
    majoriser: Literal["rows", "scalar"] = "rows"
    block_size: int | Literal["auto"] = "auto"
    name = "gs-jobcd"
    state_type = GaussSeidelState

    def __post_init__(self) -> None:
        check_choice(self.side, "side", ("left", "right"))
        check_choice(self.components, "components", ("start", "all"))
        check_choice(self.order, "order", ("sweep", "random", "cyclic", "greedy"))
        check_theta(self.theta)
        check_auto(self.curvature, "curvature")
        check_choice(self.majoriser, "majoriser", ("rows", "scalar"))
        if self.majoriser == "scalar" and self.curvature == "auto":
            raise ValueError('curvature must be a number for a scalar majoriser, got "auto"')
        if not (isinstance(self.block_size, str) and self.block_size == "auto"):
            whole_number(self.block_size, "block_size", 1, instead='"auto" or ')
            if self.block_size > 1 and self.order != "sweep":
                allowed = f'"auto" or 1 for order "{self.order}"'
                raise ValueError(f"block_size must be {allowed}, got {self.block_size!r}")

    def prepare(self) -> None:
        compile_kernels()

    def prepare_for(self, problem: Problem, X: Tensor) -> None:
        if problem.objective.quadratic() is None:
            compile_kernels("majoriser")
        elif self.side == "right":
            compile_kernels("trace", "quadratic")
        else:
            compile_kernels("quadratic")
        if len(X) >= min(SIZES):
            compile_kernels("block")

    def step(self, problem: Problem, state: GaussSeidelState) -> None:
        if self.side == "right" and state.trace is None and self.majoriser == "rows":
            state.trace = trace_to_diagonalise(problem, state.X, self.theta)
        if state.trace is not None:
            rotate_pairs(problem, state, state.trace, self._pairs(problem, state))
        elif problem.objective.quadratic() is not None:
            self._exact_sweep(problem, state)
        else:
            self._majorised_sweep(problem, state)

    def _pairs(self, problem: Problem, state: GaussSeidelState) -> NDArray[np.int64]:
        n = problem.signature.n
        if self.order == "random":
            return random_pairs(n, n * (n - 1) // 2, seed=problem.rng)
        if self.order == "sweep":
            return all_pairs(n, seed=problem.rng)
        pairs = all_pairs(n)
        if self.order == "greedy":
            X, G = oriented(state.X, self.side), oriented(state.gradient, self.side)
            slopes = skew_gradient(X, G, problem.signs).abs().cpu().numpy()
            pairs = pairs[np.argsort(-slopes[pairs[:, 0], pairs[:, 1]], kind="stable")]
        return pairs

    def _exact_sweep(self, problem: Problem, state: GaussSeidelState) -> None:
        sweep = self._quadratic_sweep(problem, state)
        try:
            for done in sweep.run():
                problem.objective.count.pair_updates += done
                problem.objective.check_limits()
        finally:
            state.X.copy_(oriented(torch.from_numpy(sweep.rows()), self.side))
            state.exact = False
        state.unbounded = sweep.unbounded
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)
        state.exact = True

    def _quadratic_sweep(
        self, problem: Problem, state: GaussSeidelState
    ) -> BlockedSweep | PairwiseSweep:
        """A sweep by blocks if n is large and the order of the pairs is free, else by pairs."""
        if state.form is None:
            form = problem.objective.quadratic()
            assert form is not None
            state.form = SweepForm.of(form, self.side, state.X.shape[1])
            state.concave = not problem.stop_unbounded and state.form.concave()
        X = np.array(oriented(state.X, self.side).double().cpu().numpy(), order="C")
        signs = problem.signature.signs
        theta, linear = problem.weight(self.theta), state.concave
        if self.majoriser == "scalar":  # sigma and theta weigh the same on a linear majorant
            theta = problem.objective.in_unit(float(self.curvature) + float(self.theta or 0.0))
            linear = True
        rule = StepRule(theta, self.components == "all", problem.ends_unbounded, concave=linear)
        size = rows_of_a_block(len(X)) if self.block_size == "auto" else self.block_size
        if size > 1 and self.order == "sweep" and not linear:
            return BlockedSweep(state.form, X, signs, problem.rng.permutation(len(X)), size, rule)
        return PairwiseSweep(state.form, X, signs, self._pairs(problem, state), rule)

    def _majorised_sweep(self, problem: Problem, state: GaussSeidelState) -> None:
        majoriser = Majoriser(
            problem.signature,
            self.components == "all",
            problem.weight(self.theta),
            scalar=self.majoriser == "scalar",
        )
        adaptive = self.curvature == "auto"
        estimate = first_curvature(problem, state, self.curvature)
        for pair in self._pairs(problem, state):
            X, G = oriented(state.X, self.side), oriented(state.gradient, self.side)
            propose = partial(majoriser.propose, X, G, rounds=pair[None, None])
            estimate = state.curvature = majorised_step(
                problem, state, propose, estimate, side=self.side, adaptive=adaptive
            )
