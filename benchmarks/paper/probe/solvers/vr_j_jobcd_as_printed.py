"""Algorithm 2 as printed: PAGE with b = N, b' = ceil(sqrt N), p = b' / (b + b')."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "VR-J-JOBCD as printed"
    parameters = {"curvature": [1.0], "theta": [1e-3]}  # L_f of the probe does not exist

    def method(self):
        return jorth.as_printed("vr-j-jobcd", curvature=self.curvature, theta=self.theta)
