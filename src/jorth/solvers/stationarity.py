"""Block stationarity: how far a point is from the best steps in all planes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth import _inputs
from jorth._inputs import frobenius, unit_roundoff
from jorth.objectives import QuadraticForm
from jorth.plane import PlaneSolution, all_pairs, random_pairs, solve_rows
from jorth.signature import Signature
from jorth.solvers.problem import Problem, State, all_finite, objective_at

RELATIVE_THETA = 1e-5
"""The proximal weight of the loop, relative to the curvature, whatever the units of f."""


class BlockStationarity(NamedTuple):
    """The mean over pairs of the squared distance from I to the best step; see the function."""

    value: float
    standard_error: float
    pairs: int


def block_stationarity(
    objective: Any,
    X: Any,
    signature: Signature,
    *,
    theta: float = 1e-5,
    pairs: int | None = None,
    curvature: float | None = None,
    seed: int = 0,
) -> BlockStationarity:
    """Return the mean over pairs of ||V - I||_F^2, V the best step at X in the plane of a pair.

    It is zero exactly at block-stationary points, where no step in any plane, to any component,
    lowers the surrogate; this is stronger than criticality. If the surrogate is unbounded below in
    some plane, the value and the standard error are inf.

    Args:
        objective: An objective or a torch function.
        X: (n, k).
        signature: The signs of J.
        theta: The proximal weight of the plane problems, an absolute number as in the paper.
        pairs: The number of pairs drawn at random; None takes all. The standard error is that of
            the sample mean.
        curvature: A Lipschitz constant of the gradient, for objectives that are not quadratic and
            do not know one.
        seed: The seed of the sample.

    >>> sig = jorth.Signature(1, 1)
    >>> jorth.block_stationarity(jorth.Quadratic(np.diag([1.0, 2.0])), np.eye(2), sig).value
    0.0
    """
    function, signature, point = objective_at(objective, X, signature)
    if signature.n < 2:
        raise ValueError(f"signature must have n of at least 2 for a pair, got {signature}")
    _inputs.check_count(pairs, "pairs")
    _inputs.finite_number(theta, "theta")
    if curvature is not None:
        _inputs.positive_number(curvature, "curvature")
    G = function.value_and_gradient(point)[1].detach()
    _inputs.check_finite(G, "the objective's gradient at X")
    form, L = function.quadratic(), function.curvature() if curvature is None else curvature
    if form is None and L is None:
        raise ValueError("curvature must be given for an objective that knows none, got None")
    n, unit = signature.n, torch.eye(2).to(point)
    index = all_pairs(n) if pairs is None else random_pairs(n, pairs, seed=seed)
    steps = [found for _, found in _plane_steps(point, G, index, signature, theta, form, L)]
    distance = torch.cat([(found.V - unit).square().sum(dim=(-2, -1)) for found in steps])
    distance[torch.cat([found.unbounded for found in steps])] = torch.inf
    value = distance.mean().item()
    spread = 0.0 if pairs is None or pairs < 2 else float(distance.std() / np.sqrt(len(index)))
    return BlockStationarity(value, spread if value < np.inf else np.inf, len(index))


def lower_plane(problem: Problem, state: State) -> tuple[tuple[Tensor, float, Tensor] | None, bool]:
    """Return a point with a lower f in some plane, f and its gradient there, and unboundedness.

    The planes of all pairs are searched for the best step to another valley, at least 0.1 from I;
    shorter ones are left to the method. Such a step leads to another component, or over a rise.
    """
    X, G, objective = state.X, state.gradient, problem.objective
    if len(X) == 1 or objective.objective.nonsmooth:
        return None, False
    form = objective.quadratic()
    L = state.curvature or objective.curvature() or frobenius(G) / frobenius(X)
    best, least, unit = None, 0.0, torch.eye(2).to(X)
    index = all_pairs(problem.signature.n)
    for part, found in _plane_steps(X, G, index, problem.signature, RELATIVE_THETA * L, form, L):
        if problem.ends_unbounded and bool(found.unbounded.any()):
            return None, True
        far = (found.V - unit).square().sum(dim=(-2, -1)) > 0.1**2
        decrease = torch.where(far & ~found.unbounded, found.decrease, 0.0)
        place = int(decrease.argmax())
        if float(decrease[place]) > least:
            least = float(decrease[place])
            best = X.clone()
            best[part[place]] = found.V[place] @ X[part[place]]
    size = abs(state.value) + abs(float((G * X).sum()))
    clear = 1e3 * unit_roundoff(X) * size
    if best is None or not least > clear:
        return None, False
    value, gradient = objective.value_and_gradient(best)
    lower = all_finite(value, gradient) and value < state.value - clear
    return ((best, value, gradient) if lower else None), False


def _plane_steps(
    X: Tensor,
    G: Tensor,
    index: NDArray[np.int64],
    signature: Signature,
    theta: float,
    form: QuadraticForm | None,
    L: float | None,
) -> Iterator[tuple[Tensor, PlaneSolution]]:
    """Yield pairs and the best left steps in their planes, in chunks that take little memory."""
    A, D = (L, None) if form is None else (form.like(X).A, form.like(X).D)
    pairs, signs = torch.as_tensor(index, device=X.device), signature.vector(X)
    # on the CPU 25 MB for rows of 300 entries, on a device 0.5 GB per array for rows of 1000
    size = 1024 if X.device.type == "cpu" else 2**15
    for part in torch.split(pairs, size):
        block = A[part[:, :, None], part[:, None, :]] if isinstance(A, Tensor) else A
        found = solve_rows(G[part], X[part], block, signs[part], D=D, theta=theta, check=False)
        yield part, found
