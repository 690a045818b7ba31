"""GS-JOBCD: one pair after the other, each step the global minimiser in its plane."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.plane import all_pairs, random_pairs
from jorth.solvers.base import AbstractSolver, State, check_choice, check_theta, signed_theta
from jorth.solvers.criticality import skew_gradient
from jorth.solvers.curvature import check_curvature, first_curvature, majorised_step
from jorth.solvers.diagonalisation import is_diagonalisation, rotate_pairs
from jorth.solvers.pair_steps import compile_kernels, oriented, propose_pairs, transposed_form
from jorth.solvers.problem import Problem

CHUNK = 50_000
"""Pairs between two looks at the clock."""


@dataclass(frozen=True, kw_only=True)
class GaussSeidel(AbstractSolver):
    """GS-JOBCD (Algorithm 1 of the paper). An iteration is a sweep of n (n - 1) / 2 pair updates.

    On a quadratic objective (`Quadratic`, `Procrustes`) the steps are exact, cost O(n) each, and run in compiled code
    on the CPU. Right steps on tr(X^T A X) are the J-Jacobi method: they diagonalise X^T A X and converge quadratically.
    On any other objective each pair takes a gradient and a scalar majoriser with backtracking: right, but
    dear; prefer `Jacobi` there.

    Args:
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        order: "sweep" all pairs once, in random order; "random" with replacement (the paper); "cyclic" row by row;
            "greedy" all pairs once, the steepest first.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature. With ``on_unbounded="continue"`` on a
            concave quadratic (the paper's eigenvalue problem) it alone bounds the steps; None then takes the curvature.
        curvature: Of non-quadratic objectives: "auto" backtracks, a number is fixed.
    """

    side: Literal["left", "right"] = "left"
    components: Literal["start", "all"] = "start"
    order: Literal["sweep", "random", "cyclic", "greedy"] = "sweep"
    theta: float | None = None
    curvature: float | Literal["auto"] = "auto"
    name = "gs-jobcd"

    def __post_init__(self) -> None:
        check_choice("side", self.side, ("left", "right"))
        check_choice("components", self.components, ("start", "all"))
        check_choice("order", self.order, ("sweep", "random", "cyclic", "greedy"))
        check_theta(self.theta)
        check_curvature(self.curvature)

    def prepare(self) -> None:
        """Compile the sweep."""
        compile_kernels()

    def step(self, problem: Problem, state: State) -> None:
        """One sweep."""
        pairs = self._pairs(problem, state)
        if is_diagonalisation(problem, state, self.side, self.theta):
            rotate_pairs(problem, state, pairs)
        elif problem.objective.quadratic() is not None:
            self._exact_sweep(problem, state, pairs)
        else:
            self._majorised_sweep(problem, state, pairs)

    def _pairs(self, problem: Problem, state: State) -> NDArray[np.int64]:
        n = problem.signature.n
        if self.order == "random":
            return random_pairs(n, n * (n - 1) // 2, seed=problem.rng)
        if self.order == "sweep":
            return all_pairs(n, seed=problem.rng)
        pairs = all_pairs(n)
        if self.order == "greedy":
            S = skew_gradient(oriented(state.X, self.side), oriented(state.gradient, self.side), problem.signs)
            weights = S.abs().cpu().numpy()[pairs[:, 0], pairs[:, 1]]
            pairs = pairs[np.argsort(-weights, kind="stable")]
        return pairs

    def _exact_sweep(self, problem: Problem, state: State, pairs: NDArray[np.int64]) -> None:
        from jorth.solvers.sweeps import sweep_quadratic

        A, C, D = self._arrays(problem, state)
        concave = not problem.stop_unbounded and _is_concave(A, D)
        rows = np.array(oriented(state.X, self.side).double().cpu().numpy(), order="C")
        Y = rows @ rows.T if D is None else rows @ D @ rows.T
        try:
            for start in range(0, len(pairs), CHUNK):
                problem.objective.check_limits()
                done, _ = sweep_quadratic(
                    A, C, rows, Y, D is not None, problem.signature.signs, pairs[start : start + CHUNK],
                    signed_theta(self.theta), self.components == "all", problem.stop_unbounded, concave,
                )  # fmt: skip
                state.unbounded = done < 0
                problem.objective.count.pair_updates += done if done >= 0 else -done - 1
                if state.unbounded:
                    break
        finally:
            state.X.copy_(oriented(torch.from_numpy(rows), self.side))
            state.exact = False
        state.value, state.gradient = problem.objective.value_and_gradient(state.X)
        state.exact = True

    def _arrays(
        self, problem: Problem, state: State
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
        """A, C and D of the form whose rows are changed, as the kernel takes them."""
        if "form" not in state.cache:
            form = problem.objective.quadratic()
            assert form is not None
            form = transposed_form(form, self.side, state.X.shape[1])
            C = np.zeros((form.A.shape[0], 0)) if form.C is None else _contiguous(form.C)
            state.cache["form"] = _contiguous(form.A), C, None if form.D is None else _contiguous(form.D)
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
            majorised_step(problem, state, propose, side=self.side, adaptive=self.curvature == "auto")


def _is_concave(A: NDArray[np.float64], D: NDArray[np.float64] | None) -> bool:
    """Whether tr(X^T A X D) is concave: -A and D, or A and -D, positive semidefinite up to rounding."""
    low, high = np.linalg.eigvalsh(A)[[0, -1]]
    least, most = (1.0, 1.0) if D is None else np.linalg.eigvalsh(D)[[0, -1]]
    tiny_a, tiny_d = 1e-12 * max(abs(low), abs(high)), 1e-12 * max(abs(least), abs(most))
    return bool((high <= tiny_a and least >= -tiny_d) or (low >= -tiny_a and most <= tiny_d))


def _contiguous(tensor: Tensor) -> NDArray[np.float64]:
    return np.ascontiguousarray(tensor.double().cpu().numpy())
