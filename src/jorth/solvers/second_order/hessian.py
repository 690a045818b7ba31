"""`hessian_check`: whether a critical point is a minimum, by the smallest Hessian eigenvalue."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth import _inputs
from jorth._inputs import frobenius, unit_roundoff
from jorth.group.elements import check_feasible, spectral_norm
from jorth.group.exp_log import cayley_step
from jorth.group.gradient import gradient_norm
from jorth.objectives.base import Product, difference, is_derivative
from jorth.signature import Signature
from jorth.solvers.loop.budget import CountedObjective, all_finite
from jorth.solvers.loop.solver import as_objective
from jorth.solvers.second_order.lowest import Vector, lowest
from jorth.solvers.stationarity import point_of

MAX_PRODUCTS = 1000
ACCURACY = 1e-8
"""The residual of Lanczos iterations relative to the norm of the Hessian."""
CRITICAL = 1e-3
"""A point is critical if its gradient norm is at most this part of the scale of the Hessian."""
PROBE = 0.1
"""How far, as an angle, the Hessian is compared with that of a neighbour."""
ROUNDING = 4.0
"""The errors of n u, or of u^(2/3) for differences, that a product is allowed."""

Kind = Literal["minimum", "degenerate", "saddle", "not critical"]
MEANINGS: dict[Kind, str] = {
    "minimum": "a strict local minimum",
    "degenerate": "not decided, the smallest eigenvalue is zero to within the tolerance",
    "saddle": "a saddle or a maximum: f falls along `direction`",
    "not critical": "the gradient is not small, so the Hessian decides nothing",
}


class NotFinite(ValueError):
    """f, its gradient or its second derivatives are not finite."""


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
    direction: Any
    products: int

    def __str__(self) -> str:
        """A few lines for `print`."""
        text = MEANINGS[self.kind]
        if self.kind == "degenerate" and self.tolerance > 10 * self.rounding:
            text += "; a smaller gradient norm lowers it"
        lines = {
            "kind": f"{self.kind}: {text}",
            "smallest eigenvalue": f"{self.smallest:.6g}, residual {self.error:.1g}",
            "tolerance": f"{self.tolerance:.2g}, of which rounding is {self.rounding:.1g}",
            "gradient norm": f"{self.gradient_norm:.3g}",
            "scale": f"{self.scale:.3g}",
        }
        return "\n".join(f"{name:<19}  {line}" for name, line in lines.items())


def hessian_check(
    objective: Any, X: Any, signature: Signature, *, max_products: int = MAX_PRODUCTS
) -> HessianCheck:
    """Whether a critical point X is a minimum, a saddle or degenerate.

    The Hessian of S -> f(R(J S) X) at S = 0 is H S = skew(J f''(X)[J S X] X^T - J S M) with the
    multiplier M = sym(J G X^T), a symmetric operator on the skew matrices S with <S, T> = tr S^T T.
    At a critical point all retractions R have the same one. Its smallest eigenvalue is computed
    from all of H if that has at most 300 rows (n = 25), else by Lanczos iterations from a fixed
    start, until the residual is 1e-2 of the eigenvalue or 1e-8 of the norm of H; the error of the
    eigenvalue is of second order in that. f''(X)[V] is exact for quadratics, by autograd for torch
    functions, by ``hessian`` for a `jorth.Objective` that has it, and a difference of gradients
    otherwise or where one of these does not fit the gradients. For a thin X, H is restricted to the
    S that move X: those orthogonal to every S with S X = 0.

    X is only critical up to its gradient norm ||g||. If L is a Lipschitz constant of H, an
    eigenvalue above sqrt(2 L ||g||) proves a strict minimum near X (Newton-Kantorovich). Here L is
    estimated: the larger of the size of the terms of H and the change of H along `direction`.

    Args:
        objective: An objective or a torch function of X.
        X: (n, k), J-orthogonal or thin, such as ``result.x``.
        signature: The signs of J.
        max_products: About the most products with the Hessian that Lanczos iterations may take.
            If they are not enough, ``error`` is larger.

    Raises:
        ValueError: X does not fit the objective or is not J-orthogonal, or f has no finite first
            or second derivatives at X.
    """
    function = as_objective(objective)
    _inputs.check_signature(signature)
    known = function.signature
    if known not in (None, signature):
        raise ValueError(f"signature must be the objective's, {known}, got {signature}")
    if function.ranks is not None:
        raise ValueError("objective must be that of one process, got a Sharded one")
    _inputs.whole_number(max_products, "max_products", 1)
    point = point_of(function, X, signature)
    if point.shape[1] > signature.n:
        raise ValueError(f"X must have at most {signature.n} columns, got {_inputs.describe(X)}")
    if point.shape[0] == point.shape[1]:
        check_feasible(point, signature)
    if not function.defined_everywhere:
        function.check_start(point)
    hessian = Hessian(CountedObjective(function), signature, point)
    check, _ = examine(hessian, max_products)
    return replace(check, direction=_inputs.like_input(check.direction, X))


def examine(hessian: Hessian, max_products: int = MAX_PRODUCTS) -> tuple[HessianCheck, Tensor]:
    """The check, and the skew S of the smallest eigenvalue with ||S||_F = 1."""
    X, g = hessian.X, hessian.gradient_norm
    unit = hessian.objective.unit
    if hessian.dimension == 0:
        still = torch.zeros_like(X)
        check = HessianCheck("minimum", math.inf, 0.0, 0.0, 0.0, g * unit, 0.0, still, 0)
        return check, X.new_zeros(len(X), len(X))
    accuracy = max(ACCURACY, 10 * hessian.noise)
    found = lowest(hessian.product, hessian.dimension, accuracy, max_products)
    S = hessian.skew(_signed(found.vector))
    variation = max(hessian.scale, hessian.variation(S, found.value))
    rounding = hessian.rounding()
    tolerance = rounding + 2 * math.sqrt(variation) * math.sqrt(g)
    critical = g <= CRITICAL * variation + rounding
    check = HessianCheck(
        _kind(found.value, tolerance, critical=critical),
        found.value * unit,
        found.error * unit,
        tolerance * unit,
        rounding * unit,
        g * unit,
        hessian.scale * unit,
        hessian.signs[:, None] * (S @ X),
        hessian.products,
    )
    return check, S


def _kind(smallest: float, tolerance: float, *, critical: bool) -> Kind:
    if not critical:
        return "not critical"
    if abs(smallest) <= tolerance:
        return "degenerate"
    return "minimum" if smallest > 0 else "saddle"


def _signed(vector: Vector) -> Vector:
    """The vector with its largest entry positive: an eigenvector has no sign of its own."""
    return vector if vector[np.argmax(abs(vector))] > 0 else -vector


class Hessian:
    """S -> skew(J f''(X)[J S X] X^T - J S M) in orthonormal coordinates of the S that move X.

    Everything is in the unit of the run.

    Attributes:
        dimension: The number of coordinates.
        gradient_norm: ||skew(J G X^T)||_F.
        noise: The relative rounding error of a product.
        scale: The size of the terms of the products so far.
        products: The number of products so far.
    """

    def __init__(self, objective: CountedObjective, signature: Signature, X: Tensor) -> None:
        self.objective = objective
        self.signature = signature
        self.signs = signature.vector(X)
        self.X = X
        self.value, G = objective.value_and_gradient(X)
        if not all_finite(self.value, G):
            raise NotFinite("objective must be finite at X with its gradient, got NaN or infinity")
        self.gradient_size = frobenius(G)
        self._s = self.signs[:, None]
        self.gradient_norm = gradient_norm(X, G, self.signs)
        N = self._s * (G @ X.mT)
        self._M = (N + N.mT) / 2
        self._second, exact = second_derivative(objective, X)
        n = len(X)
        u = unit_roundoff(X)
        self.noise = ROUNDING * (n * u if exact else n * u + u ** (2 / 3))
        self._norm = max(1.0, spectral_norm(X))
        self.scale = frobenius(self._M)
        self.products = 0
        self._terms = 0.0
        self._basis, self._index = _moving(X)
        self.dimension = self._index.shape[1]

    def skew(self, vector: Vector) -> Tensor:
        """The skew matrix S with these coordinates; ||S||_F is the norm of the vector."""
        S = torch.zeros(len(self.X), len(self.X), dtype=torch.float64)
        S[self._index[0], self._index[1]] = torch.from_numpy(vector) / math.sqrt(2)
        S = (S - S.mT).to(self.X)
        if self._basis is None:
            return S
        turned: Tensor = self._basis @ S @ self._basis.mT
        return turned

    def product(self, vector: Vector) -> Vector:
        """H times a vector of coordinates."""
        image = self.apply(self.skew(vector))
        if self._basis is not None:
            image = self._basis.mT @ image @ self._basis
        entries = image[self._index[0], self._index[1]].double() * math.sqrt(2)
        return entries.cpu().numpy()

    def apply(self, S: Tensor) -> Tensor:
        """H S, which must be finite."""
        self.products += 1
        W = self._second(self._s * (S @ self.X))
        bent = W @ self.X.mT
        turned = S @ self._M
        P = self._s * (bent - turned)
        if not bool(torch.isfinite(P).all()):
            raise NotFinite("objective must have finite second derivatives at X, got NaN or inf")
        size = frobenius(S) or 1.0
        self.scale = max(self.scale, (frobenius(bent) + frobenius(turned)) / size)
        self._terms = max(self._terms, (frobenius(W) * self._norm + frobenius(turned)) / size)
        return (P - P.mT) / 2

    def rounding(self) -> float:
        """The rounding error of a product: of f''(X)[V] X^T, S M and of the gradient in M."""
        assert self.objective.scale is not None
        gradient = self.objective.scale.size * self._norm**2
        return self.noise * (self._terms + gradient)

    def variation(self, S: Tensor, eigenvalue: float) -> float:
        """How fast H S changes along S: ||(H at R(t J S) X) S - H S||_F / t, in both directions."""
        largest = 0.0
        for angle in (PROBE, -PROBE):
            neighbour = cayley_step(angle * self._s * S, self.X).contiguous()
            with suppress(NotFinite):  # f need not be finite there
                beside = Hessian(self.objective, self.signature, neighbour)
                largest = max(largest, frobenius(beside.apply(S) - eigenvalue * S) / PROBE)
            self.products += 1
        return largest


def _moving(X: Tensor) -> tuple[Tensor | None, Tensor]:
    """A basis U (n, n) and the entries (2, d) of U^T S U that parametrise the S that move X.

    For a thin X the first columns of U span those of X, and S is zero on the complement. None
    stands for U = I.
    """
    n, k = X.shape
    index = torch.triu_indices(n, n, offset=1)
    if n == k:
        return None, index
    U, sizes, _ = torch.linalg.svd(X)
    rank = int((sizes > n * unit_roundoff(X) * sizes[0]).sum())
    return U, index[:, index[0] < rank]


def second_derivative(objective: CountedObjective, X: Tensor) -> tuple[Product, bool]:
    """V -> f''(X)[V], and whether it is exact; otherwise it is a difference of gradients."""

    def gradient(Y: Tensor) -> Tensor:
        return objective.value_and_gradient(Y)[1]

    exact = objective.hessian(X)
    known = objective.quadratic() is not None
    if exact is not None and (known or is_derivative(gradient, exact, X)):
        return exact, True
    return lambda V: difference(gradient, X, V), False
