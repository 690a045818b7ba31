"""Algorithm 2 as printed: PAGE with b = N, b' = ceil(sqrt N), p = b' / (b + b')."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "VR-J-JOBCD as printed"
    parameters = {"sigma": [100.0]}  # there is no L_f; the best of 1, 10, 100 on digits

    @property
    def method(self):
        return jorth.as_printed("vr-j-jobcd", sigma=self.sigma)
