"""The proximal weight theta of a plane problem, and when its null lengths are formed from rows."""

from __future__ import annotations

RELATIVE_THETA = 1e-12
"""The default proximal weight, relative to the curvature of each pair."""
NEAR_NULL = 1e-4
"""Below this part of ||x_i||^2 + ||x_j||^2 a null length ||x_i +- x_j||^2 is formed from rows, not from products."""


def signed_theta(theta: float | None) -> float:
    """Theta as the compiled kernels take it: negative means relative."""
    return -RELATIVE_THETA if theta is None else float(theta)
