"""pymanopt's ConjugateGradient on O(p, q)."""

from benchmark_utils import Timed
from benchmark_utils.pymanopt_group import run
from pymanopt.optimizers import ConjugateGradient


class Solver(Timed):
    name = "pymanopt ConjugateGradient"

    def solve(self, watch):
        run(ConjugateGradient, self.problem, watch)
