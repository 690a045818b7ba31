"""The hyperbolic structural probe of the paper, in the order in which it is well-posed."""

import torch
from benchmark_utils import Problem, as_numpy, on_device, score
from benchopt import BaseObjective

import jorth

CONDITION = 1.5  # of the random start; at the identity sparse rows have no lift


class Objective(BaseObjective):
    """1/m^2 sum_ij (T_ij - d(q_i, q_j))^2 with q_i = phi(d_i X) and T the Euclidean distances.

    The printed order, phi(d_i) X, has the same value at every feasible X.
    """

    name = "HSPP"
    parameters = {"seconds": [2.0], "seed": [0], "device": ["cpu"]}
    requirements = ["pip::jorth"]
    min_benchopt_version = "1.8"

    def skip(self, D, signature):
        return D is None, "the data are not in JORTH_DATA"

    def set_data(self, D, signature):
        if D is None:
            return
        self.signature = signature
        self.objective = jorth.StructuralProbe(on_device(D, self.device), signature=signature)
        self.x0 = jorth.random_point(signature, cond=CONDITION, seed=self.seed)

    def get_objective(self):
        problem = Problem(
            self.objective, self.signature, self.x0, self.seconds, self.seed, self.device
        )
        return dict(problem=problem)

    def evaluate_result(self, X):
        value = self.objective.value(torch.as_tensor(X, device=self.device))
        return score(value, as_numpy(X), self.signature)

    def get_one_result(self):
        return dict(X=self.x0)
