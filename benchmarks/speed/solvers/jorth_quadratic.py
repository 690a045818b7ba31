"""What the default method gains where it is told that f is quadratic; the peers cannot be told."""

from benchmark_utils import Ours


class Solver(Ours):
    name = "jorth, told that f is quadratic"

    def skip(self, problem):
        told = problem.written and problem.quadratic is not None
        return not told, "f is not quadratic, or only its torch function is given"

    def objective(self):
        return self.problem.quadratic
