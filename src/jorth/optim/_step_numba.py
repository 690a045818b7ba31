"""The angle step of `jorth.optim.jobcd` on the CPU, compiled: one call per parameter, in place.

The functions have the names of the reference, and do the same for one matrix after the other. The
arithmetic is float64; what is stored has the dtype of the parameter. Slopes and angles are vectors
of their n^2 entries, so that loops are long also where n is small.
"""

from __future__ import annotations

import math
from collections import namedtuple
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth._numba import compiler
from jorth.group.elements import column_signs
from jorth.signature import Signature

if TYPE_CHECKING:
    from jorth.optim.jobcd import Rule

NOT_FINITE, HELD, REFUSED = 1, 2, 3
"""Outcomes of a step; a matrix that is held takes its rotations alone."""
FEW_ROWS = 16
"""Up to here plain loops multiply matrices faster than BLAS."""

compiled = compiler(fastmath={"reassoc", "contract"}, internal=True)
inlined = compiler(fastmath={"reassoc", "contract"}, inline=True)
"""Sums may be reassociated into vector registers; NaN and infinity are as in IEEE arithmetic.

Put inline is what is short or called for tiny matrices most; each copy takes time to compile.
"""


Average = namedtuple("Average", "momentum momentum_weight root root_weight gain")
"""The state of one side of a matrix: momentum and root (n^2,), gain (2,), weights (1,)."""


def take_step(
    rule: Rule,
    signature: Signature,
    rounds: NDArray[np.int64],
    p: Tensor,
    G: Tensor,
    state: dict[str, Tensor],
) -> tuple[int, int]:
    """Move a parameter (..., n, k) along its gradient, in place, with its state.

    Returns:
        How many of its matrices had a gradient that was not finite, and how many were held.
    """
    X = p.detach().contiguous()
    matrices = X.numpy().reshape(-1, *X.shape[-2:])
    gradients = G.detach().to(X.dtype).contiguous().numpy().reshape(matrices.shape)
    b, sides, _ = state["gain"].shape
    signs, boosts = _signs_and_boosts(signature)
    of_columns = np.tile(signs, (b, 1))
    if X.shape[-1] < X.shape[-2]:
        of_columns = column_signs(X, signature).double().reshape(b, -1).numpy()
    outcome = np.zeros(b, dtype=np.int8)
    step_matrices(
        outcome, matrices, gradients,
        Average(*(state[name].view(b, sides, -1).numpy() for name in Average._fields)),
        rounds.reshape(-1, 2), signs, boosts, of_columns, rule,
    )  # fmt: skip
    if X.data_ptr() != p.data_ptr():  # it was not contiguous
        p.copy_(X)
    torch.autograd.graph.increment_version(p)
    return int((outcome == NOT_FINITE).sum()), int((outcome > NOT_FINITE).sum())


