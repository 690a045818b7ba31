"""VR-J-JOBCD: Jacobi steps on a variance-reduced gradient estimate of a finite sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jorth._inputs import check_count, frobenius, positive_number, real_number
from jorth.solvers.jobcd.jacobi import Jacobi, JacobiState
from jorth.solvers.jobcd.sweeps import first_curvature, oriented
from jorth.solvers.problem import Problem, Status, StopRun, all_finite


@dataclass
class VarianceReducedState(JacobiState):
    """The state of `VarianceReduced`."""

    drawn: int = 0
    """Samples in large batches since the last pass over all of them."""


@dataclass(frozen=True, kw_only=True)
class VarianceReduced(Jacobi):
    """VR-J-JOBCD (Algorithm 2 of the paper): `Jacobi` steps on the PAGE estimate of the gradient.

    For f = 1/N sum f_i. With some probability the estimate is the gradient over a large batch (all
    N samples by default), otherwise the last estimate plus the mean of grad f_i(X_t) - grad
    f_i(X_{t-1}) over a small batch. On average a step uses O(sqrt N) samples. Value and gradient
    norm are recorded and tested after a pass over all samples: at every large batch of N, or about
    once per epoch if ``batch`` is smaller.

    The options of `Jacobi` apply too. With averaged slopes ("per-plane", or "auto" on a rough
    objective) each point uses the gradient over its own small batch; ``batch`` and ``safety`` are
    then not used.

    Args:
        batch: The size b of the large batch; N when None.
        difference_batch: The size b' of the small batch; ceil(sqrt N) when None.
        probability: The probability of the large batch; b' / (b + b') when None.
        safety: The factor on the curvature; the theory of PAGE asks for 2 with these batches.

    >>> sig = jorth.Signature(2, 1)
    >>> source, target, X = jorth.datasets.planted_procrustes(50, sig)
    >>> f, solver = jorth.Procrustes(source, target), jorth.VarianceReduced(difference_batch=10)
    >>> jorth.minimize(f, signature=sig, method=solver, max_iterations=50).method
    'vr-j-jobcd'
    """

    batch: int | None = None
    difference_batch: int | None = None
    probability: float | None = None
    safety: float = 2.0
    name = "vr-j-jobcd"
    state_type = VarianceReducedState
    reach = 0.2  # there are more steps
    patience = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.batch, "batch")
        check_count(self.difference_batch, "difference_batch")
        if self.probability is not None:
            real_number(self.probability, "probability", "None or in (0, 1]", lambda p: 0 < p <= 1)
        positive_number(self.safety, "safety")
        if self.accelerate:
            raise ValueError("accelerate must be False for vr-j-jobcd, whose steps are random")

    def check_start(self, samples: int, X: Tensor) -> None:
        super().check_start(samples, X)
        self._sizes(samples)

    def _sizes(self, samples: int) -> tuple[int, int, float]:
        """The sizes of the large and the small batch, and the probability of the large one."""
        if samples == 0:
            raise ValueError(
                "method vr-j-jobcd needs a finite sum, got an objective without samples"
            )
        large = self.batch or samples
        small = self.difference_batch or math.ceil(math.sqrt(samples))
        for name, size in (("batch", large), ("difference_batch", small)):
            if size > samples:
                most = f"the number of samples {samples}"
                raise ValueError(f"{name} must be at most {most}, got {size}")
        return large, small, self.probability or small / (large + small)

    def step(self, problem: Problem, state: Any) -> None:
        """Move along the present estimate, and form the estimate at the new point."""
        if self.averages_slopes(problem):
            self._averaged_step(problem, state)
            return
        L = self.safety * self._known_curvature(problem, state)
        X, G = oriented(state.X, self.side), oriented(state.gradient, self.side)
        rounds = self._rounds(problem, self.round_count(X))
        proposal = self.majorise(problem).propose(X, G, L, rounds)
        problem.objective.count.pair_updates += proposal.pairs
        moved = oriented(proposal.X, self.side)
        if not bool(torch.isfinite(moved).all()):
            raise StopRun(Status.NON_FINITE)
        self._estimate(problem, state, moved)

    def _evaluate(
        self, problem: Problem, state: JacobiState, X: Tensor
    ) -> tuple[float, Tensor, bool]:
        """Evaluate all samples now and then, else a small batch: on a rough f PAGE is useless."""
        objective = problem.objective
        _, small, _ = self._sizes(objective.samples)
        # all samples twice per epoch, but at most every 20 steps
        share = min(1 / 20, small / (0.5 * objective.samples))
        if problem.rng.random() < (self.probability or share):
            return *objective.value_and_gradient(X), True
        return state.value, objective.sample_gradient(X, self._draw(problem, small, X)), False

    def _estimate(self, problem: Problem, state: VarianceReducedState, moved: Tensor) -> None:
        """Set the state to ``moved``, with the PAGE estimate of the gradient there."""
        objective = problem.objective
        N = objective.samples
        large, small, probability = self._sizes(N)
        refresh = problem.rng.random() < probability
        state.drawn += large if refresh else 0
        full = refresh and (large == N or state.drawn >= N)
        value = state.value
        if full:
            state.drawn = 0
            value, gradient = objective.value_and_gradient(moved)
        elif refresh:
            gradient = objective.sample_gradient(moved, self._draw(problem, large, moved))
        else:
            gradient = self._difference(problem, state, moved, small)
        if not all_finite(value, gradient):
            raise StopRun(Status.NON_FINITE)
        state.move_to(moved, value, gradient)
        state.exact = full

    def _difference(
        self, problem: Problem, state: VarianceReducedState, moved: Tensor, small: int
    ) -> Tensor:
        index = self._draw(problem, small, moved)
        difference = problem.objective.sample_difference(moved, state.X, index)
        distance = (moved - state.X).norm().item()
        if self.curvature == "auto" and distance > 0 and problem.objective.curvature() is None:
            assert state.curvature is not None
            secant = frobenius(difference) / distance
            state.curvature = max(secant, secant + 0.9 * (state.curvature - secant))
        return state.gradient + difference

    def _known_curvature(self, problem: Problem, state: VarianceReducedState) -> float:
        """L; at the start a secant over one small batch, if the objective knows none."""
        assert self.curvature != "per-plane"
        fresh = state.curvature is None
        L = first_curvature(problem, state, self.curvature)
        if not fresh or self.curvature != "auto" or problem.objective.curvature() is not None:
            return L
        _, small, _ = self._sizes(problem.objective.samples)
        index = self._draw(problem, small, state.X)
        length = frobenius(state.gradient) or 1.0
        probe = state.X - (1e-4 * state.X.norm()) * (state.gradient / length)
        difference = problem.objective.sample_difference(probe, state.X, index)
        secant = frobenius(difference) / (probe - state.X).norm().clamp(min=1e-30).item()
        if math.isfinite(secant) and secant > 0:
            state.curvature = L = secant
        return L

    def _draw(self, problem: Problem, size: int, like: Tensor) -> Tensor:
        index = problem.rng.choice(problem.objective.samples, size=size, replace=False)
        return torch.from_numpy(index).to(like.device)
