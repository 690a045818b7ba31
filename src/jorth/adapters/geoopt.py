"""O(p, q) as a manifold of geoopt."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import check_finite, describe
from jorth.adapters import metric
from jorth.adapters.metric import Step, apply_step, bounded_exp, geodesic_step
from jorth.extras import needs
from jorth.group import PolishError, distance, polish, random_point, residual
from jorth.group.geodesics import geodesic_log
from jorth.group.gradient import skew_gradient
from jorth.signature import Signature

with needs("jorth.adapters.geoopt", "geoopt"):
    from geoopt import ManifoldTensor
    from geoopt.manifolds.base import Manifold


class JOrthogonal(Manifold):
    """The matrices X^T J X = J with the right-invariant metric <K1 X, K2 X>_X = tr(K1^T K2).

    Points are (..., n, n) in float64 or float32; tangent vectors are the matrices U = K X of the
    same shape, K = J S with S skew. From a given U, K is recovered as J skew(J U X^-1), with an
    error of u ||X||^2. A part of U that is not tangent is thus ignored; geoopt's momentum starts
    with one.

    Optimisers stay in the component of the start. Points are re-projected only on request: `projx`
    is called by ``stabilize=...`` of the optimisers and by ``proj_`` of a parameter, not by a step.
    `expmap` has no inverse in closed form: `logmap` and `dist` take Newton's method, as
    `jorth.distance` does, one pair of points after another.

    Args:
        signature: The signs of J.

    >>> from jorth.adapters.geoopt import JOrthogonal
    >>> manifold = JOrthogonal(jorth.Signature(2, 1))
    >>> manifold.check_point(torch.eye(3))
    True
    """

    name = "JOrthogonal"
    ndim = 2
    reversible = True  # a step along the transported -u leads back: exp(-K) exp(K) = I

    def __init__(self, signature: Signature) -> None:
        super().__init__()
        self.signature = _inputs.check_signature(signature)

    def inner(
        self, x: Tensor, u: Tensor, v: Tensor | None = None, *, keepdim: bool = False
    ) -> Tensor:
        """Return tr(K_u^T K_v) (...), or (..., 1, 1) with ``keepdim``; v = u when omitted."""
        S = self._coordinates(x, u)
        T = S if v is None else self._coordinates(x, v, "v")
        return (S * T).sum(dim=(-2, -1), keepdim=keepdim)

    def proju(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the tangent vector J skew(J U X^-1) X nearest to U in the norm ||U X^-1||_F."""
        return self._tangent(x, self._coordinates(x, u))

    def egrad2rgrad(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the Riemannian gradient J skew(J G X^T) X of the Euclidean gradient G."""
        self._check_pair(x, u, "u")
        return self._tangent(x, skew_gradient(x, u, self.signature.vector(x)))

    def projx(self, x: Tensor) -> Tensor:
        """Return the J-orthogonal polar factor of X by `jorth.polish`, or a `jorth.PolishError`."""
        check_finite(self._matrix(x, "x"), "x")
        try:
            return polish(x, self.signature)
        except PolishError as error:
            raise PolishError(f"x cannot be projected: {error}") from None

    def retr(self, x: Tensor, u: Tensor) -> Tensor:
        """Return exp(K) X with a bounded boost, which agrees with `expmap` to first order.

        No step overflows or leaves the component of X. (A Cayley transform has a pole there.)
        """
        return self._apply(bounded_exp, x, u)

    def expmap(self, x: Tensor, u: Tensor) -> Tensor:
        """Return the geodesic exp(K - K^T) exp(K^T) X; a ValueError where it overflows."""
        return self._apply(geodesic_step, x, u)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the tangent vector at x of the geodesic to y; a ValueError if none is found."""
        self._check_pair(x, y, "y")
        return geodesic_log(x, y, self.signature) @ x

    def dist(self, x: Tensor, y: Tensor, *, keepdim: bool = False) -> Tensor:
        """Return `jorth.distance` (...), or (..., 1, 1) with ``keepdim``."""
        self._check_pair(x, y, "y")
        found: Tensor = distance(x, y, self.signature)
        return found[..., None, None] if keepdim else found

    def transp(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """Return the right translation K X -> K Y: an isometry that depends on no path."""
        self._check_pair(x, y, "y")
        return self._tangent(y, self._coordinates(x, v, "v"))

    def random(
        self,
        *size: Any,
        cond: float = 10.0,
        component: tuple[int, int] = (1, 1),
        seed: int | np.random.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: Any = None,
    ) -> Tensor:
        """Return a point of `jorth.random_point` of shape ``size`` = (..., n, n).

        Without a seed it follows torch's generator, without a dtype torch's default.
        """
        if seed is None:
            seed = int(torch.randint(2**63 - 1, (), device="cpu"))
        place = dict(dtype=torch.get_default_dtype() if dtype is None else dtype, device=device)
        options: dict[str, Any] = dict(cond=cond, component=component, seed=seed, **place)
        point = random_point(self.signature, batch=self._batch(size), **options)
        return cast(Tensor, ManifoldTensor(point, manifold=self))

    def origin(
        self,
        *size: Any,
        dtype: torch.dtype | None = None,
        device: Any = None,
        seed: int | None = None,
    ) -> Tensor:
        """Return the identity in shape ``size`` = (..., n, n); ``seed`` is ignored."""
        eye = torch.eye(self.signature.n, dtype=dtype, device=device)
        return cast(Tensor, ManifoldTensor(eye.repeat(*self._batch(size), 1, 1), manifold=self))

    def extra_repr(self) -> str:
        return repr(self.signature)

    def _check_shape(self, shape: Any, name: str) -> tuple[bool, str | None]:
        n = self.signature.n
        if tuple(shape[-2:]) == (n, n):
            return True, None
        expected = f"(..., {n}, {n}) for {self.signature}"
        return False, f"{name} must have shape {expected}, got {tuple(shape)}"

    def _check_point_on_manifold(
        self, x: Tensor, *, atol: float = 1e-5, rtol: float = 1e-5
    ) -> tuple[bool, str | None]:
        """Return whether max |X^T J X - J| is at most (atol + rtol) max(1, ||X||^2).

        Rounding errors alone grow like ||X||^2.
        """
        violation = torch.as_tensor(residual(x.detach(), self.signature))
        if bool((violation <= atol + rtol).all()):
            return True, None
        found = f"max |X^T J X - J| / max(1, ||X||^2) = {violation.max():.3g}"
        return False, f"X^T J X != J: {found} with {atol=}, {rtol=}"

    def _check_vector_on_tangent(
        self, x: Tensor, u: Tensor, *, atol: float = 1e-5, rtol: float = 1e-5
    ) -> tuple[bool, str | None]:
        """Return whether max |X^T J U + U^T J X| is at most atol ||X||^2 + rtol ||X|| ||U||."""
        M = x.mT @ (self.signature.vector(x)[:, None] * u)
        defect = (M + M.mT).abs().amax(dim=(-2, -1))
        X, U = (torch.linalg.matrix_norm(matrix, ord=2) for matrix in (x, u))
        if bool((defect <= atol * X.square() + rtol * X * U).all()):
            return True, None
        found = f"max |X^T J U + U^T J X| = {defect.max():.3g}"
        return False, f"X^T J U is not skew: {found} with {atol=}, {rtol=}"

    def _coordinates(self, x: Tensor, u: Tensor, name: str = "u") -> Tensor:
        """Return the skew S of a tangent vector U = J S X."""
        self._check_pair(x, u, name)
        return metric.projection_coordinates(x, u, self.signature.vector(x))

    def _apply(self, step: Step, x: Tensor, u: Tensor) -> Tensor:
        """Return step(K) x for the tangent vector u = K x."""
        S = self._coordinates(x, u)
        check_finite(x, "x")
        check_finite(u, "u")
        return apply_step(step, x, S, self.signature, "x and u")

    def _tangent(self, x: Tensor, S: Tensor) -> Tensor:
        return metric.embed(x, S, self.signature.vector(x))

    def _matrix(self, value: Any, name: str) -> Tensor:
        if not isinstance(value, Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {describe(value)}")
        _inputs.check_own_floats(value, name)
        return _inputs.square_matrix(value, self.signature, name)

    def _check_pair(self, x: Any, u: Any, name: str) -> None:
        """Raise an error unless both are matrices of one dtype on one device."""
        point = self._matrix(x, "x")
        _inputs.check_alike(self._matrix(u, name), name, point, "x")

    def _batch(self, size: Any) -> tuple[int, ...]:
        single = len(size) == 1 and isinstance(size[0], (tuple, list))
        shape = _inputs.batch_sizes(size[0] if single else size, "size")
        self._assert_check_shape(shape, "size")
        return shape[:-2]
