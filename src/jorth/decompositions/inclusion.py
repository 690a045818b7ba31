"""Discs that contain the eigenvalues of a nearly diagonal pencil, by Gershgorin's theorem."""

from __future__ import annotations

import numpy as np

from jorth.decompositions.batch import Floats

OUTWARD = 1.0 + 1e-9
"""Covers the rounding of the radii themselves."""


def inclusion_radii(values: Floats, E: Floats, G: Floats, weights: Floats) -> Floats:
    """Bounds of |values_i - lambda_i| for the eigenvalues lambda of a pencil (H, G), all (k, k).

    E has the bounds |h_ij - values_i g_ij|, and G those of |g_ij| for j != i and lower bounds of
    |g_ii|. If H v = lambda G v and |v_i| / weights_i is the largest, then

        |lambda - values_i| <= (sum_j E_ij w_j / w_i) / (G_ii - sum_(j != i) G_ij w_j / w_i),

    the sum over all j. As many lambda are in a connected union of such discs as there are discs in
    it (G. W. Stewart, Gershgorin theory for the generalized eigenvalue problem A x = lambda B x,
    Math. Comp. 29 (1975)): of lambda and values in the same union, which is an interval here, none
    are further apart than its ends. Then the weights of all other unions are reduced by a factor as
    small as keeps their discs away from one union, whose radii become the smaller: the bounds are
    of second order in E off the diagonal. Infinite where G is not dominated by its diagonal.
    """
    ratio = weights / weights[:, None]
    E, G = E * ratio, G * ratio
    diagonal = G.diagonal()
    others = G - np.diag(diagonal)
    denominators = diagonal - others.sum(axis=1)
    if not (denominators > 0).all():
        return np.full(len(values), np.inf, dtype=np.float64)
    radii = OUTWARD * E.sum(axis=1) / denominators
    union = _unions(values, radii)
    best: Floats = np.empty_like(radii)
    for own in (union == label for label in range(union.max() + 1)):
        factor = _reduction(values, E, others, diagonal, radii, own)
        scale = np.where(own, 1.0, factor)
        inner = OUTWARD * (E[own] @ scale) / (diagonal[own] - others[own] @ scale)
        # differences of values are exact to rounding, values + radii are not
        best[own] = OUTWARD * (_distances(values[own], values[own]) + inner).max(axis=1)
    return best


def _distances(values: Floats, others: Floats) -> Floats:
    """|values_i - others_j|."""
    return np.abs(values[:, None] - others)


def _unions(values: Floats, radii: Floats) -> np.ndarray:
    """Which discs overlap, directly or by others: the number of its union for each."""
    order = np.argsort(values - radii, kind="stable")
    reach = np.maximum.accumulate((values + radii)[order])
    starts = (values - radii)[order][1:] > reach[:-1]
    labels = np.empty(len(values), dtype=np.intp)
    labels[order] = np.concatenate([[0], np.cumsum(starts)])
    return labels


def _reduction(
    values: Floats, E: Floats, G: Floats, diagonal: Floats, radii: Floats, own: np.ndarray
) -> float:
    """The factor for the weights outside of ``own`` that keeps the discs there away from it."""
    if own.all():
        return 1.0
    away = ~own
    room = (_distances(values[away], values[own]) / OUTWARD - radii[own]).min(axis=1)
    # radius <= room, where E and G of the own columns are divided by the factor; the sums over all
    # columns stand for those over the others, which are smaller
    inside = E[np.ix_(away, own)].sum(axis=1) + room * G[np.ix_(away, own)].sum(axis=1)
    left = room * diagonal[away] - OUTWARD * (E[away].sum(axis=1) + room * G[away].sum(axis=1))
    if not (left > 0).all():
        return 1.0
    return float(np.minimum(OUTWARD * inside / left, 1.0).max())
