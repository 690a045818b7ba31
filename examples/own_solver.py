"""A solver of your own, as a template: gradient descent with Barzilai-Borwein steps.

    python examples/own_solver.py

A solver takes steps and nothing else; limits, stopping, the
history, checkpoints and Ctrl-C are the loop's, which is that of all methods.
"""

from dataclasses import dataclass

import torch

import jorth
from jorth.solvers import AbstractSolver, Problem, State


@dataclass
class DescentState(State):
    """What is remembered from one step to the next; a checkpoint saves all of it."""

    length: float = 0.0  # of the next step; 0 before the first
    mean: float = 0.0  # running mean of the values, which may rise above the last one
    weight: float = 0.0  # of that mean


@dataclass(frozen=True, kw_only=True)
class Descent(AbstractSolver):
    """The fields are the options of the method: Descent(memory=0.5)."""

    memory: float = 0.85  # 0 makes every step go downhill
    name = "own-descent"
    state_type = DescentState

    def step(self, problem: Problem, state: DescentState) -> None:
        """One iteration: change the state in place.

        S skew gives K = J S in the Lie algebra, and cayley(t K) X is feasible for every t. The
        slope of f along S is <skew(J G X^T), S>.
        """
        slope = skew(problem, state.X, state.gradient)
        squared = float((slope * slope).sum())
        if squared == 0.0:
            state.stalled = True
            return
        state.weight = self.memory * state.weight + 1
        state.mean += (state.value - state.mean) / state.weight
        longest = squared**-0.5  # longer ones may meet a pole of the Cayley transform
        t = min(state.length or longest, longest)
        while True:
            X = jorth.cayley(-t * problem.signs[:, None] * slope, problem.signature) @ state.X
            value, gradient = problem.objective.value_and_gradient(X)
            if value <= state.mean - 1e-4 * t * squared:
                break
            t /= 2
            if t * squared <= 1e-17 * abs(state.value):  # rounding is all that is left
                state.stalled = True
                return
        if jorth.residual(X, problem.signature) > 1e-14 and X.shape[0] == X.shape[1]:
            X = jorth.polish(X, problem.signature)
        state.move_to(X, value, gradient)
        change = float((slope * (slope - skew(problem, X, gradient))).sum())
        state.length = t * squared / change if change > 0 else 2 * t


def skew(problem: Problem, X: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """The slopes of f in all planes: the skew part of J G X^T."""
    product = problem.signs[:, None] * gradient @ X.T
    return (product - product.T) / 2


if __name__ == "__main__":
    signature = jorth.Signature(6, 4)
    source, target, _ = jorth.datasets.planted_procrustes(100, signature, seed=1)
    result = jorth.minimize(
        jorth.Procrustes(source, target), signature=signature, method=Descent(), max_iterations=5000
    )
    print(result)
    assert result.status is jorth.Status.CONVERGED
    assert result.value < 1e-8
