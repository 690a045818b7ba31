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
    pairs: NDArray[np.uint32],
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
    (b, sides, _), (n, k) = state["gain"].shape, X.shape[-2:]
    signs, boosts, halves = _planes(signature)
    of_columns = np.tile(signs, (b, 1))
    if k < n:
        of_columns = column_signs(X, signature).double().reshape(b, -1).numpy()
    outcome = np.zeros(b, dtype=np.int8)
    # torch aligns memory for vector registers
    work = torch.empty(3 * n * k + k * k + 3 * sides * n * n + n, dtype=torch.float64, device="cpu")
    step_matrices(
        outcome, matrices, gradients,
        Average(*(state[name].view(b, sides, -1).numpy() for name in Average._fields)),
        work.numpy(), pairs, signs, boosts, halves, of_columns, rule,
    )  # fmt: skip
    if X.data_ptr() != p.data_ptr():  # it was not contiguous
        p.copy_(X)
    torch.autograd.graph.increment_version(p)
    return int((outcome == NOT_FINITE).sum()), int((outcome > NOT_FINITE).sum())


@lru_cache(maxsize=16)
def _planes(signature: Signature) -> tuple[NDArray[np.float64], ...]:
    """Return the signs (n,); for all planes (i, j), 1 for boosts and 0 for rotations; s_j / 2."""
    signs = signature.signs.astype(np.float64)
    boosts = (signs[:, None] != signs).astype(np.float64)
    return signs, boosts.reshape(-1), np.tile(0.5 * signs, len(signs))


# the whole step of a matrix, top to bottom
@compiler()
def step_matrices(
    outcome: np.ndarray,
    X: np.ndarray,
    G: np.ndarray,
    state: Average,
    work: np.ndarray,
    pairs: np.ndarray,
    signs: np.ndarray,
    boosts: np.ndarray,
    halves: np.ndarray,
    of_columns: np.ndarray,
    rule: Rule,
) -> None:
    """Move X (b, n, k) along G of the same dtype, with the averages (b, sides, ...), in place.

    ``outcome`` (b,), zeros, becomes what kept a matrix from its step. ``pairs`` (m, 2) are the
    planes to be turned, in order, ``signs`` (n,) and ``of_columns`` (b, k) those of rows and
    columns, ``boosts`` and ``halves`` (n^2,) those of `_planes`; ``work`` is memory.
    """
    b, n, k = X.shape
    sides = state.gain.shape[1]
    size, area = n * k, n * n
    rows, columns = work[:size].reshape(n, k), work[size : 2 * size].reshape(k, n)
    gradient, lengths, work = work[2 * size : 3 * size].reshape(n, k), work[-n:], work[3 * size :]
    planes, E = (
        work[: 3 * sides * area].reshape(3, sides, area),
        work[-n - k * k : -n].reshape(k, k),
    )
    slopes, theta, flat_inner = planes[0], planes[1], planes[2]
    outer, inner = theta.reshape(sides, n, n), flat_inner.reshape(sides, n, n)
    rounded = np.empty((n, k), X.dtype)
    for m in range(b):
        load(X[m], 1.0, rows)
        bad = load(G[m], rule.sense, gradient)
        for side in range(sides):  # outer and inner are free until there are angles
            if side == 0:
                transpose(rows, columns)
                multiply(gradient, columns, outer[side])
            else:
                transpose(gradient, columns)
                multiply(columns, rows, outer[side])
            transpose(outer[side], inner[side])
            bad += skew_slopes(
                theta[side], flat_inner[side], boosts, halves, rule.largest_number, slopes[side]
            )
        if bad != 0.0:  # also if it is NaN
            outcome[m] = NOT_FINITE
            continue
        for side in range(sides):
            average = Average(
                state.momentum[m, side], state.momentum_weight[m, side],
                state.root[m, side], state.root_weight[m, side], state.gain[m, side],
            )  # fmt: skip
            next_angles(slopes[side], average, boosts, rule, theta[side])
            shears_of_angles(theta[side], flat_inner[side], boosts, halves)
        before = square_sum(rows.reshape(size))
        for attempt in range(2):
            rotate_rows(rows, outer[0], inner[0], pairs)
            after = square_sum(rows.reshape(size))
            if sides == 2:
                transpose(rows, columns)
                rotate_rows(columns, outer[1], inner[1], pairs)
                after = square_sum(columns.reshape(size))
            if after <= rule.max_norm * rule.max_norm or after <= before or attempt == 1:
                break
            outcome[m] = HELD
            for side in range(sides):
                for t in range(area):
                    theta[side, t] *= 1.0 - boosts[t]
                    flat_inner[side, t] *= 1.0 - boosts[t]
                    state.momentum[m, side, t] *= 1.0 - boosts[t]
                if rule.gain_rate > 0.0:
                    state.gain[m, side, 1] = rule.first_gain
            load(X[m], 1.0, rows)
        newest, other = (rows, columns) if sides == 1 else (columns, rows)
        load(newest, 1.0, rounded)
        load(rounded, 1.0, newest)
        transpose(newest, other)
        if remove_drift(rows, columns, signs, of_columns[m], rule, gradient, E, lengths):
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
    """A B into ``product``, by tiles of four rows and four columns of A in vector registers."""
    n, k = A.shape
    product[:] = 0.0
    for i in range(0, n - 3, 4):
        r0, r1, r2, r3 = product[i], product[i + 1], product[i + 2], product[i + 3]
        for c in range(0, k - 3, 4):
            a0, a1, a2, a3 = A[i, c], A[i, c + 1], A[i, c + 2], A[i, c + 3]
            b0, b1, b2, b3 = A[i + 1, c], A[i + 1, c + 1], A[i + 1, c + 2], A[i + 1, c + 3]
            c0, c1, c2, c3 = A[i + 2, c], A[i + 2, c + 1], A[i + 2, c + 2], A[i + 2, c + 3]
            d0, d1, d2, d3 = A[i + 3, c], A[i + 3, c + 1], A[i + 3, c + 2], A[i + 3, c + 3]
            for j in range(B.shape[1]):
                x, y, z, w = B[c, j], B[c + 1, j], B[c + 2, j], B[c + 3, j]
                r0[j] += (a0 * x + a1 * y) + (a2 * z + a3 * w)
                r1[j] += (b0 * x + b1 * y) + (b2 * z + b3 * w)
                r2[j] += (c0 * x + c1 * y) + (c2 * z + c3 * w)
                r3[j] += (d0 * x + d1 * y) + (d2 * z + d3 * w)
    for i in range(n):
        for c in range(k - k % 4 if i < n - n % 4 else 0, k):
            entry = A[i, c]
            for j in range(B.shape[1]):
                product[i, j] += entry * B[c, j]


