"""pymanopt on O(p, q): conjugate gradients and trust regions, with tangent vectors held as skew matrices."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from jorth.bench.speed.dense import DenseProcrustes, Matrix
from jorth.bench.speed.trace import Ended, Trace
from jorth.signature import Signature

SMALLEST = 1e-16
"""A step length and a gradient norm that end no run before its target or its budget."""


def run_pymanopt(
    objective: DenseProcrustes,
    signature: Signature,
    trace: Trace,
    method: str,
    start: Matrix | None = None,
) -> None:
    """Conjugate gradients ("pymanopt CG") or trust regions ("pymanopt TR"), from I or ``start``, to the trace's end."""
    from pymanopt.optimizers import ConjugateGradient, TrustRegions

    limits: dict[str, Any] = dict(
        verbosity=0, max_iterations=10**6, max_time=10 * trace.goal.max_time
    )
    limits |= dict(min_gradient_norm=SMALLEST, min_step_size=SMALLEST)
    optimizer = (ConjugateGradient if method == "pymanopt CG" else TrustRegions)(**limits)
    problem = make_problem(objective, signature, trace)
    with contextlib.suppress(Ended):
        optimizer.run(problem, initial_point=np.eye(signature.n) if start is None else start)


def make_problem(
    objective: DenseProcrustes, signature: Signature, trace: Trace | None = None
) -> Any:
    """The problem; every gradient is a row of the trace."""
    import pymanopt

    manifold = make_manifold(signature)
    hessian = PullbackHessian(objective, signature)

    def gradient(X: Matrix) -> Any:
        if trace is not None:
            trace.record(X)
        return objective.gradient(X)

    told = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        told(objective.value),
        euclidean_gradient=told(gradient),
        riemannian_hessian=told(hessian),
    )


class PullbackHessian:
    """The Hessian of S -> f(R(J S) X) at S = 0, R the Cayley transform: S -> skew(J A J S X X^T - J S L).

    L = sym(J G X^T) is the multiplier. R agrees with exp to second order, so the second derivative along S is
    <A J S X, J S X> + <G, J S J S X>. This is the model that trust regions ask for, at three products; at critical
    points it is the Riemannian Hessian of every metric. What depends on X alone is kept for the last X.
    """

    def __init__(self, objective: DenseProcrustes, signature: Signature) -> None:
        self._objective, self._s = objective, signature.signs.astype(float)[:, None]
        self._A = self._s * objective.curvature() * self._s.T
        self._point: Matrix | None = None

    def __call__(self, X: Matrix, S: Matrix) -> Any:
        """Its value along S."""
        if self._point is not X:
            N = self._s * (self._objective.gradient(X) @ X.T)
            self._point, self._Y, self._multiplier = X, X @ X.T, (N + N.T) / 2
        M = self._A @ (S @ self._Y) - self._s * (S @ self._multiplier)
        return (M - M.T) / 2


def make_manifold(signature: Signature) -> Any:
    """O(p, q) with the right-invariant metric: tangent vectors J S X held as the skew S, Cayley's retraction.

    Leaner than `jorth.adapters.pymanopt.JOrthogonal`: no argument is looked at, and the retraction, which has a pole,
    costs one solve where that one has an exponential.
    """
    from pymanopt.manifolds.manifold import RiemannianSubmanifold

    n, s = signature.n, signature.signs.astype(float)[:, None]
    identity = np.eye(n)

    class IndefiniteOrthogonal(RiemannianSubmanifold):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(f"O({signature.p},{signature.q})", n * (n - 1) // 2)

        @property
        def typical_dist(self) -> float:
            return float(np.pi * np.sqrt(n))

        def inner_product(self, point: Matrix, a: Matrix, b: Matrix) -> Any:
            return np.tensordot(a, b)

        def norm(self, point: Matrix, a: Matrix) -> Any:
            return np.linalg.norm(a)

        def projection(self, point: Matrix, vector: Matrix) -> Matrix:
            return (vector - vector.T) / 2

        to_tangent_space = projection

        def euclidean_to_riemannian_gradient(self, point: Matrix, gradient: Matrix) -> Any:
            M = s * (gradient @ point.T)
            return (M - M.T) / 2

        def retraction(self, point: Matrix, a: Matrix) -> Any:
            K = s * a / 2
            return np.linalg.solve(identity - K, point + K @ point)

        def transport(self, start: Matrix, end: Matrix, a: Matrix) -> Matrix:
            return a

        def zero_vector(self, point: Matrix) -> Matrix:
            return np.zeros((n, n))

        def random_point(self) -> Matrix:
            return identity.copy()

        def random_tangent_vector(self, point: Matrix) -> Any:
            S = np.tri(n) - np.tri(n).T
            return S / np.linalg.norm(S)

    return IndefiniteOrthogonal()
