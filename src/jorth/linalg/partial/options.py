"""`Subset`: which eigenpairs are wanted, and how they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jorth.arrays import (
    check_count,
    check_flag,
    check_signature,
    real_number,
    seed_number,
    shown,
    whole_number,
)
from jorth.signature import Signature
from jorth.suggestions import Explained


@dataclass(frozen=True, eq=False)
class Subset(Explained):
    """How many eigenpairs `jorth.eigh` is to find on each side of the gap, and how.

    ``jorth.eigh(A, signature, subset=(5, 3))`` is short for ``subset=jorth.Subset(5, 3)``. All
    options but the two counts are for large sparse and matrix-free A.

    Args:
        positive: How many of positive type: the smallest lambda above the gap, at most p.
        negative: How many of negative type: the largest lambda below the gap, at most q.
        tolerance: The largest ||A x - lambda J x|| / ||x||, relative to |lambda - mu|, where mu is
            the shift (0 if A is positive definite). What rounding allows is accepted in any case:
            16 u ||A - mu J||.
        max_iterations: The most steps; a RuntimeError says what was reached.
        preconditioner: For a LinearOperator A: an approximation of (A - mu J)^-1, symmetric and
            positive definite, as a LinearOperator, a matrix, or a function of columns (n, b).
        start: (n, any), approximate eigenvectors to start from, of any length and in any order.
        seed: Of the random vectors to start from.
        verify: Whether to prove, by the inertia of two more factorisations, that no eigenpair was
            missed. It needs the entries of A and is not done for a LinearOperator.
    """

    positive: int
    negative: int
    tolerance: float = 1e-10
    max_iterations: int = 1000
    preconditioner: Any = None
    start: Any = None
    seed: int = 0
    verify: bool = True

    def __post_init__(self) -> None:
        whole_number(self.positive, "positive", 0)
        whole_number(self.negative, "negative", 0)
        if self.positive + self.negative == 0:
            raise ValueError("positive + negative must be at least 1, got 0 and 0")
        real_number(self.tolerance, "tolerance", "a positive number below 1", lambda x: 0 < x < 1)
        check_count(self.max_iterations, "max_iterations")
        seed_number(self.seed)
        check_flag(self.verify, "verify")

    @property
    def k(self) -> int:
        """How many eigenpairs there are in all."""
        return self.positive + self.negative


def subset_of(value: Any, signature: Signature) -> Subset:
    """A `Subset` that fits the signature, from one or from a pair of counts."""
    check_signature(signature)
    if not isinstance(value, Subset):
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            expected = "two counts (positive, negative) or a jorth.Subset"
            raise TypeError(f"subset must be {expected}, got {shown(value)}")
        value = Subset(
            whole_number(value[0], "subset[0]", 0), whole_number(value[1], "subset[1]", 0)
        )
    if value.positive > signature.p or value.negative > signature.q:
        most = f"at most p = {signature.p} positive and q = {signature.q} negative eigenpairs"
        found = f"{value.positive} and {value.negative}"
        raise ValueError(f"subset must have {most} for {signature}, got {found}")
    chosen: Subset = value
    return chosen