@inlined
def square_sum(entries: np.ndarray) -> float:
    total = 0.0
    for t in range(entries.shape[0]):
        total += entries[t] * entries[t]
    return total


@inlined
def skew_slopes(
    M: np.ndarray,
    transposed: np.ndarray,
    boosts: np.ndarray,
    halves: np.ndarray,
    largest: float,
    slopes: np.ndarray,
) -> float:
    """skew(J M) of a flat M; return how many entries are not up to the largest number."""
    bad = 0.0
    for t in range(M.shape[0]):
        slope = halves[t] * (M[t] - 2.0 * boosts[t] * M[t] - transposed[t])
        slopes[t] = slope
        bad += 0.0 if abs(slope) <= largest else 1.0
    return bad


# -- angles


@compiled
def next_angles(
    S: np.ndarray, average: Average, boosts: np.ndarray, rule: Rule, theta: np.ndarray
) -> None:
    """Put the angles (n^2,) in ``theta``, from finite slopes S, which are limited in place."""
    momentum, root, gain, size = average.momentum, average.root, average.gain, S.shape[0]
    if average.root_weight[0] > 0.0:
        factor = rule.largest_growth / (1.0 - rule.decay) / average.root_weight[0]
        total, exceed = 0.0, 0.0
        for t in range(size):  # without a branch, and seldom followed by the other loop
            square = np.float64(root[t]) * root[t]
            most = factor * square
            total += square
            exceed += 1.0 if most > 0.0 and S[t] * S[t] > most else 0.0
        if exceed > 0.0:
            for t in range(size):
                most, square = factor * (np.float64(root[t]) * root[t]), S[t] * S[t]
                if 0.0 < most < square:
                    S[t] *= math.sqrt(most / square)
        if rule.gain_rate > 0.0:
            adapt_gain(average, total, S, boosts, rule)
    old, new, total = rule.decay, 1.0 - rule.decay, 0.0
    for t in range(size):
        r = np.float64(root[t])
        root[t] = math.sqrt(old * (r * r) + new * (S[t] * S[t]))
        total += np.float64(root[t]) * root[t]
        momentum[t] = momentum[t] + (1.0 - rule.momentum) * (S[t] - momentum[t])
    average.root_weight[0] = old * average.root_weight[0] + new
    average.momentum_weight[0] = rule.momentum * average.momentum_weight[0] + 1.0 - rule.momentum
    scale, floor = scale_and_floor(average, total, rule.eps)
    inverse = rule.lr / average.momentum_weight[0]
    turn, push = inverse * gain[0], inverse * gain[1] * rule.reach
    for t in range(size):
        angle = momentum[t] * (turn + boosts[t] * (push - turn)) / (scale * root[t] + floor)
        angle = min(max(angle, -rule.largest_angle), rule.largest_angle)
        theta[t] = angle if root[t] > 0.0 else 0.0


@inlined
def scale_and_floor(average: Average, total: float, eps: float) -> tuple[float, float]:
    """Return the factor that takes the weight from r, and eps ||r|| without it."""
    scale = 1.0 / math.sqrt(average.root_weight[0])
    return scale, eps * scale * math.sqrt(total / average.root.shape[0])


