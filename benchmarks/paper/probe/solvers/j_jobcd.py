"""What our J-JOBCD does on a rough objective: steps along averaged slopes."""

from benchmark_utils import Minimizer

import jorth


class Solver(Minimizer):
    name = "J-JOBCD, averaged slopes"
    method = jorth.Jacobi(curvature="per-plane")
