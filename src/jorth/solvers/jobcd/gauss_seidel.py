"""GS-JOBCD: one pair after the other, each moved to the global minimiser in its plane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import torch

from jorth._inputs import check_auto, check_choice
from jorth.plane import all_pairs, random_pairs
from jorth.solvers.jobcd.base import PairMethod, PairState
from jorth.solvers.jobcd.sweeps import (
    Pairs,
    SweepForm,
    first_curvature,
    majorised_step,
    oriented,
    score,
    sweep,
)
from jorth.solvers.problem import NOT_SAVED, Problem


@dataclass
class GaussSeidelState(PairState):
    """The state of `GaussSeidel`, with what the first sweep finds out about the problem."""

    form: SweepForm | None = field(default=None, metadata=NOT_SAVED)
    concave: bool = field(default=False, metadata=NOT_SAVED)
    """Whether f is concave and the run continues all the same."""


@dataclass(frozen=True, kw_only=True)
class GaussSeidel(PairMethod):
    """GS-JOBCD (Algorithm 1 of the paper). An iteration is a sweep of n (n - 1) / 2 pair updates.

    On a quadratic objective (`Quadratic`, `Procrustes`) the steps are exact, cost O(n) each, and
    run in compiled code on the CPU. Right steps on tr(X^T A X) are the J-Jacobi method if A - mu J
    is positive definite for some mu, and converge quadratically. On any other objective each pair
    needs a gradient and a majoriser with backtracking; prefer `Jacobi` there.

    Args:
        side: "left" changes rows, "right" columns.
        components: "start" stays in the component of the start, "all" may leave it (the paper).
        order: "sweep" takes all pairs once, in random order; "random" draws with replacement (the
            paper); "cyclic" goes row by row.
        theta: The proximal weight; None takes 1e-12 of each pair's curvature. With
            ``on_unbounded="continue"`` on a concave quadratic (the paper's eigenvalue problem) it
            alone bounds the steps, and None takes the curvature itself.
        curvature: For objectives that are not quadratic; "auto" backtracks, a number is fixed.
        majoriser: "rows" takes the exact Q = (Z D Z^T) (x) A_BB on a quadratic objective, and L (Z
            Z^T) (x) I_2 on any other; "scalar" takes Q = L I with a fixed ``curvature`` L, the
            paper's sigma, which majorises f only for sigma >= L_f lambda_max(Z Z^T).
        accelerate: Take a fifth to a tenth of the sweeps on a quadratic objective: they run in a
            frame in which planes hardly interact, and are extrapolated by Anderson's method. tr(X^T
            A X) gets right steps. Sweeps are plain if X is thin, and on any other objective.

    >>> sig = jorth.Signature(2, 1)
    >>> f = jorth.Quadratic(np.diag([1.0, 2.0, 3.0]))
    >>> solver = jorth.GaussSeidel(accelerate=True)
    >>> jorth.minimize(f, jorth.random_point(sig), signature=sig, method=solver).success
    True
    """

    side: Literal["left", "right"] = "left"
    order: Literal["sweep", "random", "cyclic"] = "sweep"
    curvature: float | Literal["auto"] = "auto"
    name = "gs-jobcd"
    state_type = GaussSeidelState

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.side, "side", ("left", "right"))
        check_choice(self.order, "order", ("sweep", "random", "cyclic"))
        check_auto(self.curvature, "curvature")
        if self.majoriser == "scalar" and self.curvature == "auto":
            raise ValueError('curvature must be a number for a scalar majoriser, got "auto"')
        if self.accelerate and (self.side, self.order, self.majoriser) != ("left", "sweep", "rows"):
            raise ValueError("accelerate must be False for other than left sweeps with rows")

    def sweep_pairs(self, n: int, rng: np.random.Generator | None) -> Pairs:
        if self.order == "random":
            assert rng is not None
            return random_pairs(n, n * (n - 1) // 2, seed=rng)
        return all_pairs(n, seed=rng if self.order == "sweep" else None)

    def plain_step(self, problem: Problem, state: GaussSeidelState) -> None:
        """Take all pairs once, or as many draws."""
        if problem.objective.quadratic() is None:
            self._majorised_sweep(problem, state)
        else:
            self._exact_sweep(problem, state)

    def _exact_sweep(self, problem: Problem, state: GaussSeidelState) -> None:
        """Take exact steps on a quadratic f, where coefficients, plane and rows are compiled."""
        if state.form is None:
            form = problem.objective.quadratic()
            assert form is not None
            state.form = SweepForm.of(form, self.side, state.X.shape[1])
            state.concave = not problem.stop_unbounded and state.form.concave()
        rule = self.rule(problem, concave=state.concave)
        if self.majoriser == "scalar":  # sigma and theta weigh the same on a linear majorant
            weight = problem.objective.in_unit(float(self.curvature) + float(self.theta or 0.0))
            rule = rule._replace(theta=weight, concave=True)
        X = np.array(oriented(state.X, self.side).double().cpu().numpy(), order="C")
        try:
            pairs = self.sweep_pairs(len(X), problem.rng)
            state.unbounded = sweep(problem, state.form, X, pairs, rule)
        finally:  # a limit may end the run within a sweep, where the value is not known
            state.X.copy_(oriented(torch.from_numpy(X), self.side))
            state.exact = False
        score(problem, state)

    def _majorised_sweep(self, problem: Problem, state: GaussSeidelState) -> None:
        """Take the gradient, the plane of one pair on the majoriser, and go there if f falls."""
        majoriser, adaptive = self.majorise(problem), self.curvature == "auto"
        estimate = first_curvature(problem, state, self.curvature)
        for pair in self.sweep_pairs(problem.signature.n, problem.rng):
            X, G = oriented(state.X, self.side), oriented(state.gradient, self.side)
            propose = partial(majoriser.propose, X, G, rounds=pair[None, None])
            estimate = state.curvature = majorised_step(
                problem, state, propose, estimate, side=self.side, adaptive=adaptive
            )
