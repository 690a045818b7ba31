"""Several exact Jacobi rounds an iteration, for quadratic objectives on a device."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from jorth.kernels import QuadraticRounds, tournament_rounds
from jorth.objectives import QuadraticForm
from jorth.plane.proximal import signed_theta
from jorth.solvers.jobcd.pair_steps import Proposal
from jorth.solvers.loop.problem import Problem
from jorth.solvers.loop.state import State


def exact_rounds(
    problem: Problem,
    state: State,
    X: Tensor,
    form: QuadraticForm,
    side: str,
    count: int,
    theta: float | None,
    everywhere: bool,
) -> Callable[[float], Proposal]:
    """What ``count`` rounds from X give, as a function of the factor of each pair's curvature.

    Each round has its exact gradient, through Y = X D X^T, at O(n^2); X alone is evaluated by the objective at the end.
    Rounds are drawn from a tournament in the order of the indices, whose pairs a device reads fastest.
    """
    key = f"rounds {side}"
    if key not in state.cache:
        signs = torch.from_numpy(problem.signature.signs.copy())
        state.cache[key] = QuadraticRounds(
            form.A, form.C, form.D, signs, everywhere=everywhere, theta=signed_theta(theta)
        )
    rounds: QuadraticRounds = state.cache[key]
    n = len(X)
    length = n - 1 + n % 2
    turns = np.concatenate([problem.rng.permutation(length) for _ in range(-(-count // length))])[
        :count
    ]
    partners = tournament_rounds(n, turns)

    def propose(factor: float) -> Proposal:
        rounds.start(X)
        rounds.run(partners, factor)
        decrease, unbounded = torch.stack(
            [rounds.decrease, rounds.unbounded.double()]
        ).tolist()  # the one wait
        # f is quadratic: that it falls is the whole test, and its curvature is met by construction
        return Proposal(rounds.X.clone(), decrease, math.inf, count * (n // 2), bool(unbounded))

    return propose
