"""Algorithm 1 as printed: pairs with replacement, all components, the exact Q or varsigma I."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "GS-JOBCD as printed"
    parameters = {"theta": [1.0], "Q": ["exact"]}  # theta in units of the curvature of f

    def method(self):
        L = self.problem.objective.curvature()
        return jorth.as_printed("gs-jobcd", Q=self.Q, theta=self.theta * L)
