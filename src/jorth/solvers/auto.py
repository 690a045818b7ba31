"""The methods by name, and the one that `method="auto"` takes by what the objective says of itself.

The rules and sizes were chosen by the time to a relative gap of 1e-8 (see docs/howto/choosing.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from jorth.linalg.eigh import is_definite_pencil
from jorth.objectives import AbstractObjective, QuadraticForm
from jorth.signature import Signature
from jorth.solvers.baselines.admm import ADMM
from jorth.solvers.baselines.csdm import CSDM, Exponential
from jorth.solvers.baselines.umcm import UMCM
from jorth.solvers.jobcd.gauss_seidel import GaussSeidel
from jorth.solvers.jobcd.jacobi import Jacobi
from jorth.solvers.jobcd.variance_reduced import VarianceReduced
from jorth.solvers.problem import AbstractSolver, Problem
from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.newton import RiemannianNewton
from jorth.solvers.riemannian.steepest_descent import RiemannianSD

MOST_ROWS_OF_NEWTON = 80
"""The most rows for which Newton's method is faster than L-BFGS with a preconditioner."""
MOST_ROWS_OF_SHIFTED_NEWTON = 64
"""The same for accelerated sweeps if A is indefinite and A - mu J definite."""
MOST_ROWS_TO_DIAGONALISE = 100
"""The most rows for which the J-Jacobi method is as fast as L-BFGS with a preconditioner."""


@dataclass(frozen=True)
class Automatic(AbstractSolver):
    """Stands for the method that `choose` finds, which `minimize` runs in its place."""

    name = "auto"

    def step(self, problem: Problem, state: Any) -> None:
        raise NotImplementedError("auto stands for another method")


METHODS: dict[str, type[AbstractSolver]] = {
    solver.name: solver
    for solver in (
        Automatic,
        GaussSeidel,
        Jacobi,
        VarianceReduced,
        UMCM,
        ADMM,
        CSDM,
        Exponential,
        RiemannianSD,
        RiemannianCG,
        RiemannianLBFGS,
        RiemannianNewton,
    )
}


def choose(
    objective: AbstractObjective, signature: Signature, X: Tensor, *, bounded: bool
) -> tuple[AbstractSolver, str]:
    """Return the method from X, and the kind of objective for which it was chosen.

    ``bounded`` is what `bounded_below` of the objective returns.
    """
    form = objective.quadratic()
    if objective.nonsmooth:
        return VarianceReduced() if objective.samples else Jacobi(), "a rough function"
    if form is None and objective.samples:
        return Jacobi(), "a mean over samples"
    if form is None:
        return RiemannianLBFGS(), "a smooth function"
    n = signature.n
    convex = bounded  # a quadratic that is bounded below over all matrices is convex
    square, on_cpu = X.shape[1] == n, X.device.type == "cpu"
    if not convex and not _is_bounded(form, signature):
        # exact plane steps see at once where f falls for ever
        return GaussSeidel(), "a quadratic not known to be bounded below"
    if not square:
        return RiemannianNewton(), "a quadratic in a thin X"
    if form.D is not None:
        return RiemannianNewton(), "a quadratic with D"
    if form.C is None and on_cpu and (n <= MOST_ROWS_TO_DIAGONALISE or not convex):
        return Jacobi(side="right"), "a trace, which right steps diagonalise"
    if convex:
        newton = on_cpu and X.dtype == torch.float64 and n <= MOST_ROWS_OF_NEWTON
        return RiemannianNewton() if newton else RiemannianLBFGS(), "a convex quadratic"
    newton = not on_cpu or n <= MOST_ROWS_OF_SHIFTED_NEWTON
    kind = "a quadratic that is bounded on the feasible set"
    if newton:
        return RiemannianNewton(), kind
    return GaussSeidel(accelerate=True), f"{kind}, accelerated"


def _is_bounded(form: QuadraticForm, signature: Signature) -> bool:
    """Return whether f is bounded below on the feasible set, as far as this can be known.

    With one sign that set is compact. If A - mu J is positive definite for some mu, f is a constant
    plus a convex function that grows with ||X||, because X^T J X is fixed.
    """
    if signature.p == 0 or signature.q == 0:
        return True
    return form.D is None and is_definite_pencil(form.A.double().cpu().numpy(), signature.signs)
