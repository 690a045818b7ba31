"""Unconstrained multiplier correction, with our step lengths and safeguards."""

from benchmark_utils import Minimizer


class Solver(Minimizer):
    name = "UMCM"
    method = "umcm"
