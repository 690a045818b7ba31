"""Which runs are not worth their time, given those before them: penalties that lost, methods that fell short."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jorth.bench.records import Row
from jorth.bench.scoring import GAPS
from jorth.bench.speed.cells import CDOPT, ONE_SEED, SpeedCell

ENOUGH = 1e-4
"""A method that has not come within this gap is left out at the next size, from ONE_SEED on."""


def left_out(cell: SpeedCell, rows: Sequence[Row]) -> str | None:
    """Why a run is left out, or None: it is run."""
    mates = [
        row
        for row in rows
        if _same_kind(SpeedCell.from_json(row["cell"]), cell) and row["outcome"] == "done"
    ]
    here = [row for row in mates if row["cell"]["n"] == cell.n]
    below = [row["cell"]["n"] for row in mates if row["cell"]["n"] < cell.n]
    before = [row for row in mates if below and row["cell"]["n"] == max(below)]
    if cell.n >= ONE_SEED and before and not any(f"{ENOUGH:g}" in row["reached"] for row in before):
        return f"no run within {ENOUGH:g} at n = {max(below)}"
    if cell.method != CDOPT:
        return None
    tried = (
        before if cell.n >= ONE_SEED else [row for row in here if row["cell"]["seed"] != cell.seed]
    )
    if tried and (best := best_beta(tried)) != cell.beta:
        return f"beta {best:g} was better " + (
            f"at n = {max(below)}" if cell.n >= ONE_SEED else "on the first seed"
        )
    return None


def best_beta(rows: Sequence[Row]) -> float:
    """The penalty of the run, on the seed that came first, that reached the deepest gap, and that the soonest."""
    first = rows[0]["cell"]["seed"]
    best = min((row for row in rows if row["cell"]["seed"] == first), key=depth)
    return float(best["cell"]["beta"])


def depth(row: Row) -> tuple[float, float]:
    """Less is better: the least of GAPS that was reached, then the seconds to it; the gap itself where none was."""
    for gap in sorted(GAPS):
        if f"{gap:g}" in row["reached"]:
            return gap, row["reached"][f"{gap:g}"]
    return math.inf, row["gap"]


def _same_kind(other: SpeedCell, cell: SpeedCell) -> bool:
    """Alike but for size, seed and penalty."""
    same = (other.method, other.share, other.condition, other.threads)
    return same == (cell.method, cell.share, cell.condition, cell.threads)