@inlined
def adapt_gain(
    average: Average, total: float, S: np.ndarray, boosts: np.ndarray, rule: Rule
) -> None:
    """Multiply the gains by exp(rate c (1 + 4 c^2 / (1 + gain^2))), c the cosine of D and S / r."""
    momentum, root, gain = average.momentum, average.root, average.gain
    scale, floor = scale_and_floor(average, total, rule.eps)
    a0, b0, ab0, a1, b1, ab1 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(S.shape[0]):
        push = boosts[t]
        turn = 1.0 - push
        inverse = 1.0 / (scale * root[t] + floor) if root[t] > 0.0 else 0.0
        a, b = inverse * momentum[t], inverse * S[t]
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


@compiler(fastmath={"contract"}, inline=True)
def shears_of_angles(
    outer: np.ndarray, inner: np.ndarray, boosts: np.ndarray, halves: np.ndarray
) -> None:
    """Put the shears of every plane (i, j) in the place of its angle, ``outer``, and in ``inner``.

    A turn is three shears, x += t y, y += s x, x += t y, with t = -tan(a/2) and s = sin(a) for a
    rotation, t = tanh(a/2) and s = sinh(a) for a boost. The tangent of h = a/2 is h P / Q with the
    polynomials of Lambert's continued fraction; the error is below 1e-18 for |h| <= 1/2.
    """
    for t in range(len(outer)):
        kind, half = 1.0 - 2.0 * boosts[t], halves[t] * outer[t]
        z = kind * half * half
        P = 2027025.0 + z * (-270270.0 + z * (6930.0 - 36.0 * z))
        Q = 2027025.0 + z * (-945945.0 + z * (51975.0 + z * (z - 630.0)))
        square = Q * Q + z * P * P
        ratio = half * P / (Q * square)
        outer[t] = -kind * ratio * square
        inner[t] = 2.0 * Q * Q * ratio


@compiler(fastmath={"contract"}, internal=True)
def rotate_rows(X: np.ndarray, outer: np.ndarray, inner: np.ndarray, pairs: np.ndarray) -> None:
    """X <- ... T_2 T_1 X, T turning the rows of a pair by exp(-J K), K_ij = -K_ji the angle.

    For rounded t and s the shears still keep a form x^2 + c y^2 (x^2 - c y^2) exactly, c = 1 up to
    rounding, so that rows drift only by the rounding of their entries. Where two couples of rows
    meet, in four pairs (a, c), (b, d), (a, d), (b, c), their rows are loaded once.
    """
    m = 0
    while m < len(pairs):
        i, j = pairs[m, 0], pairs[m, 1]
        a, c, t, s = X[i], X[j], outer[i, j], inner[i, j]
        if m + 3 < len(pairs) and (
            (pairs[m + 2, 0] == i) & (pairs[m + 2, 1] == pairs[m + 1, 1])
            & (pairs[m + 3, 0] == pairs[m + 1, 0]) & (pairs[m + 3, 1] == j)
        ):  # fmt: skip
            k, p = pairs[m + 1, 0], pairs[m + 1, 1]
            b, d = X[k], X[p]
            t_bd, s_bd, t_ad, s_ad = outer[k, p], inner[k, p], outer[i, p], inner[i, p]
            t_bc, s_bc = outer[k, j], inner[k, j]
            for e in range(X.shape[1]):
                w, x, y, z = a[e], b[e], c[e], d[e]
                w += t * y
                y += s * w
                w += t * y
                x += t_bd * z
                z += s_bd * x
                x += t_bd * z
                w += t_ad * z
                z += s_ad * w
                w += t_ad * z
                x += t_bc * y
                y += s_bc * x
                x += t_bc * y
                a[e], b[e], c[e], d[e] = w, x, y, z
            m += 4
        else:
            for e in range(X.shape[1]):
                y = c[e]
                x = a[e] + t * y
                y += s * x
                a[e], c[e] = x + t * y, y
            m += 1


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
    lengths: np.ndarray,
) -> bool:
    """Take drift from X by a Newton step; False if it is off the group by half its digits."""
    n, k = X.shape
    left = work.reshape(k, n)
    lengths[:] = 0.0
    for c in range(k):
        for i in range(n):
            lengths[i] += transposed[c, i] * transposed[c, i]
            left[c, i] = signs[i] * transposed[c, i]
    multiply(left, X, E)
    for c in range(k):
        E[c, c] -= of_columns[c]
    largest, bad = math.sqrt(rule.unit) * max(1.0, lengths.max()), 0.0
    residuals = E.reshape(k * k)
    for t in range(k * k):
        bad += 0.0 if abs(residuals[t]) <= largest else 1.0
    square = square_sum(X.reshape(n * k))
    if bad > 0.0 or not square < math.inf:  # also if it is NaN
        return False
    size = math.sqrt(square_sum(residuals))
    due = min(rule.drift * rule.unit * square, 0.5 * rule.newton_radius)
    if due < size <= rule.newton_radius:
        for c in range(k):
            for e in range(k):
                E[c, e] *= of_columns[c]
        multiply(X, E, work)
        for i in range(n):
            for c in range(k):
                X[i, c] -= 0.5 * work[i, c]
    return True
