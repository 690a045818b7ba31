"""cdopt on O(p, q): constraint dissolving, minimised by scipy's L-BFGS."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from jorth.bench.speed.dense import DenseProcrustes, Matrix
from jorth.bench.speed.trace import Ended, Trace
from jorth.group import polish
from jorth.signature import Signature

MEMORY = 10


def run_cdopt(objective: DenseProcrustes, signature: Signature, trace: Trace, beta: float) -> None:
    """From the identity, until the trace ends it; rows are of polished points, which is on no clock."""
    from scipy.optimize import minimize

    n = signature.n
    problem = make_problem(objective, signature, beta)

    def callback(x: Matrix) -> None:
        trace.record(lambda: _polished(x.reshape(n, n), signature))

    with contextlib.suppress(Ended):
        trace.record(np.eye(n))
        minimize(
            problem.cdf_fun_vec_np,
            np.eye(n).ravel(),
            jac=problem.cdf_grad_vec_np,
            method="L-BFGS-B",
            callback=callback,
            options={"maxiter": 10**6, "maxfun": 10**7, "ftol": 0, "gtol": 0, "maxcor": MEMORY},
        )


def make_problem(objective: DenseProcrustes, signature: Signature, beta: float) -> Any:
    """The dissolved problem."""
    from cdopt.core.problem import problem

    A = objective.curvature()
    return problem(
        make_manifold(signature),
        objective.value,
        obj_grad=objective.gradient,
        obj_hvp=lambda X, D: A @ D,
        beta=beta,
    )


def make_manifold(signature: Signature) -> Any:
    """X^T J X = J with the dissolving map A(X) = X (3 I - J X^T J X) / 2."""
    from cdopt.manifold_np import basic_manifold_np

    n, s = signature.n, signature.signs.astype(float)
    J, identity = np.diag(s), np.eye(n)

    class IndefiniteOrthogonal(basic_manifold_np):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("O(p,q)", (n, n), (n, n))

        def C(self, X: Matrix) -> Any:
            return X.T @ (s[:, None] * X) - J

        def A(self, X: Matrix) -> Any:
            return 1.5 * X - 0.5 * X @ (s[:, None] * (X.T @ (s[:, None] * X)))

        def JA_transpose(self, X: Matrix, D: Matrix) -> Any:
            JX = s[:, None] * X
            gram = (X.T @ JX) * s
            return D @ (1.5 * identity - 0.5 * gram) - 0.5 * (
                JX @ ((D.T @ X) * s) + (JX * s) @ (X.T @ D)
            )

        def JC(self, X: Matrix, Lambda: Matrix) -> Any:
            return 2 * (s[:, None] * X) @ ((Lambda + Lambda.T) / 2)

        def generate_cdf_fun(self, f: Any, beta: float) -> Any:
            return lambda X: f(self.A(X)) + beta / 4 * np.linalg.norm(self.C(X)) ** 2

        def generate_cdf_grad(self, g: Any, beta: float) -> Any:
            return lambda X: self.JA_transpose(X, g(self.A(X))) + beta / 2 * self.JC(X, self.C(X))

        def Init_point(self, Xinit: Any = None) -> Matrix:
            return identity.copy()

    return IndefiniteOrthogonal()


def _polished(X: Matrix, signature: Signature) -> Matrix | None:
    """The J-orthogonal factor of X, or None where there is none: the point has no value then."""
    try:
        return np.asarray(polish(X.copy(), signature), dtype=np.float64)
    except ValueError:
        return None
