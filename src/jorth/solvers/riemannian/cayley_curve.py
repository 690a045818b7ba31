"""The curve t -> (I - t K / 2)^-1 (I + t K / 2) X from products, for a device.

There a factorisation takes as long as 8 products at n = 4096 and 70 at n = 1024. With E = t K / 2,

    (I - E)^-1 = (I + E) (I + E^2) (I + E^4) ... (I + E^(2^(k-1))) + (I - E)^-1 E^(2^k),

so that k factors suffice once ||E^(2^k)|| is below the rounding. The powers of K are those of a
whole line; near the optimum two or three of them do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.exp_log import cayley_step
from jorth.solvers.riemannian.scalars import fetch

MOST_FACTORS = 9
"""The most factors; ||E|| = 0.9 needs them."""
FIRST_POWERS = 2
"""K and K^2 are formed at once, and more if both are too large."""
MORE_POWERS = 3
PRODUCTS_OF_LU = 9
"""The products that cost no more than a factorisation and its solves at n = 4096."""
LARGEST_LOGARITHM = 600.0
"""Powers beyond exp of this are not formed, as they might overflow."""


class CayleyCurve:
    """The curve for K in the Lie algebra; ``norms`` must be fetched before the first point."""

    def __init__(self, K: Tensor, X: Tensor) -> None:
        self.K = K
        self.X = X
        self.norms: list[float] = []
        """||K||_F, ||K^2||_F, ||K^4||_F and so on."""
        self._powers = [K]
        self._square_up_to(FIRST_POWERS)

    def missing_norms(self) -> list[Tensor]:
        """What is to be fetched and added to ``norms``."""
        return [power.norm() for power in self._powers[len(self.norms) :]]

    def at(self, t: float) -> Tensor:
        """The point at t, from products if they are cheaper than a factorisation."""
        tolerance = unit_roundoff(self.X) / 4
        affordable = self._affordable()
        factors = factors_needed(t / 2, self.norms, tolerance)
        reach = len(self.norms) + MORE_POWERS
        if (factors is None or factors > reach) and self._in_reach(t, tolerance, affordable):
            self._square_up_to(reach)
            self.norms += fetch(*self.missing_norms())
            factors = factors_needed(t / 2, self.norms, tolerance)
        if factors is None or factors > affordable:
            return cayley_step(self.K * t, self.X)
        self._square_up_to(factors)
        moved = self.X
        for place, power in enumerate(self._powers[:factors]):
            moved = torch.addmm(moved, power, moved, alpha=(t / 2) ** (2**place))
        return torch.lerp(self.X, moved, 2.0)  # 2 moved - X

    def _in_reach(self, t: float, tolerance: float, affordable: int) -> bool:
        """Whether more norms may show that few factors do: ||E||^2 >= ||E^2||_F / sqrt(n)."""
        if len(self.norms) + MORE_POWERS > affordable:
            return False
        least = (t / 2) ** 2 * self.norms[1] / math.sqrt(len(self.K))
        return bool(least <= tolerance ** (2 / 2**affordable))

    def _affordable(self) -> int:
        """The number k of factors whose 2 k - 1 products cost no more than a factorisation."""
        products: float = PRODUCTS_OF_LU * (4096 / len(self.X)) ** 1.5
        return min(MOST_FACTORS, math.floor((products + 1) / 2))

    def _square_up_to(self, count: int) -> None:
        while len(self._powers) < count:
            self._powers.append(self._powers[-1] @ self._powers[-1])


def factors_needed(half: float, norms: list[float], tolerance: float) -> int | None:
    """The least k >= 1 for which the ``norms`` ||K^(2^i)||_F show ||(half K)^(2^k)|| <= tolerance.

    It is None if they show nothing, or if K^(2^(k-1)) might overflow.
    """
    found = None
    for place, norm in enumerate(norms):
        logarithm = -math.inf if norm == 0 else math.log(norm)
        size = 2**place * math.log(half) + logarithm
        if not size < 0:
            continue
        more = math.ceil(math.log2(max(1.0, math.log(tolerance) / size)))
        factors = max(1, place + more)
        if logarithm * 2.0 ** (factors - 1 - place) < LARGEST_LOGARITHM:
            found = factors if found is None else min(found, factors)
    return found
