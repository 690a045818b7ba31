"""J-JOBCD as printed: one random matching per gradient, all components, Q = varsigma I."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "J-JOBCD as printed"
    parameters = {"curvature": [1.0], "theta": [1e-3]}  # L_f of the probe does not exist

    def method(self):
        return jorth.as_printed("j-jobcd", curvature=self.curvature, theta=self.theta)
