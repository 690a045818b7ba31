"""Riemannian methods in the trivialisation X <- R(J S) X, S skew: steepest descent, conjugate gradients, L-BFGS."""

from jorth.solvers.riemannian.conjugate_gradients import RiemannianCG
from jorth.solvers.riemannian.lbfgs import RiemannianLBFGS
from jorth.solvers.riemannian.steepest_descent import RiemannianSD

__all__ = ["RiemannianCG", "RiemannianLBFGS", "RiemannianSD"]
