"""O(p, q) as a manifold of pymanopt."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.adapters.metric import (
    bounded_exp,
    embed,
    geodesic_step,
    gradient_coordinates,
    hessian_coordinates,
    naming,
    projection_coordinates,
    skew,
)
from jorth.arrays import check_signature, describe, finite_result, generator
from jorth.group import random_point
from jorth.signature import Signature

try:
    from pymanopt.manifolds.manifold import Manifold
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "pymanopt":
        raise
    raise ImportError(
        "jorth.adapters.pymanopt needs pymanopt: pip install 'jorth[adapters]'"
    ) from None

Matrix = NDArray[Any]


class JOrthogonal(Manifold):
    """The J-orthogonal matrices X^T J X = J with the right-invariant metric <J S1 X, J S2 X>_X = <S1, S2>_F.

    A tangent vector J S X is held as its skew S (n, n), as pymanopt's own groups hold theirs: the metric, the transport
    and the test for tangency are then exact, while S recovered from J S X has lost u ||X||^2. `embedding` gives
    the ambient vector; pymanopt calls it for Euclidean Hessians. The class is not a `RiemannianSubmanifold`: the metric
    is not that of the embedding.

    Solvers stay in the component of the start. Points drift from the constraint by rounding alone and are never
    re-projected; `jorth.polish` does that when asked. There is no closed form of the inverse of `exp`, so `log`, `dist`
    and `pair_mean` raise pymanopt's NotImplementedError: `NelderMead` and `ParticleSwarm` cannot run.

    Args:
        signature: The signs of J.
        cond: The condition number of random points.
        component: The component of random points: the signs of det X[+,+] and det X[-,-].
        seed: Of all random points and tangent vectors: an integer or a NumPy generator.
    """

    def __init__(
        self,
        signature: Signature,
        *,
        cond: float = 10.0,
        component: tuple[int, int] = (1, 1),
        seed: int | np.random.Generator = 0,
    ) -> None:
        n = check_signature(signature).n
        self.signature, self.cond, self.component = signature, cond, component
        self._generator = generator(seed)
        self._signs: Matrix = signature.signs  # int8: products keep the dtype of the matrix
        super().__init__(f"J-orthogonal group O({signature.p}, {signature.q})", n * (n - 1) // 2)

    @property
    def typical_dist(self) -> float:
        """Pi sqrt(n), as pymanopt has it for SO(n): the scale of the rotations. Boosts are unbounded and have none."""
        return math.pi * math.sqrt(self.signature.n)

    def inner_product(
        self, point: Matrix, tangent_vector_a: Matrix, tangent_vector_b: Matrix
    ) -> float:
        """<S_a, S_b>_F."""
        a = self._matrix(tangent_vector_a, "tangent_vector_a")
        product = float(np.vdot(a, self._matrix(tangent_vector_b, "tangent_vector_b")))
        return finite_result(product, "tangent_vector_a and tangent_vector_b")

    def norm(self, point: Matrix, tangent_vector: Matrix) -> float:
        """||S||_F."""
        return finite_result(
            float(np.linalg.norm(self._matrix(tangent_vector, "tangent_vector"))), "tangent_vector"
        )

    def projection(self, point: Matrix, vector: Matrix) -> Matrix:
        """skew(J U X^-1): the S of the tangent vector nearest to an ambient U, in the norm ||U X^-1||_F."""
        S = projection_coordinates(self._point(point), self._matrix(vector, "vector"), self._signs)
        return finite_result(S, "point and vector")

    def to_tangent_space(self, point: Matrix, vector: Matrix) -> Matrix:
        """skew(S)."""
        return skew(self._matrix(vector, "vector"))

    def embedding(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """The tangent vector J S X in the ambient space."""
        U = embed(self._point(point), self._matrix(tangent_vector, "tangent_vector"), self._signs)
        return finite_result(U, "point and tangent_vector")

    def euclidean_to_riemannian_gradient(self, point: Matrix, euclidean_gradient: Matrix) -> Matrix:
        """skew(J G X^T)."""
        G = self._matrix(euclidean_gradient, "euclidean_gradient")
        return finite_result(
            gradient_coordinates(self._point(point), G, self._signs), "point and euclidean_gradient"
        )

    def euclidean_to_riemannian_hessian(
        self,
        point: Matrix,
        euclidean_gradient: Matrix,
        euclidean_hessian: Matrix,
        tangent_vector: Matrix,
    ) -> Matrix:
        """The Levi-Civita derivative of the gradient; ``euclidean_hessian`` is the derivative of G along J S X."""
        S = hessian_coordinates(
            self._point(point),
            self._matrix(euclidean_gradient, "euclidean_gradient"),
            self._matrix(euclidean_hessian, "euclidean_hessian"),
            self._matrix(tangent_vector, "tangent_vector"),
            self._signs,
        )
        return finite_result(S, "point, euclidean_gradient, euclidean_hessian and tangent_vector")

    def retraction(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """exp(K) X for K = J S, its boost bounded so that no step overflows: always in the component of X.

        It agrees with `exp` to first order. A Cayley transform would be cheaper, but has a pole at boosts of 2.
        """
        K = self._algebra(tangent_vector)
        with naming("tangent_vector"):
            step = bounded_exp(K, self.signature)
        return finite_result(step @ self._point(point), "point and tangent_vector")

    def exp(self, point: Matrix, tangent_vector: Matrix) -> Matrix:
        """The geodesic after unit time, expm(K - K^T) expm(K^T) X with K = J S; a ValueError where it overflows."""
        K = self._algebra(tangent_vector)
        with naming("tangent_vector"):
            step = geodesic_step(K, self.signature)
        return finite_result(step @ self._point(point), "point and tangent_vector")

    def transport(self, point_a: Matrix, point_b: Matrix, tangent_vector_a: Matrix) -> Matrix:
        """Right translation K X -> K Y, which keeps S: an isometry that does not depend on a path.

        It is a transporter, not the parallel transport of the Levi-Civita connection.
        """
        return self._matrix(tangent_vector_a, "tangent_vector_a")

    def zero_vector(self, point: Matrix) -> Matrix:
        """S = 0."""
        return np.zeros_like(self._point(point))

    def random_point(self) -> Matrix:
        """The next point of the manifold's generator, with its condition number and in its component."""
        point: Matrix = random_point(
            self.signature, cond=self.cond, component=self.component, seed=self._generator
        )
        return point

    def random_tangent_vector(self, point: Matrix) -> Matrix:
        """The next skew S of the manifold's generator: uniform among those of unit norm, and zero where n = 1."""
        S: Matrix = skew(self._generator.standard_normal(self._point(point).shape))
        norm = float(np.linalg.norm(S))
        return S / norm if norm else S

    def _algebra(self, tangent_vector: Matrix) -> Matrix:
        """K = J S of a tangent vector S, exactly in the Lie algebra."""
        K: Matrix = self._signs[:, None] * skew(self._matrix(tangent_vector, "tangent_vector"))
        return K

    def _point(self, value: Any) -> Matrix:
        return self._matrix(value, "point")

    def _matrix(self, value: Any, name: str) -> Matrix:
        n = self.signature.n
        try:
            matrix = np.asarray(value) if not hasattr(value, "detach") else None
        except ValueError:  # a ragged list
            matrix = None
        if matrix is None or not (
            matrix.dtype.kind in "iu" or matrix.dtype in (np.float64, np.float32)
        ):
            raise TypeError(
                f"{name} must be a NumPy array of numbers, float64 or float32, got {describe(value)}"
            )
        if matrix.shape != (n, n):
            raise ValueError(
                f"{name} must have shape ({n}, {n}) for {self.signature}, got {describe(value)}"
            )
        if not np.isfinite(matrix).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        return matrix if matrix.dtype.kind == "f" else matrix.astype(np.float64)
