"""Algorithm 1 as printed: pairs with replacement, all components, Q exact or sigma I."""

from benchmark_utils import Printed


class Solver(Printed):
    name = "GS-JOBCD as printed"
    parameters = {"theta": [1.0], "Q": ["exact"]}

    @property
    def method(self):
        return self.printed("gs-jobcd", self.Q)
