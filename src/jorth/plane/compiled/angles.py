"""The angles of a step from its slopes, compiled: `jorth.kernels.angles` for one side of a matrix.

Matrices are given as vectors of their n^2 entries, so that loops are long also where n is small.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import compiled_sum


class Rule(NamedTuple):
    """The numbers of a step: see `jorth.kernels.angles` and `jorth.optim.steps.guard`.

    ``sense`` is -1 to ascend, ``largest`` the largest number of the dtype.
    """

    lr: float
    momentum: float
    decay: float
    eps: float
    gain_rate: float
    max_angle: float
    reach: float
    first_gain: float
    largest_gain: float
    largest_growth: float
    sense: float
    largest: float
    max_norm: float
    drift: float
    tolerance: float


class Averages(NamedTuple):
    """The state of one side of one matrix, in the dtype of the parameter.

    The root is of n^2 entries, of one, or of none; the weights and the two gains are vectors.
    """

    momentum: np.ndarray
    momentum_weight: np.ndarray
    root: np.ndarray
    root_weight: np.ndarray
    gain: np.ndarray


@compiled
def next_angles(
    S: np.ndarray, averages: Averages, boosts: np.ndarray, rule: Rule, r: np.ndarray, D: np.ndarray
) -> None:
    """Put the angles in D, from finite slopes S; all are vectors (n^2,), and so is r, work space.

    ``boosts`` is 1 in the planes of boosts and 0 elsewhere. S is limited in place.
    """
    size, gain, root = S.shape[0], averages.gain, averages.root
    turn, push = rule.lr, rule.lr
    if root.shape[0] == 0:
        _average_slopes(averages, S, rule.momentum)
        inverse = 1.0 / averages.momentum_weight[0]
        for t in range(size):
            D[t] = inverse * averages.momentum[t]
    else:
        last = root.shape[0] - 1
        for t in range(size):
            r[t] = root[min(t, last)]
        if averages.root_weight[0] > 0.0:
            _limit(S, r, averages, rule)
            if rule.gain_rate > 0.0 and averages.momentum_weight[0] > 0.0:
                _direction(averages, r, rule.eps, D)
                _adapt(gain, D, S, boosts, rule)
        _average_squares(averages, S, r, rule.decay)
        _average_slopes(averages, S, rule.momentum)
        _direction(averages, r, rule.eps, D)
        turn, push = turn * gain[0], push * gain[1] * rule.reach
    for t in range(size):
        angle = D[t] * (turn + boosts[t] * (push - turn))
        D[t] = min(max(angle, -rule.max_angle), rule.max_angle)


@compiled_sum
def _square_sum(values: np.ndarray) -> float:
    total = 0.0
    for t in range(values.shape[0]):
        total += values[t] * values[t]
    return total


@compiled
def _mean_square(S: np.ndarray) -> float:
    """The mean of S_ij^2 over i != j."""
    size = S.shape[0]
    mean: float = _square_sum(S) / max(size - math.sqrt(size), 1.0)
    return mean


@compiled_sum
def _limit(S: np.ndarray, r: np.ndarray, averages: Averages, rule: Rule) -> None:
    """Scale down slopes whose squares would multiply r^2 by more than the largest growth."""
    factor = rule.largest_growth / (1.0 - rule.decay) / averages.root_weight[0]
    size = S.shape[0]
    if averages.root.shape[0] < size:
        square, most = _mean_square(S), factor * r[0] * r[0]
        if 0.0 < most < square:
            scale = math.sqrt(most / square)
            for t in range(size):
                S[t] *= scale
        return
    exceed = 0.0
    for t in range(size):  # without a branch, and seldom followed by the other loop
        most = factor * r[t] * r[t]
        exceed += 1.0 if most > 0.0 and S[t] * S[t] > most else 0.0
    if exceed > 0.0:
        for t in range(size):
            most, square = factor * r[t] * r[t], S[t] * S[t]
            if 0.0 < most < square:
                S[t] *= math.sqrt(most / square)


@compiled_sum
def _adapt(
    gain: np.ndarray, before: np.ndarray, S: np.ndarray, boosts: np.ndarray, rule: Rule
) -> None:
    """Multiply the gains by exp(rate c), c the cosine between the last step and the new slopes."""
    a0, b0, ab0, a1, b1, ab1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(S.shape[0]):
        push = boosts[t]
        turn = 1.0 - push
        a, b = before[t], S[t]
        aa, bb, ab = a * a, b * b, a * b
        a0 += turn * aa
        b0 += turn * bb
        ab0 += turn * ab
        a1 += push * aa
        b1 += push * bb
        ab1 += push * ab
    for kind in range(2):
        size = math.sqrt(a1) * math.sqrt(b1) if kind == 1 else math.sqrt(a0) * math.sqrt(b0)
        if size > 0.0:
            cosine = (ab1 if kind == 1 else ab0) / size
            grown = gain[kind] * math.exp(rule.gain_rate * cosine)
            gain[kind] = min(max(grown, 1.0 / rule.largest_gain), rule.largest_gain)


@compiled
def _average_squares(averages: Averages, S: np.ndarray, r: np.ndarray, decay: float) -> None:
    """Update the roots of the averaged squares, and r with them."""
    rest = 1.0 - decay
    root, size = averages.root, S.shape[0]
    averages.root_weight[0] = decay * averages.root_weight[0] + rest
    if root.shape[0] < size:
        root[0] = math.sqrt(decay * r[0] * r[0] + rest * _mean_square(S))
        for t in range(size):
            r[t] = root[0]
        return
    for t in range(size):
        root[t] = math.sqrt(decay * (r[t] * r[t]) + rest * (S[t] * S[t]))
        r[t] = root[t]


@compiled
def _average_slopes(averages: Averages, S: np.ndarray, momentum: float) -> None:
    rest = 1.0 - momentum
    M = averages.momentum
    for t in range(S.shape[0]):
        M[t] = M[t] + rest * (S[t] - M[t])
    averages.momentum_weight[0] = momentum * averages.momentum_weight[0] + rest


@compiled
def _direction(averages: Averages, r: np.ndarray, eps: float, D: np.ndarray) -> None:
    """M / (r + eps ||r||), both averages over their weights; 0 where r is."""
    scale = 1.0 / math.sqrt(averages.root_weight[0])
    floor = eps * scale * math.sqrt(_square_sum(r) / r.shape[0])
    inverse = 1.0 / averages.momentum_weight[0]
    for t in range(r.shape[0]):
        D[t] = inverse * averages.momentum[t] / (scale * r[t] + floor) if r[t] > 0.0 else 0.0
