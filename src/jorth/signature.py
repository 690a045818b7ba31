"""The signature: the vector of +-1 on the diagonal of J. J itself is never formed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, init=False, repr=False)
class Signature:
    """The signs of J = diag(s), s in {+1, -1}^n, in any order.

    ``Signature(p, q)`` is sorted: p times +1, then q times -1. ``Signature.of`` takes any order.
    Either of p and q may be zero (the orthogonal group). Signatures are immutable, hashable and
    compare by their signs. For JSON, ``list(signature)`` gives the signs.

    Args:
        p: The number of positive signs.
        q: The number of negative signs.

    >>> jorth.Signature.of("+-+").signs
    array([ 1, -1,  1], dtype=int8)
    """

    _signs: tuple[int, ...]
    _runs: tuple[tuple[int, int], ...] = field(compare=False)
    """The runs of equal signs, (sign, length), in their order."""
    n: int = field(compare=False)
    """The size of J."""
    p: int = field(compare=False)
    """The number of +1."""
    q: int = field(compare=False)
    """The number of -1."""

    def __init__(self, p: int, q: int) -> None:
        p, q = _count(p, "p", least=0), _count(q, "q", least=0)
        if p + q == 0:
            raise ValueError("p + q must be at least 1, got p = 0 and q = 0")
        self._fill((1,) * p + (-1,) * q)

    @classmethod
    def of(cls, signs: Iterable[float] | str) -> Signature:
        """Return the signature with the given signs, each +1 or -1.

        A string has the signs, such as "-+++", or p and q, such as "12,8".
        """
        counts = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*", signs) if isinstance(signs, str) else None
        if counts:
            return cls(int(counts[1]), int(counts[2]))
        try:
            values: list[Any] = list(signs.tolist() if hasattr(signs, "tolist") else signs)
        except (TypeError, RuntimeError):  # torch has RuntimeErrors for tensors without data
            found = type(signs).__name__
            raise TypeError(f"signs must be a sequence of +1 and -1, got {found:.40}") from None
        if isinstance(signs, str):
            values = [{"+": 1, "-": -1}.get(sign, sign) for sign in values]
        for position, sign in enumerate(values):
            number = isinstance(sign, (int, float, np.number)) and not isinstance(sign, bool)
            if not number or sign not in (1, -1):
                found = repr(sign) if number or isinstance(sign, str) else type(sign).__name__
                where = f"at position {position}"
                raise ValueError(f"signs must each be +1 or -1, got {found:.40} {where}")
        if not values:
            raise ValueError("signs must not be empty")
        signature = object.__new__(cls)
        signature._fill(tuple(int(sign) for sign in values))
        return signature

    @classmethod
    def lorentz(cls, n: int, time: Literal["first", "last"] = "first") -> Signature:
        """Return the signature of the hyperboloid model in R^n: one negative sign."""
        if not (isinstance(time, str) and time in ("first", "last")):
            found = repr(time) if isinstance(time, str) else type(time).__name__
            raise ValueError(f'time must be "first" or "last", got {found:.40}')
        space = [1] * (_count(n, "n", least=1) - 1)
        return cls.of([-1, *space] if time == "first" else [*space, -1])

    def _fill(self, signs: tuple[int, ...]) -> None:
        runs = tuple((sign, len(list(run))) for sign, run in groupby(signs))
        counts = dict(n=len(signs), p=signs.count(1), q=signs.count(-1))
        for name, value in dict(_signs=signs, _runs=runs, **counts).items():
            object.__setattr__(self, name, value)

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """Return the signs as a read-only array of shape (n,)."""
        return _frozen(np.array(self._signs, dtype=np.int8))

    @cached_property
    def positive(self) -> NDArray[np.intp]:
        """Return the positions of +1, ascending."""
        return _frozen(np.flatnonzero(self.signs > 0))

    @cached_property
    def negative(self) -> NDArray[np.intp]:
        """Return the positions of -1, ascending."""
        return _frozen(np.flatnonzero(self.signs < 0))

    def vector(self, like: torch.Tensor) -> torch.Tensor:
        """Return the signs as a tensor with the dtype and device of ``like``."""
        import torch

        place: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
        if len(self._runs) > 4:  # fewer are filled faster than copied; usual signatures have two
            if not like.is_cuda or torch.compiler.is_compiling():
                return torch.tensor(self._signs, **place)
            signs = torch.tensor(self._signs, dtype=like.dtype, device="cpu")
            return signs.pin_memory().to(like.device, non_blocking=True)
        return torch.cat([torch.full((length,), sign, **place) for sign, length in self._runs])

    def positions(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the positions of +1 and of -1 as index tensors on ``device``."""
        import torch

        signs = self.vector(torch.empty(0, device=device))
        order = torch.argsort(signs, descending=True, stable=True)
        return order[: self.p], order[self.p :]

    def __iter__(self) -> Iterator[int]:
        return iter(self._signs)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        if self._signs == (1,) * self.p + (-1,) * self.q:
            return f"Signature({self.p}, {self.q})"
        if self._runs == ((-1, 1), (1, self.n - 1)):
            return f"Signature.lorentz({self.n})"
        return f'Signature.of("{"".join("-+"[sign > 0] for sign in self)}")'

    def __str__(self) -> str:
        """Return the representation, shortened for messages if there are many unsorted signs."""
        complete = repr(self)
        if len(complete) <= 80:
            return complete
        return f'{complete[:40]}...") with p = {self.p} and q = {self.q}'


def _count(count: object, name: str, least: int) -> int:
    """Return a whole number as Python's, since NumPy's may wrap."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(count).__name__:.40}")
    if not least <= count < 2**31:
        raise ValueError(f"{name} must be from {least} to 2^31 - 1, got {count}")
    return int(count)


def _frozen(array: NDArray) -> NDArray:  # type: ignore[type-arg]
    array.flags.writeable = False
    return array
