"""O(p, q) for pymanopt."""

from __future__ import annotations

import numpy as np
import pymanopt
from pymanopt.manifolds.manifold import RiemannianSubmanifold


class IndefiniteOrthogonal(RiemannianSubmanifold):
    """O(p, q) with the right-invariant metric: tangent vectors J S X held as S, Cayley retraction.

    It is faster than `jorth.adapters.pymanopt.JOrthogonal`: arguments are not checked, and the
    retraction, which has a pole, costs one solve instead of an exponential.
    """

    def __init__(self, signature):
        self.n = signature.n
        self.s = signature.signs.astype(float)[:, None]
        super().__init__(f"O({signature.p},{signature.q})", self.n * (self.n - 1) // 2)

    @property
    def typical_dist(self):
        return float(np.pi * np.sqrt(self.n))

    def inner_product(self, point, a, b):
        return np.tensordot(a, b)

    def norm(self, point, a):
        return np.linalg.norm(a)

    def projection(self, point, vector):
        return (vector - vector.T) / 2

    to_tangent_space = projection

    def euclidean_to_riemannian_gradient(self, point, gradient):
        M = self.s * (gradient @ point.T)
        return (M - M.T) / 2

    def retraction(self, point, a):
        K = self.s * a / 2
        return np.linalg.solve(np.eye(self.n) - K, point + K @ point)

    def transport(self, start, end, a):
        return a

    def zero_vector(self, point):
        return np.zeros((self.n, self.n))

    def random_point(self):
        return np.eye(self.n)

    def random_tangent_vector(self, point):
        S = np.tri(self.n) - np.tri(self.n).T
        return S / np.linalg.norm(S)


class PullbackHessian:
    """The Hessian of S -> f(R(J S) X) at S = 0: S -> skew(J H(J S X) X^T - J S L).

    R is the Cayley transform, which agrees with exp to second order, H the Hessian of f and
    L = sym(J G X^T) the multiplier. This is the model that trust regions need.
    """

    def __init__(self, dense, s):
        self.dense, self.s, self.point = dense, s, None

    def __call__(self, X, S):
        if self.point is not X:
            N = self.s * (self.dense.gradient(X) @ X.T)
            self.point, self.multiplier = X, (N + N.T) / 2
        bent = self.s * (self.dense.hessian(X, self.s * (S @ X)) @ X.T)
        M = bent - self.s * (S @ self.multiplier)
        return (M - M.T) / 2


def run(optimizer, problem, watch):
    """Run an optimiser of pymanopt from I; ``watch`` sees the point of every gradient."""
    manifold = IndefiniteOrthogonal(problem.signature)
    as_numpy = pymanopt.function.numpy(manifold)

    def gradient(X):
        watch(X)
        return problem.dense.gradient(X)

    pymanopt_problem = pymanopt.Problem(
        manifold,
        as_numpy(problem.dense.value),
        euclidean_gradient=as_numpy(gradient),
        riemannian_hessian=as_numpy(PullbackHessian(problem.dense, manifold.s)),
    )
    optimizer = optimizer(
        verbosity=0,
        max_iterations=10**6,
        max_time=1e9,
        min_gradient_norm=1e-16,
        min_step_size=1e-16,
    )
    optimizer.run(pymanopt_problem, initial_point=np.eye(manifold.n))
