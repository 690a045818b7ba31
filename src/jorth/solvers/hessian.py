"""`hessian_check`: whether a critical point is a minimum, by the smallest Hessian eigenvalue."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, lobpcg
from torch import Tensor

from jorth import _inputs
from jorth._inputs import frobenius, unit_roundoff
from jorth.group.elements import check_feasible
from jorth.group.exp_log import cayley_step
from jorth.group.gradient import gradient_norm
from jorth.objectives.base import difference, is_derivative
from jorth.signature import Signature
from jorth.solvers.problem import CountedObjective, all_finite, objective_at
from jorth.solvers.result import spectral_norm

MOST_DENSE = 300
"""The largest dimension at which the operator is formed: that of the skew matrices for n = 25."""
MOST_PRODUCTS = 1000
"""About the most products that LOBPCG takes; 620 were enough for Procrustes problems at n = 100."""

Vector = NDArray[np.float64]
Kind = Literal["minimum", "degenerate", "saddle", "not critical"]


@dataclass(frozen=True)
class HessianCheck:
    """What the Hessian says about a point; `jorth.hessian_check` returns it.

    Attributes:
        kind: "minimum" if the smallest eigenvalue is above the tolerance, so that X is a strict
            local minimum up to the accuracy of X; "saddle" if it is below minus the tolerance
            (maxima are among them); "degenerate" between the two, where higher derivatives decide;
            "not critical" if the gradient norm exceeds 1e-3 of the scale.
        smallest: The smallest eigenvalue of the Hessian, in the units of f: along
            R(t J S) X with ||S||_F = 1, f changes by at least smallest t^2 / 2. It is inf if X
            cannot move.
        error: The residual ||H S - smallest S||_F: some eigenvalue is this near.
        tolerance: What the eigenvalue is compared with: the rounding of the products plus
            2 sqrt(L ||g||), see `jorth.hessian_check`.
        rounding: The part of it that is rounding.
        gradient_norm: ||g||_F = ||skew(J G X^T)||_F.
        scale: The size of the terms of the Hessian.
        direction: The tangent vector J S X of the smallest eigenvalue, (n, k), of the kind, dtype
            and device of X.
        products: The Hessian products that it took.
    """

    kind: Kind
    smallest: float
    error: float
    tolerance: float
    rounding: float
    gradient_norm: float
    scale: float
    direction: Any = field(repr=False)
    products: int


def hessian_check(objective: Any, X: Any, signature: Signature) -> HessianCheck:
    """Tell whether a critical point X is a minimum, a saddle or degenerate.

    The Hessian of S -> f(R(J S) X) at S = 0 is H S = skew(J f''(X)[J S X] X^T - J S M) with the
    multiplier M = sym(J G X^T). Its smallest eigenvalue is computed from all of H if that has at
    most 300 rows (n = 25), else by LOBPCG. f''(X)[V] is exact for quadratics, by autograd for torch
    functions, by ``hessian`` for a `jorth.Objective` that has it, and a difference of gradients
    otherwise. For a thin X, H is restricted to the S that move X.

    X is only critical up to its gradient norm ||g||. If L is a Lipschitz constant of H, which is
    estimated here, an eigenvalue above sqrt(2 L ||g||) proves a strict minimum near X.

    Args:
        objective: An objective or a torch function of X.
        X: (n, k), J-orthogonal or thin, such as ``result.x``.
        signature: The signs of J.

    Raises:
        ValueError: X does not fit the objective or is not J-orthogonal, or f has no finite first or
            second derivatives at X.

    >>> sig = jorth.Signature(1, 1)
    >>> jorth.hessian_check(jorth.Quadratic(np.diag([1.0, 2.0])), np.eye(2), sig).kind
    'minimum'
    """
    function, signature, point = objective_at(objective, X, signature)
    if function.ranks is not None:
        raise ValueError("objective must be that of one process, got a Sharded one")
    if point.shape[0] == point.shape[1]:
        check_feasible(point, signature)
    if not function.defined_everywhere:
        function.check_start(point)
    hessian = Hessian(CountedObjective(function), signature, point)
    g, unit = hessian.gradient_norm, hessian.objective.unit
    if hessian.dimension == 0:
        still = _inputs.like_input(torch.zeros_like(point), X)
        return HessianCheck("minimum", math.inf, 0.0, 0.0, 0.0, g * unit, 0.0, still, 0)
    accuracy = max(1e-8, 10 * hessian.noise)
    smallest, vector, error = lowest(hessian.product, hessian.dimension, accuracy)
    # an eigenvector has no sign of its own: its largest entry is made positive
    S = hessian.skew(vector if vector[np.argmax(abs(vector))] > 0 else -vector)
    variation = max(hessian.scale, hessian.variation(S, smallest))
    rounding = hessian.rounding()
    tolerance = rounding + 2 * math.sqrt(variation) * math.sqrt(g)
    kind: Kind = "minimum" if smallest > tolerance else "degenerate"
    if smallest < -tolerance:
        kind = "saddle"
    if not g <= 1e-3 * variation + rounding:
        kind = "not critical"
    direction = _inputs.like_input(hessian.signs[:, None] * (S @ point), X)
    smallest, error, tolerance, rounding, g, scale = (
        unit * size for size in (smallest, error, tolerance, rounding, g, hessian.scale)
    )
    return HessianCheck(
        kind, smallest, error, tolerance, rounding, g, scale, direction, hessian.products
    )


class Hessian:
    """S -> skew(J f''(X)[J S X] X^T - J S M) in orthonormal coordinates of the S that move X.

    Everything is in the unit of the run. For a thin X the first columns of a basis U span those of
    X, and the S that move it are those for which U^T S U is zero on the complement. ``noise`` is
    the relative rounding error of a product, ``scale`` the size of the terms of those so far.
    """

    def __init__(self, objective: CountedObjective, signature: Signature, X: Tensor) -> None:
        self.objective, self.signature, self.X = objective, signature, X
        self.signs = signature.vector(X)
        self._s = self.signs[:, None]
        value, G = objective.value_and_gradient(X)
        if not all_finite(value, G):
            raise ValueError("objective must be finite at X with its gradient, got NaN or infinity")
        self.gradient_norm = gradient_norm(X, G, self.signs)
        N = self._s * (G @ X.mT)
        self._M = (N + N.mT) / 2

        def gradient(Y: Tensor) -> Tensor:
            return objective.value_and_gradient(Y)[1]

        second = objective.hessian(X)
        exact = second is not None and (
            objective.quadratic() is not None or is_derivative(gradient, second, X)
        )
        self._second = second if exact else lambda V: difference(gradient, X, V)
        (n, k), u = X.shape, unit_roundoff(X)
        # four times the errors of n u, or of u^(2/3) for differences, that a product is allowed
        self.noise = 4.0 * (n * u if exact else n * u + u ** (2 / 3))
        self._norm = max(1.0, spectral_norm(X))
        self.scale = frobenius(self._M)
        self.products = 0
        self._terms = 0.0
        self._basis: Tensor | None = None
        self._index = torch.triu_indices(n, n, offset=1)
        if k < n:
            self._basis, sizes, _ = torch.linalg.svd(X)
            rank = int((sizes > n * u * sizes[0]).sum())
            self._index = self._index[:, self._index[0] < rank]
        self.dimension = self._index.shape[1]

    def skew(self, vector: Vector) -> Tensor:
        """Return the skew matrix S with these coordinates; ||S||_F is the norm of the vector."""
        S = torch.zeros(len(self.X), len(self.X), dtype=torch.float64)
        S[self._index[0], self._index[1]] = torch.from_numpy(vector) / math.sqrt(2)
        S = (S - S.mT).to(self.X)
        return S if self._basis is None else self._basis @ S @ self._basis.mT

    def product(self, vector: Vector) -> Vector:
        """Return H times a vector of coordinates."""
        image = self.apply(self.skew(vector))
        if self._basis is not None:
            image = self._basis.mT @ image @ self._basis
        entries = image[self._index[0], self._index[1]].double() * math.sqrt(2)
        return entries.cpu().numpy()

    def apply(self, S: Tensor) -> Tensor:
        """Return H S, which must be finite."""
        assert self._second is not None
        self.products += 1
        W = self._second(self._s * (S @ self.X))
        bent, turned = W @ self.X.mT, S @ self._M
        P = self._s * (bent - turned)
        if not bool(torch.isfinite(P).all()):
            raise ValueError("objective must have finite second derivatives at X, got NaN or inf")
        size = frobenius(S) or 1.0
        self.scale = max(self.scale, (frobenius(bent) + frobenius(turned)) / size)
        self._terms = max(self._terms, (frobenius(W) * self._norm + frobenius(turned)) / size)
        return (P - P.mT) / 2

    def rounding(self) -> float:
        """Return the error of a product: of f''(X)[V] X^T, S M and of the gradient in M."""
        return self.noise * (self._terms + self.objective.gradient_scale * self._norm**2)

    def variation(self, S: Tensor, eigenvalue: float, angle: float = 0.1) -> float:
        """Return how fast H S changes along S: ||(H at R(t J S) X) S - H S||_F / t, both ways."""
        largest = 0.0
        for turn in (angle, -angle):
            neighbour = cayley_step(turn * self._s * S, self.X).contiguous()
            with suppress(ValueError):  # f need not be finite there
                beside = Hessian(self.objective, self.signature, neighbour)
                largest = max(largest, frobenius(beside.apply(S) - eigenvalue * S) / angle)
            self.products += 1
        return largest


def lowest(
    product: Callable[[Vector], Vector], dimension: int, accuracy: float
) -> tuple[float, Vector, float]:
    """Return the smallest eigenvalue of v -> H v, its unit vector and its residual.

    LOBPCG runs until the residual is 0.01 of the value or ``accuracy`` of the norm of H.
    """
    used, norm = 0, 0.0

    def image(vector: Vector) -> Vector:
        nonlocal used, norm
        found = product(vector.reshape(-1))
        used, norm = used + 1, max(norm, float(np.linalg.norm(found) / np.linalg.norm(vector)))
        return found

    def rayleigh(vector: Vector) -> tuple[float, Vector, float]:
        vector = vector / np.linalg.norm(vector)
        found = image(vector)
        value = float(vector @ found)
        return value, vector, float(np.linalg.norm(found - value * vector))

    if dimension <= MOST_DENSE:
        H = np.stack([image(unit) for unit in np.eye(dimension)], axis=1)
        values, vectors = eigh((H + H.T) / 2)
        image(vectors[:, np.argmax(abs(values))])  # for the size of what it is made of
        return rayleigh(vectors[:, 0])
    best = rayleigh(np.random.default_rng(0).standard_normal(dimension))
    operator = LinearOperator((dimension, dimension), matvec=image, dtype=np.float64)
    # the error of the eigenvalue is of second order in the residual
    while used < MOST_PRODUCTS and best[2] > max(accuracy * norm, 0.01 * abs(best[0])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of residuals that are not reached
            _, found = lobpcg(
                operator, best[1][:, None], largest=False, maxiter=MOST_PRODUCTS - used,
                tol=max(accuracy * norm, 0.1 * best[2]),
            )  # fmt: skip
        best = rayleigh(found[:, 0])
    return best
