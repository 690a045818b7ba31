"""O(p, q) as a manifold of pymanopt."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._inputs import (
    check_finite,
    check_signature,
    describe,
    finite_result,
    generator,
    to_floats,
    to_tensor,
)
from jorth.adapters import metric
from jorth.adapters.metric import apply_step, skew
from jorth.extras import needs
from jorth.group import random_point
from jorth.group.geodesics import geodesic_log
from jorth.group.gradient import skew_gradient
from jorth.signature import Signature

with needs("jorth.adapters.pymanopt", "pymanopt"):
    from pymanopt.manifolds.manifold import Manifold

Matrix = NDArray[Any]


class JOrthogonal(Manifold):
    """The matrices X^T J X = J with the right-invariant metric <J S1 X, J S2 X>_X = <S1, S2>_F.

    A tangent vector J S X is held as its skew S (n, n), as pymanopt's own groups hold theirs, so
    that the metric, the transport and the test for tangency are exact. `embedding` gives the
    ambient vector, which pymanopt needs for Euclidean Hessians. The class is not a
    `RiemannianSubmanifold`, as the metric is not that of the embedding.

    Solvers stay in the component of the start. Points drift from the constraint by rounding alone
    and are never re-projected; `jorth.polish` does so on request. `exp` has no inverse in closed
    form: `log`, `dist` and `pair_mean` take Newton's method, as `jorth.distance` does.

    At an exact optimum some of pymanopt's solvers divide zero by zero: tangent vectors may hold
    NaN, and a step along one of them is none.

    Args:
        signature: The signs of J.
        cond: The condition number of random points.
        component: The component of random points: the signs of det X[+,+] and det X[-,-].
        seed: The seed of random points and tangent vectors: an integer or a NumPy generator.

    >>> from jorth.adapters.pymanopt import JOrthogonal
    >>> manifold = JOrthogonal(jorth.Signature(2, 1))
    >>> jorth.residual(manifold.random_point(), jorth.Signature(2, 1)) < 1e-14
    True
    """

    def __init__(
        self,
        signature: Signature,
        *,
        cond: float = 10.0,
        component: tuple[int, int] = (1, 1),
        seed: int | np.random.Generator = 0,
    ) -> None:
        self.signature = signature = check_signature(signature)
        n = signature.n
        self.cond = cond
        self.component = component
        self._generator = generator(seed)
        super().__init__(f"J-orthogonal group O({signature.p}, {signature.q})", n * (n - 1) // 2)

    @property
    def typical_dist(self) -> float:
        """Return pi sqrt(n), as in pymanopt's SO(n): the scale of rotations. Boosts have none."""
        return math.pi * math.sqrt(self.signature.n)

    def inner_product(
        self, point: Matrix, tangent_vector_a: Matrix, tangent_vector_b: Matrix
    ) -> np.float64:
        """Return <S_a, S_b>_F."""
        a = self._matrix(tangent_vector_a, "tangent_vector_a")
        b = self._matrix(tangent_vector_b, "tangent_vector_b")
        return np.float64(np.vdot(a, b))  # pymanopt may divide it by zero

    def norm(self, point: Matrix, tangent_vector: Matrix) -> np.float64:
        """Return ||S||_F."""
        return np.float64(np.linalg.norm(self._matrix(tangent_vector, "tangent_vector")))

    def projection(self, point: Matrix, vector: Matrix) -> Matrix:
        """Return skew(J U X^-1), S of the tangent vector nearest to U in ||U X^-1||_F."""
        return self._computed(metric.projection_coordinates, point=point, vector=vector)

    def to_tangent_space(self, point: Matrix, vector: Matrix) -> Matrix:
        """Return skew(S)."""
        S = self._matrix(vector, "vector")
        return (S - S.T) / 2

    def embedding(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """Return the tangent vector J S X in the ambient space."""
        return self._computed(metric.embed, point=point, tangent_vector=tangent_vector)

    def euclidean_to_riemannian_gradient(self, point: Matrix, euclidean_gradient: Matrix) -> Matrix:
        """Return skew(J G X^T)."""
        return self._computed(skew_gradient, point=point, euclidean_gradient=euclidean_gradient)

    def euclidean_to_riemannian_hessian(
        self,
        point: Matrix,
        euclidean_gradient: Matrix,
        euclidean_hessian: Matrix,
        tangent_vector: Matrix,
    ) -> Matrix:
        """Return the Levi-Civita derivative of the gradient.

        ``euclidean_hessian`` is the derivative of the Euclidean gradient along J S X.
        """
        return self._computed(
            metric.hessian_coordinates,
            point=point,
            euclidean_gradient=euclidean_gradient,
            euclidean_hessian=euclidean_hessian,
            tangent_vector=tangent_vector,
        )

    def retraction(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """Return exp(K) X for K = J S with a bounded boost, which agrees with `exp` to first order.

        No step overflows or leaves the component.
        """
        return self._apply(metric.bounded_exp, point, tangent_vector)

    def exp(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """Return the geodesic from X along J S X after unit time, an error where it overflows."""
        return self._apply(metric.geodesic_step, point, tangent_vector)

    def log(self, point_a: Matrix, point_b: Matrix) -> Matrix:
        """Return S of the geodesic from A to B, an error if none is found; it inverts `exp`."""
        A, B = self._tensors(point_a=point_a, point_b=point_b)
        K = geodesic_log(A, B, self.signature)
        return skew(self.signature.vector(K)[:, None] * K).numpy()

    def dist(self, point_a: Matrix, point_b: Matrix) -> np.float64:
        """Return the norm of `log`, as `jorth.distance`."""
        return self.norm(point_a, self.log(point_a, point_b))

    def pair_mean(self, point_a: Matrix, point_b: Matrix) -> Matrix:
        """Return the midpoint of the geodesic from A to B."""
        return self.exp(point_a, self.log(point_a, point_b) / 2)

    def _apply(self, step: metric.Step, point: Matrix, tangent_vector: Matrix) -> Matrix:
        if np.isnan(self._matrix(tangent_vector, "tangent_vector")).any():
            return np.array(self._matrix(point, "point"))
        X, S = self._tensors(point=point, tangent_vector=tangent_vector)
        return apply_step(step, X, skew(S), self.signature, "point and tangent_vector").numpy()

    def transport(self, point_a: Matrix, point_b: Matrix, tangent_vector_a: Matrix) -> Matrix:
        """Return the right translation K X -> K Y, which keeps S: an isometry, of no path."""
        return self._matrix(tangent_vector_a, "tangent_vector_a")

    def zero_vector(self, point: Matrix) -> Matrix:
        return np.zeros_like(self._matrix(point, "point"))

    def random_point(self) -> Matrix:
        """Return the next point of the generator, in the component, of the condition number."""
        point: Matrix = random_point(
            self.signature, cond=self.cond, component=self.component, seed=self._generator
        )
        return point

    def random_tangent_vector(self, point: Matrix) -> Matrix:
        """Return the next skew S of the generator, uniform with norm 1, and 0 where n = 1."""
        M = self._generator.standard_normal(self._matrix(point, "point").shape)
        S: Matrix = skew(torch.from_numpy(M)).numpy()
        norm = float(np.linalg.norm(S))
        return S / norm if norm else S

    def _computed(self, function: Callable[..., Tensor], **matrices: Any) -> Matrix:
        """Return a function of the matrices and the signs; a ValueError where it overflows."""
        tensors = self._tensors(**matrices)
        found = function(*tensors, self.signature.vector(tensors[0]))
        return finite_result(found.numpy(), " and ".join(matrices))

    def _tensors(self, **matrices: Any) -> list[Tensor]:
        """Return the arguments as tensors of one dtype; errors name them."""
        found = [to_tensor(self._matrix(value, name), name) for name, value in matrices.items()]
        for name, tensor in zip(matrices, found, strict=True):
            check_finite(tensor, name)
        double = any(tensor.dtype == torch.float64 for tensor in found)
        return [tensor.double() for tensor in found] if double else found

    def _matrix(self, value: Any, name: str) -> Matrix:
        n = self.signature.n
        matrix = None if hasattr(value, "detach") else to_floats(value, name)
        if not isinstance(matrix, np.ndarray):
            raise TypeError(f"{name} must be an array of NumPy, got {describe(value)}")
        if matrix.shape != (n, n):
            expected = f"shape ({n}, {n}) for {self.signature}"
            raise ValueError(f"{name} must have {expected}, got {describe(value)}")
        return matrix
