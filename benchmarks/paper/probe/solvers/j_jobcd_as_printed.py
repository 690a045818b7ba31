"""J-JOBCD as printed: one random matching per gradient, all components, Q = sigma I."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "J-JOBCD as printed"
    parameters = {"sigma": [10.0]}  # L_f of the probe does not exist

    def method(self):
        return jorth.as_printed("j-jobcd", sigma=self.sigma)
