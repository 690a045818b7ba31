"""Newton's method: not a method of the paper."""

from benchmark_utils import Minimizer


class Solver(Minimizer):
    name = "Newton"

    def method(self):
        return "riemannian-newton"
