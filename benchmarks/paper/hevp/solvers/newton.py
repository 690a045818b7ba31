"""Newton's method: not a method of the paper."""

from benchmark_utils import Minimizer


class Solver(Minimizer):
    name = "Newton"
    method = "riemannian-newton"
