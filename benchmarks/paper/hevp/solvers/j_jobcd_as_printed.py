"""J-JOBCD as printed: one random matching per gradient, all components, Q = varsigma I."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "J-JOBCD as printed"
    parameters = {"theta": [1.0]}  # in units of the curvature of f

    def method(self):
        L = self.problem.objective.curvature()
        return jorth.as_printed("j-jobcd", theta=self.theta * L)
