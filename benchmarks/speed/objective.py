"""The time to a relative gap, beside pymanopt, cdopt and scipy."""

import numpy as np
from benchmark_utils import ByAutograd, Problem, Procrustes, Robust, Trace
from benchopt import BaseObjective

import jorth

CLASSES = {"procrustes": Procrustes, "trace": Trace, "robust": Robust}


class Objective(BaseObjective):
    """gap: (f - f*) / (f(I) - f*), all runs from I.

    Every solver gets the same ``information``: the "torch" function, or derivatives "written" out.
    """

    name = "speed"
    parameters = {"information": ["torch", "written"], "seconds": [2.0]}
    requirements = ["pip::jorth", "pip::pymanopt", "pip::cdopt"]
    min_benchopt_version = "1.8"

    def set_data(self, task, arguments, signature):
        self.function = CLASSES[task](**arguments)
        self.signature = signature
        self.first = self.function.value(np.eye(signature.n))
        if task == "trace":
            self.optimum = np.abs(jorth.eigh(arguments["A"], signature)[0]).sum()
        else:
            self.optimum = self._best_known()

    def _best_known(self):
        """Return the value of a reference run of Riemannian L-BFGS."""
        objective = self.function.quadratic or self.function
        best = jorth.minimize(
            objective,
            signature=self.signature,
            method="riemannian-lbfgs",
            gradient_tolerance=1e-12,
            max_iterations=2000,
        )
        return best.value

    def get_objective(self):
        written = self.information == "written"
        dense = self.function if written else ByAutograd(self.function)
        problem = Problem(
            self.function, dense, written, self.function.quadratic, self.signature, self.seconds
        )
        return dict(problem=problem)

    def evaluate_result(self, X):
        value = self.function.value(np.ascontiguousarray(X))
        s = self.signature.signs.astype(float)
        error = np.abs(X.T @ (s[:, None] * X) - np.diag(s)).max() / np.linalg.norm(X, 2) ** 2
        gap = (value - self.optimum) / (self.first - self.optimum)
        return dict(value=value, gap=gap, residual=error)

    def get_one_result(self):
        return dict(X=np.eye(self.signature.n))
