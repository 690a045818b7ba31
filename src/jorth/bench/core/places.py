"""The first three places."""

from __future__ import annotations

from typing import Any


def best_three(scores: dict[str, Any]) -> dict[str, int]:
    """The places 1, 2 and 3 by scores, lower is better; equal scores share a place."""
    placed = {
        name: 1 + sum(other < mine for other in scores.values()) for name, mine in scores.items()
    }
    return {name: place for name, place in placed.items() if place <= 3}
