"""J-JOBCD as printed: one random matching per gradient, all components, Q = sigma I."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "J-JOBCD as printed"
    parameters = {"sigma": [1.0]}  # there is no L_f; the best of 1, 10, 100 on digits

    @property
    def method(self):
        return jorth.as_printed("j-jobcd", sigma=self.sigma)
