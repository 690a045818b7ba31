"""A Gauss-Seidel sweep one pair after the other, in any order, on a quadratic f."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

CHUNK = 50_000
"""Pairs between two looks at the clock."""


@dataclass(frozen=True)
class StepRule:
    """What every pair step is told."""

    theta: float
    """The proximal weight; negative is relative to the curvature."""
    all_components: bool
    stop_unbounded: bool
    concave: bool = False
    """Majorise f by its linear part."""


class PairwiseSweep:
    """Steps on the given pairs of rows of X for f = 1/2 tr(X^T A X D) + <C, X>: O(n) each, keeping Y = X D X^T.

    Args:
        A: (n, n) symmetric.
        C: (n, m), or without columns where it is zero.
        D: (m, m) symmetric; None is the identity.
        X: (n, m), changed in place.
        signs: (n,).
        pairs: (t, 2).
        rule: Of the pair steps.
    """

    def __init__(
        self,
        A: Matrix,
        C: Matrix,
        D: Matrix | None,
        X: Matrix,
        signs: NDArray[np.int8],
        pairs: NDArray[np.int64],
        rule: StepRule,
    ) -> None:
        self.unbounded = False
        self._A, self._C, self._X, self._has_d = A, C, X, D is not None
        self._Y = X @ X.T if D is None else X @ D @ X.T
        self._signs, self._pairs, self._rule = signs, pairs, rule

    def run(self) -> Iterator[int]:
        """Take all steps; stops now and then with the number of pairs done since."""
        from jorth.plane.compiled.sweeps import sweep_quadratic

        rule = self._rule
        for start in range(0, len(self._pairs), CHUNK):
            done, _ = sweep_quadratic(
                self._A, self._C, self._X, self._Y, self._has_d, self._signs, self._pairs[start : start + CHUNK],
                rule.theta, rule.all_components, rule.stop_unbounded, rule.concave,
            )  # fmt: skip
            self.unbounded = done < 0
            yield done if done >= 0 else -done - 1
            if self.unbounded:
                return

    def rows(self) -> Matrix:
        """X as it stands, (n, m)."""
        return self._X
