"""pymanopt's TrustRegions on O(p, q)."""

from benchmark_utils import Timed
from benchmark_utils.pymanopt_group import run
from pymanopt.optimizers import TrustRegions


class Solver(Timed):
    name = "pymanopt TrustRegions"

    def solve(self, watch):
        run(TrustRegions, self.problem, watch)
