"""How well X aligns two clouds, compared with the identity, and which components were searched.

R^2 is 1 - ||source X - target||^2 / ||target - mean||^2 with the mean of each column, as in
`jorth.estimators.LorentzAligner.score`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth.group import component
from jorth.signature import Signature
from jorth.solvers import Result, Status
from jorth.storage.matrices import Matrix

Component = tuple[int, int]
ROUNDING = 1e-12  # of the squares of the target


@dataclass(frozen=True)
class Fit:
    """What X and the identity make of the rows of a Procrustes problem."""

    rows: int
    r_squared: float  # NaN if all rows of the target are the same
    identity_value: float
    identity_r_squared: float
    identity_is_better: bool  # by more than rounding


def fit_of(source: Matrix, target: NDArray[Any], X: NDArray[Any]) -> Fit:
    """Measure X (n, k), and the first k columns of the identity, in float64."""
    source = source.astype(np.float64)
    target = np.asarray(target, dtype=np.float64)
    m, k = target.shape
    size = float(np.abs(target).max()) or 1.0  # so that no square over- or underflows
    spread = float(np.square((target - target.mean(axis=0)) / size).sum())
    moved = source @ X.astype(np.float64)
    start = source[:, :k].toarray() if hasattr(source, "toarray") else source[:, :k]
    lost, lost_at_start = (
        float(np.square((points - target) / size).sum()) for points in (moved, start)
    )
    rounding = ROUNDING * float(np.square(target / size).sum())
    return Fit(
        rows=m,
        r_squared=_share_kept(lost, spread),
        identity_value=lost_at_start * size / (2 * m) * size,
        identity_r_squared=_share_kept(lost_at_start, spread),
        identity_is_better=lost > lost_at_start + rounding,
    )


def _share_kept(lost: float, spread: float) -> float:
    return 1 - lost / spread if spread > 0 else np.nan


@dataclass(frozen=True)
class Search:
    """The components of O(p, q) that the runs were in, and those that nothing is known of."""

    best: Component  # that of X
    searched: tuple[Component, ...]
    left_out: tuple[Component, ...]  # a bound shows that they hold nothing lower
    unknown: tuple[Component, ...]


def search_of(result: Result, signature: Signature, *, starts: bool, bounds: bool) -> Search | None:
    """Where the runs of a result were; None for a thin X, or one that has lost its digits.

    Args:
        result: The result.
        signature: The signs of J.
        starts: Whether its stages are runs from several starts, and not of a method.
        bounds: Whether components without a run were left out because of a bound.
    """
    best = component_of(result.x, signature)
    if best is None:
        return None
    runs = (result.stages if starts else ()) or (result,)
    found = (component_of(run.x, signature) for run in runs)
    searched = tuple(dict.fromkeys(where for where in found if where is not None))
    others = tuple(where for where in components(signature) if where not in searched)
    if bounds and result.status is not Status.INTERRUPTED:
        return Search(best, searched, others, ())
    return Search(best, searched, (), others)


def component_of(X: NDArray[Any], signature: Signature) -> Component | None:
    """The component of a square X; None for a thin X, or one that has lost its digits."""
    if X.shape[0] == X.shape[1]:
        with suppress(ValueError):
            plus, minus = component(X, signature)
            return plus, minus
    return None


def components(signature: Signature) -> list[Component]:
    """All components of O(p, q): an empty block has the sign +1 alone."""
    signs = [(1, -1) if count else (1,) for count in (signature.p, signature.q)]
    return [(plus, minus) for plus, minus in product(*signs)]
