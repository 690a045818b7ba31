"""J-JOBCD as printed: one random matching per gradient, all components, Q = sigma I."""

from benchmark_utils import Printed


class Solver(Printed):
    name = "J-JOBCD as printed"
    parameters = {"theta": [1.0]}

    @property
    def method(self):
        return self.printed("j-jobcd")
