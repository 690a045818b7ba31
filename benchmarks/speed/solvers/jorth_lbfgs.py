"""Our Riemannian L-BFGS."""

from benchmark_utils import Ours


class Solver(Ours):
    name = "jorth L-BFGS"
    method = "riemannian-lbfgs"
