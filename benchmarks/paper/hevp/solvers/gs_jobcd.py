"""GS-JOBCD with our defaults: sweeps without replacement in the component of the start."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "GS-JOBCD"

    @property
    def method(self):
        # -tr(X^T A X) is concave: theta alone bounds the steps
        race = self.problem.objective.sense == "max"
        return jorth.GaussSeidel(theta=self.problem.objective.curvature() if race else None)
