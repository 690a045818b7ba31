"""GS-JOBCD: one pair after the other, each step the global minimiser in its plane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.arrays import check_choice, check_theta, whole_number
from jorth.group.slopes import skew_gradient
from jorth.plane import all_pairs, random_pairs
from jorth.plane.proximal import signed_theta
from jorth.solvers.jobcd.blocks import BlockedSweep, rows_of_a_block
from jorth.solvers.jobcd.curvature import check_curvature, first_curvature, majorised_step
from jorth.solvers.jobcd.diagonalisation import is_diagonalisation, rotate_pairs
from jorth.solvers.jobcd.pair_steps import compile_kernels, oriented, propose_pairs, transposed_form
from jorth.solvers.jobcd.pairwise import PairwiseSweep, StepRule
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.solver import AbstractSolver
from jorth.solvers.loop.state import State


@dataclass(frozen=True, kw_only=True)
class GaussSeidel(AbstractSolver):
    """GS-JOBCD (Algorithm 1 of the paper). An iteration is a sweep of n (n - 1) / 2 pair updates.

    On a quadratic objective (`Quadratic`, `Procrustes`) the steps are exact, cost O(n) each, and run in compiled code
    on the CPU, by blocks of rows where n is large. Right steps on tr(X^T A X) are the J-Jacobi method: they diagonalise
    X^T A X and converge quadratically. On any other objective each pair takes a gradient and a scalar majoriser with
    backtracking: right, but dear; prefer `Jacobi` there.

    Args:
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        order: "sweep" all pairs once, in random order; "random" with replacement (the paper); "cyclic" row by row;
            "greedy" all pairs once, the steepest first.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature. With ``on_unbounded="continue"`` on a
            concave quadratic (the paper's eigenvalue problem) it alone bounds the steps; None then takes the curvature.
        curvature: Of non-quadratic objectives: "auto" backtracks, a number is fixed.
        block_size: Of a "sweep" on a quadratic objective: the rows are cut at random into blocks of so many, and the
            pairs of two blocks done together, in cache; 1 takes single pairs. "auto" takes blocks from n = 192 on.
    """

    side: Literal["left", "right"] = "left"
    components: Literal["start", "all"] = "start"
    order: Literal["sweep", "random", "cyclic", "greedy"] = "sweep"
    theta: float | None = None
    curvature: float | Literal["auto"] = "auto"
    block_size: int | Literal["auto"] = "auto"
    name = "gs-jobcd"

    def __post_init__(self) -> None:
        check_choice(self.side, "side", ("left", "right"))
        check_choice(self.components, "components", ("start", "all"))
        check_choice(self.order, "order", ("sweep", "random", "cyclic", "greedy"))
        check_theta(self.theta)
        check_curvature(self.curvature)
        if not (isinstance(self.block_size, str) and self.block_size == "auto"):
            whole_number(self.block_size, "block_size", 1)
            if self.block_size > 1 and self.order != "sweep":
                raise ValueError(
                    f'block_size must be "auto" or 1 for order "{self.order}", got {self.block_size!r}'
                )

    def prepare(self) -> None:
        """Compile the sweep."""
        compile_kernels()

    def step(self, problem: Problem, state: State) -> None:
        """One sweep."""
        if is_diagonalisation(problem, state, self.side, self.theta):
            rotate_pairs(problem, state, self._pairs(problem, state))
        elif problem.objective.quadratic() is not None:
            self._exact_sweep(problem, state)
        else:
            self._majorised_sweep(problem, state, self._pairs(problem, state))

    def _pairs(self, problem: Problem, state: State) -> NDArray[np.int64]:
        n = problem.signature.n
        if self.order == "random":
            return random_pairs(n, n * (n - 1) // 2, seed=problem.rng)
        if self.order == "sweep":
            return all_pairs(n, seed=problem.rng)
        pairs = all_pairs(n)
        if self.order == "greedy":
            S = skew_gradient(
                oriented(state.X, self.side), oriented(state.gradient, self.side), problem.signs
            )
            weights = S.abs().cpu().numpy()[pairs[:, 0], pairs[:, 1]]
            pairs = pairs[np.argsort(-weights, kind="stable")]
        return pairs

    def _exact_sweep(self, problem: Problem, state: State) -> None:
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

    def _quadratic_sweep(self, problem: Problem, state: State) -> BlockedSweep | PairwiseSweep:
        """By blocks where they are large enough, and the order is free."""
        A, C, D = self._arrays(problem, state)
        X, signs = (
            np.array(oriented(state.X, self.side).double().cpu().numpy(), order="C"),
            problem.signature.signs,
        )
        rule = StepRule(
            signed_theta(self.theta),
            self.components == "all",
            problem.ends_unbounded,
            self._races(problem, state),
        )
        size = rows_of_a_block(len(X)) if self.block_size == "auto" else self.block_size
        if size > 1 and self.order == "sweep" and not rule.concave:
            return BlockedSweep(A, C, D, X, signs, problem.rng.permutation(len(X)), size, rule)
        return PairwiseSweep(A, C, D, X, signs, self._pairs(problem, state), rule)

    def _races(self, problem: Problem, state: State) -> bool:
        """Whether f is concave and the run goes on all the same."""
        if "concave" not in state.cache:
            A, _, D = self._arrays(problem, state)
            state.cache["concave"] = not problem.stop_unbounded and _is_concave(A, D)
        return bool(state.cache["concave"])

    def _arrays(
        self, problem: Problem, state: State
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
        """A, C and D of the form whose rows are changed, as the kernel takes them."""
        if "form" not in state.cache:
            form = problem.objective.quadratic()
            assert form is not None
            form = transposed_form(form, self.side, state.X.shape[1])
            C = np.zeros((form.A.shape[0], 0)) if form.C is None else _contiguous(form.C)
            state.cache["form"] = (
                _contiguous(form.A),
                C,
                None if form.D is None else _contiguous(form.D),
            )
        A, C, D = state.cache["form"]
        return A, C, D

    def _majorised_sweep(self, problem: Problem, state: State, pairs: NDArray[np.int64]) -> None:
        first_curvature(problem, state, self.curvature)
        for pair in pairs:
            propose = partial(
                propose_pairs,
                problem,
                oriented(state.X, self.side),
                oriented(state.gradient, self.side),
                pair[None],
                form=None,
                theta=self.theta,
                everywhere=self.components == "all",
            )
            majorised_step(
                problem, state, propose, side=self.side, adaptive=self.curvature == "auto"
            )


def _is_concave(A: NDArray[np.float64], D: NDArray[np.float64] | None) -> bool:
    """Whether tr(X^T A X D) is concave: -A and D, or A and -D, positive semidefinite up to rounding."""
    low, high = np.linalg.eigvalsh(A)[[0, -1]]
    least, most = (1.0, 1.0) if D is None else np.linalg.eigvalsh(D)[[0, -1]]
    tiny_a, tiny_d = 1e-12 * max(abs(low), abs(high)), 1e-12 * max(abs(least), abs(most))
    return bool((high <= tiny_a and least >= -tiny_d) or (low >= -tiny_a and most <= tiny_d))


def _contiguous(tensor: Tensor) -> NDArray[np.float64]:
    return np.ascontiguousarray(tensor.double().cpu().numpy())
