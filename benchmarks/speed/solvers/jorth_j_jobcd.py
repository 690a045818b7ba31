"""Our J-JOBCD with its defaults."""

from benchmark_utils import Ours


class Solver(Ours):
    name = "jorth J-JOBCD"
    method = "j-jobcd"
