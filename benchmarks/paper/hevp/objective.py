"""The hyperbolic eigenvalue problem of the paper, and its well-posed form."""

import numpy as np
from benchmark_utils import Problem, as_numpy, on_device, score
from benchopt import BaseObjective

import jorth

RIDGE = 0.01  # in units of the mean eigenvalue of D^T D
STARTS = (2.0, 1.7, 2.5, 1.4, 3.5, 1.2, 5.0)  # condition numbers, in the order of trial
NEAR = (1.01, 1.16)
"""||D X0||^2 / ||D||^2 of the paper's starts, estimated from its Table 1 and the data."""


class Objective(BaseObjective):
    """sense="min": tr(X^T (D^T D + ridge I) X), whose minimum is sum |lambda|; "max": the race.

    The race is the problem as printed, -tr(X^T D^T D X). It is unbounded below: its values say how
    far a run came in its ``seconds``, no more.
    """

    name = "HEVP"
    parameters = {"sense": ["min", "max"], "seconds": [1.0], "seed": [0], "device": ["cpu"]}
    requirements = ["pip::jorth"]
    min_benchopt_version = "1.8"

    def set_data(self, D, signature):
        self.D = D
        self.signature = signature
        if D is None:
            return
        self.x0 = near_orthogonal(D, signature, self.seed)
        self.optimum = self.first = None
        self.A = D.T @ D
        if self.sense == "min":
            self.A = self.A + RIDGE * np.trace(self.A) / len(self.A) * np.eye(len(self.A))
            self.optimum = np.abs(jorth.eigh(self.A, signature)[0]).sum()
            self.first = self.value(self.x0)

    def skip(self, D, signature):
        return D is None, "the data are not in JORTH_DATA"

    def value(self, X):
        value = np.vdot(X, self.A @ X)
        return value if self.sense == "min" else -value

    def get_objective(self):
        objective = jorth.HyperbolicEigenvalue(on_device(self.A, self.device), sense=self.sense)
        problem = Problem(objective, self.signature, self.x0, self.seconds, self.seed, self.device)
        return dict(problem=problem)

    def evaluate_result(self, X):
        X = as_numpy(X)
        row = score(self.value(X), X, self.signature)
        if self.optimum is not None:
            row["gap"] = (row["value"] - self.optimum) / (self.first - self.optimum)
        return row

    def get_one_result(self):
        return dict(X=self.x0)


def near_orthogonal(D, signature, seed):
    """Return a random start whose ||D X0||^2 / ||D||^2 is close to the paper's."""
    ratios = {}
    for condition in STARTS:
        X = jorth.random_point(signature, cond=condition, seed=seed)
        ratio = np.sum((D @ X) ** 2) / np.sum(D * D)
        if NEAR[0] <= ratio <= NEAR[1]:
            return X
        ratios[abs(ratio - sum(NEAR) / 2)] = X
    return ratios[min(ratios)]
