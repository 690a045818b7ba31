"""Which column of points is the time: a check that data fit a Lorentz signature.

A row is timelike if its time is longer than the rest of it. Points of the hyperboloid are timelike,
and their times have one sign. Far out a little noise makes some of them spacelike; so most rows
must be timelike, and the others nearly so.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from torch import Tensor

from jorth.signature import Signature

TIMELIKE = 0.5**0.5 * (1 + 1e-6)
"""Bounds the share of a row that its time must have: t^2 > |x|^2 / 2, with room for rounding."""


class OtherTimeWarning(UserWarning):
    """Points have their time at the other end of a Lorentz signature.

    >>> warnings.simplefilter("ignore", jorth.OtherTimeWarning)  # where the order is meant
    """


def other_time(signature: Signature, *clouds: Any) -> str | None:
    """Return the end at which all rows have their time if that is not the end of the signature.

    Args:
        signature: The signs of J; only a Lorentz signature is questioned.
        *clouds: (..., m, n), dense or scipy.sparse. Those with fewer columns are passed over.
    """
    full = [cloud for cloud in clouds if cloud.shape[-1] == signature.n]
    last = signature.n - 1
    if not full or last == 0 or signature.negative.tolist() not in ([0], [last]):
        return None
    other = last - int(signature.negative[0])
    found = all(_is_timelike(cloud, other) for cloud in full)
    return ("first" if other == 0 else "last") if found else None


def warn_of_other_time(signature: Signature, *clouds: Any) -> None:
    """Warn on behalf of the caller of jorth where `other_time` finds something."""
    there = other_time(signature, *clouds)
    if there is not None:
        level, frame = 1, sys._getframe()
        while frame.f_back and frame.f_globals.get("__name__", "").startswith("jorth."):
            level, frame = level + 1, frame.f_back
        here = "last" if there == "first" else "first"
        warnings.warn(
            f"the signature has its time {here}, but all points are timelike with the time {there}:"
            f" each is longest in its {there} column; if that holds the time, pass a Lorentz "
            f"signature with the time {there}",
            OtherTimeWarning,
            stacklevel=level,
        )


def _is_timelike(cloud: Any, column: int) -> bool:
    """Check that most rows are timelike and the others nearly, and their times have one sign."""
    rows: Any = cloud.detach().cpu().numpy() if isinstance(cloud, Tensor) else cloud
    sparse = hasattr(rows, "tocsr")
    rows = rows.tocsr() if sparse else np.asarray(rows).reshape(-1, cloud.shape[-1])
    if rows.shape[0] < 3:  # any data may look timelike by chance
        return False
    inside = 0
    for part in (rows[:16], rows[16:]):  # a few rows tell in most cases
        entries: Any = part.astype(np.float64)
        times = np.ravel(entries[:, [column]].toarray() if sparse else entries[:, column])
        squares = entries.multiply(entries) if sparse else entries**2
        share = np.abs(times) / np.sqrt(np.maximum(np.ravel(squares.sum(axis=1)), 1e-300))
        one_sign = bool((times > 0).all() or (times < 0).all())
        if not one_sign or not (share > 0.99 * TIMELIKE).all():
            return False
        inside += int((share > TIMELIKE).sum())
    return bool(2 * inside > rows.shape[0])
