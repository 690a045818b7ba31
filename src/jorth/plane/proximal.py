"""Settings of pair steps: the proximal weight theta, and thresholds that all kernels share."""

from __future__ import annotations

from typing import NamedTuple

RELATIVE_THETA = 1e-12
"""The default proximal weight, relative to the curvature of each pair."""
NEAR_NULL = 1e-4
"""A null length ||x_i +- x_j||^2 is formed from rows if below this part of |x_i|^2 + |x_j|^2."""
LARGEST_SQUARE = 2.0**53
"""The squared length of a row beyond which feasibility has no digits left."""


class StepRule(NamedTuple):
    """How exact pair steps on a quadratic form are taken."""

    theta: float
    """The proximal weight; negative is relative to the curvature."""
    all_components: bool
    stop_unbounded: bool
    has_d: bool = False
    """Whether the form has a D: null lengths then come from X D X^T, not from the rows of X."""
    concave: bool = False
    """Whether f is concave, and therefore majorised by its linear part."""
