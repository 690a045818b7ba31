"""Riemannian L-BFGS with our preconditioner: not a method of the paper."""

from benchmark_utils import Minimizer


class Solver(Minimizer):
    name = "Riemannian L-BFGS"
    method = "riemannian-lbfgs"
