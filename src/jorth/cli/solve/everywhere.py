"""Minimise from a start in every component of O(p, q), and keep the lowest end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jorth.cli.solve.fit import Component, components
from jorth.objectives import AbstractObjective
from jorth.signature import Signature
from jorth.solvers import Interrupt, Result, Status, best_of, minimize


def minimize_everywhere(
    objective: AbstractObjective,
    signature: Signature,
    dtype: np.dtype[Any],
    *,
    checkpoint: Path | None = None,
    **settings: Any,
) -> Result:
    """The best of `minimize` from the identity and from its reflections in the other components.

    The runs are the stages of the result. None follows one that is interrupted, or one that finds
    the objective unbounded below.

    Args:
        objective: Of a square X.
        signature: The signs of J.
        dtype: The precision.
        checkpoint: A folder, with a subfolder for each component.
        **settings: Other arguments of `minimize`; limits apply to each run.
    """
    runs: list[Result] = []
    with Interrupt() as interrupt:
        interrupt.hold()  # results must not be lost between two runs
        for which in components(signature):
            folder = None if checkpoint is None else checkpoint / "{:+d}{:+d}".format(*which)
            start = reflection(signature, which).astype(dtype)
            runs.append(
                minimize(objective, start, signature=signature, checkpoint=folder, **settings)
            )
            if runs[-1].status in (Status.INTERRUPTED, Status.UNBOUNDED):
                break
    return best_of(runs)


def reflection(signature: Signature, which: Component) -> np.ndarray[Any, Any]:
    """The identity with the last + or the last - turned, or both, to get to a component."""
    signs = np.ones(signature.n)
    for sign, positions in zip(which, (signature.positive, signature.negative), strict=True):
        signs[positions[-1:]] = sign
    return np.diag(signs)
