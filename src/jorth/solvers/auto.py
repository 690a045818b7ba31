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


SOLVERS: tuple[type[AbstractSolver], ...] = (
    *(Automatic, GaussSeidel, Jacobi, VarianceReduced, UMCM, ADMM, CSDM, Exponential),
    *(RiemannianSD, RiemannianCG, RiemannianLBFGS, RiemannianNewton),
)
METHODS = {solver.name: solver for solver in SOLVERS}

NEWTON, LBFGS = RiemannianNewton(), RiemannianLBFGS()
SWEEPS, FRAMED_SWEEPS = GaussSeidel(), GaussSeidel(accelerate=True)
PAIRS, RIGHT_PAIRS, SAMPLED_PAIRS = Jacobi(), Jacobi(side="right"), VarianceReduced()


def choose(
    objective: AbstractObjective, signature: Signature, X: Tensor, *, bounded: bool
) -> tuple[AbstractSolver, str]:
    """Return the method from X, and the kind of objective for which it was chosen.

    ``bounded`` is what `bounded_below` of the objective returns: a quadratic that is bounded below
    over all matrices is convex.
    """
    form, n = objective.quadratic(), signature.n
    if objective.nonsmooth:
        return SAMPLED_PAIRS if objective.samples else PAIRS, "a rough function"
    if form is None:
        return (PAIRS, "a mean over samples") if objective.samples else (LBFGS, "a smooth function")
    on_cpu = X.device.type == "cpu"
    in_double = on_cpu and X.dtype == torch.float64
    of_trace = form.C is None and on_cpu and (n <= MOST_ROWS_TO_DIAGONALISE or not bounded)
    framed = on_cpu and n > MOST_ROWS_OF_SHIFTED_NEWTON
    falls = not bounded and not _is_bounded(form, signature)
    table = (
        # exact plane steps see at once where f falls for ever
        (falls, SWEEPS, "a quadratic not known to be bounded below"),
        (X.shape[1] < n, NEWTON, "a quadratic in a thin X"),
        (form.D is not None, NEWTON, "a quadratic with D"),
        (of_trace, RIGHT_PAIRS, "a trace, which right steps diagonalise"),
        (bounded and in_double and n <= MOST_ROWS_OF_NEWTON, NEWTON, "a convex quadratic"),
        (bounded, LBFGS, "a convex quadratic"),
        (framed, FRAMED_SWEEPS, "a quadratic that is bounded on the feasible set, accelerated"),
    )
    for fits, solver, kind in table:
        if fits:
            return solver, kind
    return NEWTON, "a quadratic that is bounded on the feasible set"


def _is_bounded(form: QuadraticForm, signature: Signature) -> bool:
    """Return whether f is bounded below on the feasible set, as far as this can be known.

    With one sign that set is compact. If A - mu J is positive definite for some mu, f is a constant
    plus a convex function that grows with ||X||, because X^T J X is fixed.
    """
    if signature.p == 0 or signature.q == 0:
        return True
    return form.D is None and is_definite_pencil(form.A.double().cpu().numpy(), signature.signs)
