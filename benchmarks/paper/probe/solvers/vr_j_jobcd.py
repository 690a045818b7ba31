"""The same on slopes of small batches: stochastic steps without PAGE."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "VR-J-JOBCD, averaged slopes"
    method = jorth.VarianceReduced(curvature="per-plane")