@lru_cache(maxsize=16)
def _signs_and_boosts(signature: Signature) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the signs (n,), and (n^2,) with 1 for the planes of boosts and 0 for rotations."""
    signs = signature.signs.astype(np.float64)
    return signs, (signs[:, None] != signs).astype(np.float64).reshape(-1)


# the whole step of a matrix, top to bottom
@compiler()
def step_matrices(
    outcome: np.ndarray,
    X: np.ndarray,
    G: np.ndarray,
    state: Average,
    pairs: np.ndarray,
    signs: np.ndarray,
    boosts: np.ndarray,
    of_columns: np.ndarray,
    rule: Rule,
) -> None:
    """Move X (b, n, k) along G.

    Args:
        outcome: (b,), zeros, which are replaced by what kept a matrix from its step.
        X: The matrices, float32 or float64; changed in place.
        G: Their gradients, of the same dtype.
        state: The averages of all matrices (b, sides, ...), of the same dtype; changed in place.
        pairs: (m, 2), the planes to be turned, in order.
        signs: (n,), float64, of the rows.
        boosts: (n^2,), 1 for the planes of boosts and 0 for those of rotations.
        of_columns: (b, k), float64, the signs of the columns.
        rule: The numbers of the step.
    """
    b, n, k = X.shape
    sides = state.gain.shape[1]
    rows, columns, gradient = np.empty((n, k)), np.empty((k, n)), np.empty((n, k))
    slopes, angles = np.empty((sides, n, n)), np.empty((sides, n, n))
    S, theta, root = slopes.reshape(sides, n * n), angles.reshape(sides, n * n), np.empty(n * n)
    shears, E, rounded = np.empty((2, pairs.shape[0])), np.empty((k, k)), np.empty((n, k), X.dtype)
    for m in range(b):
        load(X[m], 1.0, rows)
        check = load(G[m], rule.sense, gradient)
        for side in range(sides):
            transpose(rows, columns)
            if side == 0:
                multiply(gradient, columns, angles[side])
            else:
                multiply(columns, gradient, angles[side])
            if not skew_slopes(angles[side], signs, side, slopes[side]) <= rule.largest_number:
                check = math.inf
        if check != 0.0:  # also if it is NaN
            outcome[m] = NOT_FINITE
            continue
        for side in range(sides):
            average = Average(
                state.momentum[m, side], state.momentum_weight[m, side],
                state.root[m, side], state.root_weight[m, side], state.gain[m, side],
            )  # fmt: skip
            next_angles(S[side], average, boosts, rule, root, theta[side])
        before = square_sum(rows)
        for attempt in range(2):
            rotate_rows(rows, angles[0], signs, pairs, shears)
            if sides == 2:
                transpose(rows, columns)
                rotate_rows(columns, angles[1], signs, pairs, shears)
                transpose(columns, rows)
            after = square_sum(rows)
            if after <= rule.max_norm * rule.max_norm or after <= before or attempt == 1:
                break
            outcome[m] = HELD
            for side in range(sides):
                for t in range(n * n):
                    theta[side, t] *= 1.0 - boosts[t]
                    state.momentum[m, side, t] *= 1.0 - boosts[t]
                if rule.gain_rate > 0.0:
                    state.gain[m, side, 1] = rule.first_gain
            load(X[m], 1.0, rows)
        load(rows, 1.0, rounded)
        load(rounded, 1.0, rows)
        transpose(rows, columns)
        if remove_drift(rows, columns, signs, of_columns[m], rule, gradient, E):
            load(rows, 1.0, X[m])
        else:
            outcome[m] = REFUSED


# -- slopes


@inlined
def load(source: np.ndarray, factor: float, target: np.ndarray) -> float:
    """Copy a matrix times a factor; return 0, or NaN if an entry is not finite."""
    check = 0.0
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            entry = factor * source[i, c]
            target[i, c] = entry
            check += 0.0 * entry
    return check


@inlined
def transpose(source: np.ndarray, target: np.ndarray) -> None:
    for c in range(target.shape[0]):
        for i in range(target.shape[1]):
            target[c, i] = source[i, c]


@compiled
def multiply(A: np.ndarray, B: np.ndarray, product: np.ndarray) -> None:
    """A B into ``product``."""
    if A.shape[0] > FEW_ROWS:
        np.dot(A, B, product)
        return
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            product[i, j] = 0.0
        for c in range(A.shape[1]):
            entry = A[i, c]
            for j in range(B.shape[1]):
                product[i, j] += entry * B[c, j]


@inlined
def square_sum(X: np.ndarray) -> float:
    total = 0.0
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            total += X[i, c] * X[i, c]
    return total


@compiled
def skew_slopes(M: np.ndarray, signs: np.ndarray, side: int, slopes: np.ndarray) -> float:
    """skew(J M), or skew(J M^T) for columns; return the largest entry, or NaN."""
    largest = 0.0
    for i in range(M.shape[0]):
        slopes[i, i] = 0.0
        for j in range(i):
            a, b = (M[i, j], M[j, i]) if side == 0 else (M[j, i], M[i, j])
            slope = 0.5 * (signs[i] * a - signs[j] * b)
            slopes[i, j] = slope
            slopes[j, i] = -slope
            if not abs(slope) <= largest and not math.isnan(largest):  # also if it is NaN
                largest = abs(slope)
    return largest


# -- angles


@compiled
def next_angles(
    S: np.ndarray, average: Average, boosts: np.ndarray, rule: Rule, r: np.ndarray, D: np.ndarray
) -> None:
    """Put the angles (n^2,) in D, from finite slopes S; r is work space, and S is limited."""
    momentum, gain, size = average.momentum, average.gain, S.shape[0]
    for t in range(size):
        r[t] = average.root[t]
    if average.root_weight[0] > 0.0:
        factor = rule.largest_growth / (1.0 - rule.decay) / average.root_weight[0]
        exceed = 0.0
        for t in range(size):  # without a branch, and seldom followed by the other loop
            most = factor * r[t] * r[t]
            exceed += 1.0 if most > 0.0 and S[t] * S[t] > most else 0.0
        if exceed > 0.0:
            for t in range(size):
                most, square = factor * r[t] * r[t], S[t] * S[t]
                if 0.0 < most < square:
                    S[t] *= math.sqrt(most / square)
        if rule.gain_rate > 0.0:
            adapt_gain(average, r, S, boosts, rule)
    old, new = rule.decay, 1.0 - rule.decay
    for t in range(size):
        average.root[t] = math.sqrt(old * (r[t] * r[t]) + new * (S[t] * S[t]))
        r[t] = average.root[t]
        momentum[t] = momentum[t] + (1.0 - rule.momentum) * (S[t] - momentum[t])
    average.root_weight[0] = old * average.root_weight[0] + new
    average.momentum_weight[0] = rule.momentum * average.momentum_weight[0] + 1.0 - rule.momentum
    direction(average, r, rule.eps, D)
    turn, push = rule.lr * gain[0], rule.lr * gain[1] * rule.reach
    for t in range(size):
        angle = D[t] * (turn + boosts[t] * (push - turn))
        D[t] = min(max(angle, -rule.max_angle), rule.max_angle)


@inlined
def scale_and_floor(average: Average, r: np.ndarray, eps: float) -> tuple[float, float]:
    """Return the factor that takes the weight from r, and eps ||r|| without it."""
    total = 0.0
    for t in range(r.shape[0]):
        total += r[t] * r[t]
    scale = 1.0 / math.sqrt(average.root_weight[0])
    return scale, eps * scale * math.sqrt(total / r.shape[0])


@inlined
def direction(average: Average, r: np.ndarray, eps: float, D: np.ndarray) -> None:
    """M / (r + eps ||r||), both averages over their weights; 0 where r is."""
    scale, floor = scale_and_floor(average, r, eps)
    inverse = 1.0 / average.momentum_weight[0]
    for t in range(r.shape[0]):
        D[t] = inverse * average.momentum[t] / (scale * r[t] + floor) if r[t] > 0.0 else 0.0


@inlined
def adapt_gain(
    average: Average, r: np.ndarray, S: np.ndarray, boosts: np.ndarray, rule: Rule
) -> None:
    """Multiply the gains by exp(rate c (1 + 4 c^2 / (1 + gain^2))), c the cosine of D and S / r."""
    gain = average.gain
    scale, floor = scale_and_floor(average, r, rule.eps)
    a0, b0, ab0, a1, b1, ab1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(S.shape[0]):
        push = boosts[t]
        turn = 1.0 - push
        inverse = 1.0 / (scale * r[t] + floor) if r[t] > 0.0 else 0.0
        a, b = inverse * average.momentum[t], inverse * S[t]
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
            c, old = (ab1 if kind == 1 else ab0) / size, gain[kind]
            early = rule.early_growth * c * c / (1.0 + old * old)
            grown = old * math.exp(rule.gain_rate * c * (1.0 + early))
            gain[kind] = min(max(grown, 1.0 / rule.largest_gain), rule.largest_gain)


# -- rotations


def _tangent_coefficients(count: int) -> tuple[float, ...]:
    """Return those of tan(h) / h = 1 + h^2 / 3 + ...: the series of sine divided by cosine."""
    found: list[float] = []
    for k in range(count):
        known = sum((-1) ** j / math.factorial(2 * j) * found[k - j] for j in range(1, k + 1))
        found.append((-1) ** k / math.factorial(2 * k + 1) - known)
    return tuple(found)


TANGENT = _tangent_coefficients(17)
"""tan(h) = h (1 + h^2 / 3 + ...), tanh(h) = h (1 - h^2 / 3 + ...), to rounding for |h| <= 1/2."""


@compiler(fastmath={"contract"}, inline=True)
def rotate_rows(
    X: np.ndarray, angles: np.ndarray, signs: np.ndarray, pairs: np.ndarray, shears: np.ndarray
) -> None:
    """X <- ... T_2 T_1 X, T turning the rows of a pair by exp(-J K), K_ij = -K_ji the angle.

    A turn is three shears, x += t y, y += s x, x += t y, with t = -tan(a/2) and s = sin(a) for a
    rotation, t = tanh(a/2) and s = sinh(a) for a boost. For rounded t and s the shears still keep
    a form x^2 + c y^2 (x^2 - c y^2) exactly, c = 1 up to rounding, so that rows drift only by the
    rounding of their entries. ``shears`` (2, m) is work space.
    """
    for m in range(pairs.shape[0]):
        i, j = pairs[m, 0], pairs[m, 1]
        shears[0, m] = signs[i] * signs[j]
        shears[1, m] = 0.5 * signs[j] * angles[i, j]
    for m in range(pairs.shape[0]):  # contiguous and without branches, for vector registers
        kind, half = shears[0, m], shears[1, m]
        square = kind * half * half
        series = TANGENT[-1]
        for power in range(len(TANGENT) - 2, -1, -1):
            series = series * square + TANGENT[power]
        tangent = half * series
        shears[0, m] = -kind * tangent
        shears[1, m] = 2.0 * tangent / (1.0 + kind * tangent * tangent)
    for m in range(pairs.shape[0]):
        i, j, outer, inner = pairs[m, 0], pairs[m, 1], shears[0, m], shears[1, m]
        for c in range(X.shape[1]):
            y = X[j, c]
            x = X[i, c] + outer * y
            y += inner * x
            X[i, c] = x + outer * y
            X[j, c] = y


# -- the guard


@compiled
def remove_drift(
    X: np.ndarray,
    transposed: np.ndarray,
    signs: np.ndarray,
    of_columns: np.ndarray,
    rule: Rule,
    work: np.ndarray,
    E: np.ndarray,
) -> bool:
    """Take drift from X by a Newton step; False if it is off the group by half its digits."""
    n, k = X.shape
    longest, square = 1.0, 0.0
    for i in range(n):
        length = 0.0
        for c in range(k):
            length += X[i, c] * X[i, c]
            work[i, c] = signs[i] * X[i, c]
        longest = max(longest, length)
        square += length
    multiply(transposed, work, E)
    worst = 0.0
    for i in range(k):
        for c in range(k):
            E[i, c] *= of_columns[i]
        E[i, i] -= 1.0
        for c in range(k):
            worst = max(worst, abs(E[i, c]))
    if not (worst <= math.sqrt(rule.unit) * longest and square < math.inf):  # also if it is NaN
        return False
    size = math.sqrt(square_sum(E))
    due = min(rule.drift * rule.unit * square, 0.5 * rule.newton_radius)
    if due < size <= rule.newton_radius:
        multiply(X, E, work)
        for i in range(n):
            for c in range(k):
                X[i, c] -= 0.5 * work[i, c]
    return True
