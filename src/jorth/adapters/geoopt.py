"""O(p, q) as a manifold of geoopt."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from jorth.adapters.metric import (
    bounded_exp,
    embed,
    geodesic_step,
    gradient_coordinates,
    projection_coordinates,
)
from jorth.arrays import check_signature, square_matrix
from jorth.group import polish, random_point, residual
from jorth.signature import Signature

try:
    from geoopt import ManifoldTensor
    from geoopt.manifolds.base import Manifold
    from geoopt.utils import size2shape
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "geoopt":
        raise
    raise ImportError("jorth.adapters.geoopt needs geoopt: pip install 'jorth[adapters]'") from None


class JOrthogonal(Manifold):
    """The J-orthogonal matrices X^T J X = J with the right-invariant metric <K1 X, K2 X>_X = tr(K1^T K2).

    Points are (..., n, n) in float64 or float32; tangent vectors are the matrices U = K X of the same shape, K = J S
    with S skew. K is recovered as J skew(J U X^-1), to u ||X||^2, wherever a tangent vector comes in, so a part
    of U that is not tangent is left out: geoopt's momentum starts with one.

    Optimisers stay in the component of the start. Points are never re-projected unless that is asked for: `projx`
    is called by ``stabilize=...`` of the optimisers and by ``proj_`` of a parameter, not by a step. There is no
    closed form of the inverse of `expmap`, so `logmap` and `dist` raise NotImplementedError.

    Args:
        signature: The signs of J.
    """

    name = "JOrthogonal"
    ndim = 2
    reversible = True  # retr_transp along the transported -u leads back: exp(-K) exp(K) = I

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = check_signature(signature)

    def inner(self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False) -> Tensor:
        """tr(K_u^T K_v) (...), or (..., 1, 1) with ``keepdim``; v = u when omitted."""
        S = self._coordinates(x, u)
        T = S if v is None else self._coordinates(x, v, "v")
        return (S * T).sum(dim=(-2, -1), keepdim=keepdim)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:
        """The tangent vector J skew(J U X^-1) X nearest to U in the norm ||U X^-1||_F."""
        return self._tangent(x, self._coordinates(x, u))

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        """The Riemannian gradient J skew(J G X^T) X of the Euclidean gradient G."""
        S = gradient_coordinates(self._matrix(x, "x"), self._matrix(u, "u"), self.signature.vector(x))
        return self._tangent(x, S)

    def projx(self, x: Tensor) -> Tensor:
        """`jorth.polish`: the J-orthogonal polar factor of X; a `jorth.PolishError` where X is too far off."""
        return polish(self._matrix(x, "x"), self.signature)

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        """exp(K) X, its boost bounded so that no step overflows: always in the component of X.

        It agrees with `expmap` to first order. A Cayley transform would be cheaper, but has a pole at boosts of 2.
        """
        return bounded_exp(self._algebra(x, u), self.signature) @ x

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        """The geodesic exp(K - K^T) exp(K^T) X; a ValueError where it overflows."""
        return geodesic_step(self._algebra(x, u), self.signature) @ x

    def transp(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Right translation K X -> K Y, V X^-1 Y for tangent V: an isometry that does not depend on a path.

        It is a transporter, not the parallel transport of the Levi-Civita connection.
        """
        return self._tangent(self._matrix(y, "y"), self._coordinates(x, v, "v"))

    def random(
        self,
        *size: Any,
        cond: float = 10.0,
        component: tuple[int, int] = (1, 1),
        seed: int | np.random.Generator = 0,
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> Tensor:
        """A random point of shape ``size`` = (..., n, n): `jorth.random_point`, float64 unless a dtype is given."""
        batch = self._batch(size)
        point = random_point(
            self.signature,
            cond=cond,
            component=component,
            batch=batch,
            seed=seed,
            dtype=torch.float64 if dtype is None else dtype,
            device=device,
        )
        return self._on_manifold(point)

    def origin(
        self, *size: Any, dtype: torch.dtype | None = None, device: Any = None, seed: int | None = None
    ) -> Tensor:
        """The identity in shape ``size`` = (..., n, n), float64 unless a dtype is given; ``seed`` has no effect."""
        eye = torch.eye(self.signature.n, dtype=torch.float64 if dtype is None else dtype, device=device)
        return self._on_manifold(eye.repeat(*self._batch(size), 1, 1))

    def extra_repr(self) -> str:
        """The signature."""
        return repr(self.signature)

    def _check_shape(self, shape: Any, name: str) -> tuple[bool, str | None]:
        n = self.signature.n
        if tuple(shape[-2:]) == (n, n):
            return True, None
        return False, f"{name} must have shape (..., {n}, {n}) for {self.signature}, got {tuple(shape)}"

    def _check_point_on_manifold(self, x: Tensor, *, atol: float = 1e-5, rtol: float = 1e-5) -> tuple[bool, str | None]:
        """Whether max |X^T J X - J| is at most (atol + rtol) max(1, ||X||^2): rounding alone grows like ||X||^2."""
        violation = torch.as_tensor(residual(x.detach(), self.signature))
        if bool((violation <= atol + rtol).all()):
            return True, None
        found = f"max |X^T J X - J| / max(1, ||X||^2) = {violation.max():.3g}"
        return False, f"X^T J X != J: {found} with {atol=}, {rtol=}"

    def _check_vector_on_tangent(
        self, x: Tensor, u: Tensor, *, atol: float = 1e-5, rtol: float = 1e-5
    ) -> tuple[bool, str | None]:
        """Whether max |X^T J U + U^T J X| is at most atol ||X||^2 + rtol ||X|| ||U||."""
        M = x.mT @ (self.signature.vector(x)[:, None] * u)
        defect = (M + M.mT).abs().amax(dim=(-2, -1))
        X, U = (torch.linalg.matrix_norm(matrix, ord=2) for matrix in (x, u))
        if bool((defect <= atol * X.square() + rtol * X * U).all()):
            return True, None
        return False, f"X^T J U is not skew: max |X^T J U + U^T J X| = {defect.max():.3g} with {atol=}, {rtol=}"

    def _coordinates(self, x: Tensor, u: Tensor, name: str = "u") -> Tensor:
        """The skew S of a tangent vector U = J S X."""
        return projection_coordinates(self._matrix(x, "x"), self._matrix(u, name), self.signature.vector(x))

    def _algebra(self, x: Tensor, u: Tensor) -> Tensor:
        return self.signature.vector(x)[:, None] * self._coordinates(x, u)

    def _tangent(self, x: Tensor, S: Tensor) -> Tensor:
        return embed(x, S, self.signature.vector(x))

    def _matrix(self, value: Any, name: str) -> Tensor:
        return square_matrix(value, self.signature, name)

    def _batch(self, size: Any) -> tuple[int, ...]:
        shape = tuple(size2shape(*size))
        self._assert_check_shape(shape, "size")
        return shape[:-2]

    def _on_manifold(self, point: Tensor) -> Tensor:
        on_manifold: Tensor = ManifoldTensor(point, manifold=self)
        return on_manifold
