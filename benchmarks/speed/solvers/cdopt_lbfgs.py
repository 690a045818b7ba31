"""cdopt's constraint dissolving with scipy's L-BFGS; iterates are polished, then scored."""

import numpy as np
from benchmark_utils import Timed
from cdopt.core.problem import problem as dissolved
from cdopt.manifold_np import basic_manifold_np
from scipy.optimize import minimize

import jorth


class IndefiniteOrthogonal(basic_manifold_np):
    """X^T J X = J with the map A(X) = X (3 I - J X^T J X) / 2."""

    def __init__(self, signature):
        self.s = signature.signs.astype(float)
        shape = (signature.n, signature.n)
        super().__init__("O(p,q)", shape, shape)

    def C(self, X):
        return X.T @ (self.s[:, None] * X) - np.diag(self.s)

    def A(self, X):
        return 1.5 * X - 0.5 * X @ (self.s[:, None] * (X.T @ (self.s[:, None] * X)))

    def JA_transpose(self, X, D):
        s = self.s
        JX = s[:, None] * X
        gram = (X.T @ JX) * s
        turned = JX @ ((D.T @ X) * s) + (JX * s) @ (X.T @ D)
        return D @ (1.5 * np.eye(len(s)) - 0.5 * gram) - 0.5 * turned

    def JC(self, X, Lambda):
        return (self.s[:, None] * X) @ (Lambda + Lambda.T)

    def generate_cdf_fun(self, f, beta):
        return lambda X: f(self.A(X)) + beta / 4 * np.linalg.norm(self.C(X)) ** 2

    def generate_cdf_grad(self, g, beta):
        return lambda X: self.JA_transpose(X, g(self.A(X))) + beta / 2 * self.JC(X, self.C(X))

    def Init_point(self, Xinit=None):
        return np.eye(len(self.s))


class Solver(Timed):
    name = "cdopt L-BFGS"
    parameters = {"beta": [1.0, 10.0]}  # the penalty; quote the better one

    def solve(self, watch):
        dense, n = self.problem.dense, self.problem.signature.n
        built = dissolved(
            IndefiniteOrthogonal(self.problem.signature),
            dense.value,
            obj_grad=dense.gradient,
            obj_hvp=dense.hessian,
            beta=self.beta,
        )
        minimize(
            built.cdf_fun_vec_np,
            np.eye(n).ravel(),
            jac=built.cdf_grad_vec_np,
            method="L-BFGS-B",
            callback=lambda x: watch(x.reshape(n, n).copy()),
            options=dict(maxiter=10**6, maxfun=10**7, ftol=0, gtol=0, maxcor=10),
        )

    def get_result(self):
        try:
            return dict(X=np.asarray(jorth.polish(self.X, self.problem.signature)))
        except ValueError:  # there is no J-orthogonal factor
            return dict(X=self.X * np.nan)
