"""scipy's L-BFGS on the parametrisation X = exp(J S), S skew, which torch differentiates."""

import numpy as np
import torch
from benchmark_utils import Timed
from scipy.optimize import minimize


class Solver(Timed):
    name = "scipy L-BFGS on exp(J S)"

    def solve(self, watch):
        n = self.problem.signature.n
        rows, columns = np.triu_indices(n, 1)
        s = torch.from_numpy(self.problem.signature.signs.astype(float))[:, None]
        dense = self.problem.dense

        def value_and_slope(w):
            weights = torch.from_numpy(w).requires_grad_()
            S = torch.zeros(n, n, dtype=torch.float64)
            S = S.index_put((torch.from_numpy(rows), torch.from_numpy(columns)), weights)
            X = torch.matrix_exp(s * (S - S.mT))
            point = X.detach().numpy()
            watch(point)
            G = torch.from_numpy(np.ascontiguousarray(dense.gradient(point)))
            return dense.value(point), torch.autograd.grad(X, weights, G)[0].numpy()

        minimize(
            value_and_slope,
            np.zeros(len(rows)),
            jac=True,
            method="L-BFGS-B",
            options=dict(maxiter=10**6, maxfun=10**7, ftol=0, gtol=0, maxcor=10),
        )
