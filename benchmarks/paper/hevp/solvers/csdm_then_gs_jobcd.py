"""Half of the time CSDM, then GS-JOBCD as printed from its end."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "CSDM then GS-JOBCD as printed"
    parameters = {"theta": [1.0]}  # in units of the curvature of f

    def stages(self):
        L = self.problem.objective.curvature()
        return [jorth.CSDM(optimizer="adam"), jorth.as_printed("gs-jobcd", theta=self.theta * L)]
