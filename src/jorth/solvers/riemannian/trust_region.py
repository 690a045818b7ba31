"""The step of a trust region: conjugate gradients on the second-order model of f, truncated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from jorth._inputs import frobenius, unit_roundoff
from jorth.group.exp_log import cayley_step
from jorth.solvers.problem import Problem, State
from jorth.solvers.riemannian.line_search import Line, Trial, inner

Product = Callable[[Tensor], Tensor]

INEXACT = 0.1
"""The largest relative residual of conjugate gradients; near the optimum it falls with ||g||."""
INNER_STEPS = 500
DAMPING = 0.03
"""The share of the curvature that is added to it, over ||g|| relative to the largest one."""
LARGEST_DAMPING = 1e-2
"""The largest share."""
GOOD, BAD = 0.75, 0.25
"""The shares of the expected decrease above which the region grows, and below which it shrinks."""
GROW, SHRINK = 2.0, 0.25


@dataclass
class Step:
    """A step S in the region, which minimises the model along the path of conjugate gradients."""

    S: Tensor
    curvature: float
    """<S, H S> with the damped H."""
    at_boundary: bool

    def next_radius(self, radius: float, line: Line, before: float, trial: Trial) -> float:
        """The radius after the search from f = ``before``: how far the model was right."""
        length = frobenius(self.S)
        if trial.t < 1:
            return trial.t * length
        expected = line.slope + self.curvature / 2
        rounding = 1e3 * unit_roundoff(self.S) * max(abs(before), abs(trial.value))
        if abs(expected) <= rounding:
            return radius
        share = (trial.value - before) / expected
        if share < BAD:
            return SHRINK * length
        return GROW * radius if self.at_boundary and share > GOOD else radius


@dataclass
class Model:
    """<g, S> + <S, H S> / 2, and how accurate its minimiser must be and can be.

    ``relative`` is ||g|| relative to the largest one of the run, and ``noise`` the error of g and H
    relative to g and H.
    """

    g: Tensor
    product: Product
    precondition: Product
    relative: float
    noise: float


def truncated_step(model: Model, radius: float) -> Step:
    """Minimise the model for ||S||_F <= radius (Steihaug, SIAM J. Numer. Anal. 20, 1983).

    Conjugate gradients end inside once the residual is below min(0.1, ``relative``) ||g||: this
    makes the end of a run quadratic. A direction of negative curvature, or one that leaves the
    region, is followed to the boundary.

    Along some directions f does not change at all: rotations among equal signs in a trace, or those
    that leave a thin X in place. There the curvature is at most of the size of g, of either sign,
    and in the end it is rounding; neither must decide how far a step goes. So a share of the
    curvature along g is added to all curvatures, which falls with ||g|| down to the noise. The end
    of a run stays quadratic.
    """
    wanted = max(min(INEXACT, model.relative), min(model.noise, 1.0)) ** 2
    r = model.g.clone()
    S, HS = torch.zeros_like(r), torch.zeros_like(r)
    p = -model.precondition(r)
    weight = first = -inner(r, p)
    damping = 0.0
    for step in range(INNER_STEPS):
        Hp = model.product(p)
        curvature, size = inner(p, Hp), inner(p, p)
        if not math.isfinite(curvature) or not size > 0:
            break
        if step == 0:
            share = max(model.noise, DAMPING * model.relative)
            damping = min(LARGEST_DAMPING, share) * abs(curvature) / size
        Hp.add_(p, alpha=damping)
        curvature += damping * size
        length = weight / curvature if curvature > 0 else math.inf
        reach = _to_boundary(S, p, radius)
        if length >= reach:
            S.add_(p, alpha=reach)
            HS.add_(Hp, alpha=reach)
            return Step(S, inner(S, HS), True)
        S.add_(p, alpha=length)
        HS.add_(Hp, alpha=length)
        r.add_(Hp, alpha=length)
        z = model.precondition(r)
        before, weight = weight, inner(r, z)
        if not weight > wanted * first:
            break
        p = (weight / before) * p - z
    return Step(S, inner(S, HS), False)


def _to_boundary(S: Tensor, p: Tensor, radius: float) -> float:
    """The t >= 0 with ||S + t p||_F = radius; 0 if S is outside already."""
    a, b, c = inner(p, p), inner(S, p), inner(S, S) - radius * radius
    if not c < 0:
        return 0.0
    root = math.sqrt(b * b - a * c)
    return -c / (b + root) if b > 0 else (root - b) / a


class Hessian(NamedTuple):
    """S -> H S, and the error of H relative to H."""

    product: Product
    noise: float


def hessian(problem: Problem, state: State, *, exact: bool = True) -> Hessian:
    """S -> skew(J f''(X)[J S X] X^T - J S M); without ``exact`` from differences of gradients."""
    X, s = state.X, problem.signs[:, None]
    N = s * (state.gradient @ X.mT)
    M = (N + N.mT) / 2
    given = problem.objective.hessian(X) if exact else None
    step = math.sqrt(unit_roundoff(X))

    def second(S: Tensor) -> Tensor:
        """f''(X)[J S X]."""
        if given is not None:
            return given(s * (S @ X))
        t = step / max(frobenius(S), 1e-300)
        _, moved = problem.objective.value_and_gradient(cayley_step(t * s * S, X))
        return (moved - state.gradient) / t

    def product(S: Tensor) -> Tensor:
        P = s * (second(S) @ X.mT - S @ M)
        return (P - P.mT) / 2

    return Hessian(product, step if given is None else 0.0)
