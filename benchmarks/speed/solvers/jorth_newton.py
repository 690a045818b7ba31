"""Our Newton's method."""

from benchmark_utils import Ours


class Solver(Ours):
    name = "jorth Newton"
    method = "riemannian-newton"
