"""`method="auto"`: a method chosen by what the objective says about itself.

The rules and sizes were chosen by the time to a relative gap of 1e-8 (see docs/howto/choosing.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth.linalg.definite import is_definite_pencil
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.signature import Signature
from jorth.solvers.jobcd.accelerated import AcceleratedGaussSeidel
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.loop.solver import AbstractSolver, Problem
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.newton import RiemannianNewton

MOST_ROWS_OF_NEWTON = 80
"""The most rows for which Newton's method is faster than L-BFGS with a preconditioner."""
MOST_ROWS_OF_SHIFTED_NEWTON = 64
"""The same for accelerated sweeps if A is indefinite and A - mu J definite."""
MOST_ROWS_TO_DIAGONALISE = 100
"""The most rows for which the J-Jacobi method is as fast as L-BFGS with a preconditioner."""


class Choice(NamedTuple):
    """A method, and the kind of problem for which it was chosen."""

    solver: AbstractSolver
    reason: str


@dataclass(frozen=True)
class Automatic(AbstractSolver):
    """Stands for the method that `choose` finds, which `minimize` runs in its place."""

    name = "auto"

    def step(self, problem: Problem, state: Any) -> None:
        raise NotImplementedError("auto stands for another method")


def choose(
    objective: AbstractObjective, signature: Signature, X: Tensor, *, bounded: bool
) -> Choice:
    """The method for an objective from X; ``bounded`` is its `bounded_below`."""
    if objective.nonsmooth:
        rough = VarianceReduced() if objective.samples else Jacobi()
        return Choice(rough, "a rough function")
    form = objective.quadratic()
    if form is not None:
        # a quadratic that is bounded below over all matrices is convex
        return _for_quadratic(form, signature, X, convex=bounded)
    if objective.samples:
        return Choice(Jacobi(), "a mean over samples")
    return Choice(RiemannianLBFGS(), "a smooth function")


def _for_quadratic(form: QuadraticForm, signature: Signature, X: Tensor, *, convex: bool) -> Choice:
    n = signature.n
    square = X.shape[1] == n
    plain = square and form.D is None
    on_cpu = X.device.type == "cpu"
    if not convex and not _is_bounded(form, signature):
        # exact plane steps see at once where f falls for ever
        return Choice(GaussSeidel(), "a quadratic not known to be bounded below")
    if plain and form.C is None and on_cpu and (n <= MOST_ROWS_TO_DIAGONALISE or not convex):
        return Choice(Jacobi(side="right"), "a trace, which right steps diagonalise")
    if plain and convex:
        newton = on_cpu and X.dtype == torch.float64 and n <= MOST_ROWS_OF_NEWTON
        solver: AbstractSolver = RiemannianNewton() if newton else RiemannianLBFGS()
        return Choice(solver, "a convex quadratic")
    if plain:
        newton = not on_cpu or n <= MOST_ROWS_OF_SHIFTED_NEWTON
        solver = RiemannianNewton() if newton else AcceleratedGaussSeidel()
        return Choice(solver, "a quadratic that is bounded on the feasible set")
    return Choice(RiemannianNewton(), f"a quadratic {'with D' if square else 'in a thin X'}")


def _is_bounded(form: QuadraticForm, signature: Signature) -> bool:
    """Whether f is bounded below on the feasible set, as far as this can be known.

    With one sign that set is compact. If A - mu J is positive definite for some mu, f is a constant
    plus a convex function that grows with ||X||, because X^T J X is fixed.
    """
    if signature.p == 0 or signature.q == 0:
        return True
    return form.D is None and is_definite_pencil(form.A.double().cpu().numpy(), signature.signs)
