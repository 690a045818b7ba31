"""The full CS form with Adam; the paper has a reduced form, and calls Adam ADMM."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "CSDM, full form"
    method = jorth.CSDM(optimizer="adam")
