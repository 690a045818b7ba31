"""The alternating direction method with our penalties."""

from benchmark_utils import Minimizer


class Solver(Minimizer):
    name = "ADMM"
    method = "admm"
