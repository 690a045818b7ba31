"""Which column of points is the time: a check that data fit a Lorentz signature.

A row is timelike if its time is longer than the rest of it. Then it is not timelike with the time
in any other column, and an isometry keeps it so. Points of the hyperboloid are timelike, and their
times have one sign. Far out they are nearly lightlike, and a little noise carries some of them
across; so most rows must be timelike, and the others nearly so.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from jorth.signature import Signature

Time = Literal["first", "last"]
FEWEST = 3
"""With fewer rows, any data may look timelike by chance."""
TIMELIKE = 0.5**0.5 * (1 + 1e-6)
"""The share of a row that its time must have: t^2 > |x|^2 / 2, with room for rounding."""
NEARLY = 0.99 * TIMELIKE
"""The same with room for noise."""
FIRST_LOOK = 16
"""So many rows are tried before all of them."""


class OtherTimeWarning(UserWarning):
    """Points have their time at the other end of a Lorentz signature."""


def time_of(signature: Signature) -> Time | None:
    """Where a Lorentz signature has its time; None for other signatures."""
    if signature.n > 1:
        if signature == Signature.lorentz(signature.n, "first"):
            return "first"
        if signature == Signature.lorentz(signature.n, "last"):
            return "last"
    return None


def other_time(signature: Signature, *clouds: Any) -> Time | None:
    """The time that the rows of all clouds have at the other end; None if they need not have it.

    Args:
        signature: The signs of J; only a Lorentz signature is questioned.
        *clouds: (..., m, n), dense or scipy.sparse. Those with fewer columns are passed over.
    """
    time = time_of(signature)
    if time is None:
        return None
    column = -1 if time == "first" else 0
    full = [cloud for cloud in clouds if cloud.shape[-1] == signature.n]
    if full and all(_timelike(cloud, column) for cloud in full):
        return "last" if time == "first" else "first"
    return None


def warn_of_other_time(signature: Signature, *clouds: Any) -> None:
    """Warn on behalf of the caller of jorth where `other_time` finds something."""
    there = other_time(signature, *clouds)
    if there is not None:
        remedy = f'Signature.lorentz(n, "{there}"), or time="{there}" to an estimator'
        level, frame = 1, sys._getframe()
        while frame.f_back and frame.f_globals["__name__"].startswith("jorth."):
            level, frame = level + 1, frame.f_back
        warnings.warn(message(there, remedy), OtherTimeWarning, stacklevel=level)


def message(there: Time, remedy: str) -> str:
    """What to say where `other_time` finds something."""
    here = "last" if there == "first" else "first"
    return (
        f"the signature has its time {here}, but all points are timelike with the time {there}: "
        f"each is longest in its {there} column; if that holds the time, pass {remedy}"
    )


def _timelike(cloud: Any, column: int) -> bool:
    """Whether most rows are timelike and the others nearly, and their times have one sign."""
    rows = cloud.reshape(-1, cloud.shape[-1]) if cloud.ndim > 2 else cloud
    if rows.shape[0] < FEWEST:
        return False
    if hasattr(rows, "tocsr"):
        rows = rows.tocsr()
    inside = 0
    for part in (rows[:FIRST_LOOK], rows[FIRST_LOOK:]):
        times, sizes = _times_and_sizes(part, column)
        one_sign = bool((times > 0).all()) or bool((times < 0).all())
        if not one_sign or not bool((times.abs() > NEARLY * sizes).all()):
            return False
        inside += int((times.abs() > TIMELIKE * sizes).sum())
    return bool(2 * inside > rows.shape[0])


def _times_and_sizes(rows: Any, column: int) -> tuple[Tensor, Tensor]:
    """One column of rows, and the norms of the rows."""
    if hasattr(rows, "tocsr"):
        time = np.ravel(rows[:, [column]].toarray())
        total = np.sqrt(np.ravel(rows.multiply(rows).sum(axis=1)))
        return torch.from_numpy(time.astype(np.float64)), torch.from_numpy(total.astype(np.float64))
    tensor = rows.detach() if isinstance(rows, Tensor) else torch.from_numpy(np.asarray(rows))
    return tensor[:, column].double(), torch.linalg.vector_norm(tensor.double(), dim=1)
