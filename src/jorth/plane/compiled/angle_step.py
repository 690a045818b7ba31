"""A step of `jorth.optim.JOBCD` in the invariant metric, compiled: from gradients to new matrices.

It is `jorth.optim.steps.by_angles` for one matrix after the other. The arithmetic is float64; what
is stored has the dtype of the parameters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jorth.group.look import diagonal
from jorth.group.look import violation as violation_of
from jorth.plane.compiled.angles import Averages, Rule, next_angles
from jorth.plane.compiled.roots import compiled
from jorth.plane.compiled.rows import compiled_sum, inlined
from jorth.plane.compiled.turning import turn_rows

NOT_FINITE, HELD, REFUSED = 1, 2, 4
"""What a step can come to: a matrix that is held takes its rotations alone."""
NEWTON_RADIUS = 0.5
"""That of `jorth.optim.steps.guard`."""
FEW_ROWS = 16
"""Up to here plain loops multiply matrices faster than BLAS."""


class Planes(NamedTuple):
    """What the matrices share.

    Attributes:
        pairs: (m, 2), the planes to be turned, in order.
        signs: (n,), float64, of the rows and, if k = n, of the columns.
        boosts: (n^2,), 1 for the planes of boosts and 0 for those of rotations.
        probes: (k, c), c <= k, some Z for which X^T J X Z is checked.
    """

    pairs: np.ndarray
    signs: np.ndarray
    boosts: np.ndarray
    probes: np.ndarray


class Work(NamedTuple):
    """Space for one matrix: X, its transpose and G as float64, slopes and angles (sides, n, n).

    ``columns`` (k,) are the signs of X^T J X; ``rounded`` has the dtype of X.
    """

    X: np.ndarray
    transposed: np.ndarray
    G: np.ndarray
    slopes: np.ndarray
    angles: np.ndarray
    roots: np.ndarray
    shears: np.ndarray
    image: np.ndarray
    back: np.ndarray
    columns: np.ndarray
    rounded: np.ndarray


@compiled
def step_batch(
    X: np.ndarray,
    G: np.ndarray,
    state: Averages,
    pull: np.ndarray,
    planes: Planes,
    rule: Rule,
    left: bool,
    right: bool,
) -> np.ndarray:
    """Move X along G, update the state, and return what came of each step (b,), 0 or flags.

    Args:
        X: (b, n, k), float32 or float64, C-contiguous; changed in place.
        G: Its gradients, of the same shape and dtype.
        state: The averages of all matrices (b, sides, ...), of the dtype of X; changed in place.
        pull: The angles (b, n^2) of the weight decay, float64, or (0, 0) for none.
        planes: What the matrices share.
        rule: The numbers of the step.
        left: Whether rows are turned.
        right: Whether columns are turned; only if k = n.
    """
    b, n, k = X.shape
    sides = (1 if left else 0) + (1 if right else 0)
    work = Work(
        np.empty((n, k)), np.empty((k, n)), np.empty((n, k)),
        np.empty((sides, n, n)), np.empty((sides, n, n)), np.empty(n * n),
        np.empty((2, planes.pairs.shape[0])), np.empty((n, planes.probes.shape[1])),
        np.empty(planes.probes.shape),
        planes.signs.copy() if k == n else np.empty(k), np.empty((n, k), dtype=X.dtype),
    )  # fmt: skip
    slopes, angles = work.slopes.reshape((sides, n * n)), work.angles.reshape((sides, n * n))
    outcome = np.zeros(b, dtype=np.int8)
    for m in range(b):
        for side in range(sides):
            for kind in range(2):
                if state.gain[m, side, kind] == 0.0:
                    state.gain[m, side, kind] = rule.first_gain if rule.gain_rate > 0.0 else 1.0
        if not _find_slopes(X[m], G[m], work, planes.signs, rule, left, right):
            outcome[m] = NOT_FINITE
            continue
        for side in range(sides):
            averages = Averages(
                state.momentum[m, side], state.momentum_weight[m, side],
                state.root[m, side], state.root_weight[m, side], state.gain[m, side],
            )  # fmt: skip
            theta = angles[side]
            next_angles(slopes[side], averages, planes.boosts, rule, work.roots, theta)
            if side == 0 and pull.shape[0] > 0:
                for t in range(n * n):
                    theta[t] += pull[m, t]
        outcome[m] = _move(X[m], work, planes, rule, left, right)
        if outcome[m] & HELD:
            for side in range(sides):
                for t in range(n * n):
                    state.momentum[m, side, t] *= 1.0 - planes.boosts[t]
                if rule.gain_rate > 0.0:
                    state.gain[m, side, 1] = rule.first_gain
    return outcome


# -- slopes


@inlined
def _find_slopes(
    X: np.ndarray, G: np.ndarray, work: Work, signs: np.ndarray, rule: Rule, left: bool, right: bool
) -> bool:
    """The slopes of each side, and X, G and X^T as float64; False if not all is finite."""
    _load(X, 1.0, work.X)
    if not math.isfinite(_load(G, rule.sense, work.G)):
        return False
    _transpose(work.X, work.transposed)
    finite = True
    product = work.angles[0]
    if left:
        _multiply(work.G, work.transposed, product)
        finite = _skew(product, signs, 1.0, work.slopes[0]) <= rule.largest
    if right:  # the transpose of G^T X
        _multiply(work.transposed, work.G, product)
        finite = finite and _skew(product, signs, -1.0, work.slopes[-1]) <= rule.largest
    return finite


@compiled_sum
def _load(source: np.ndarray, factor: float, target: np.ndarray) -> float:
    """Copy a matrix times a factor; returns zero, or NaN if an entry is not finite."""
    check = 0.0
    for i in range(source.shape[0]):
        for c in range(source.shape[1]):
            entry = factor * source[i, c]
            target[i, c] = entry
            check += 0.0 * entry
    return check


@compiled
def _transpose(source: np.ndarray, target: np.ndarray) -> None:
    for c in range(target.shape[0]):
        for i in range(target.shape[1]):
            target[c, i] = source[i, c]


@compiled_sum
def _multiply(A: np.ndarray, B: np.ndarray, product: np.ndarray) -> None:
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


@compiled
def _skew(M: np.ndarray, signs: np.ndarray, order: float, slopes: np.ndarray) -> float:
    """skew(J M) if ``order`` is 1, skew(J M^T) if it is -1; returns the largest entry, or NaN."""
    largest = 0.0
    for i in range(M.shape[0]):
        slopes[i, i] = 0.0
        for j in range(i):
            a, b = (M[i, j], M[j, i]) if order > 0.0 else (M[j, i], M[i, j])
            slope = 0.5 * (signs[i] * a - signs[j] * b)
            slopes[i, j] = slope
            slopes[j, i] = -slope
            if not abs(slope) <= largest and not math.isnan(largest):  # also if it is NaN
                largest = abs(slope)
    return largest


# -- the move and its guard


@inlined
def _move(X: np.ndarray, work: Work, planes: Planes, rule: Rule, left: bool, right: bool) -> int:
    """Turn X by the angles, if it may be written; returns what came of it."""
    outcome = 0
    n, k = X.shape
    before = _square(work.X)
    if k < n:
        _find_signs(work.X, planes.signs, work.columns)
    _turn(work, planes, left, right)
    after = _square(work.X)
    if not (after <= rule.max_norm * rule.max_norm or after <= before):
        outcome = HELD
        for side in range(work.angles.shape[0]):
            for i in range(n):
                for j in range(n):
                    work.angles[side, i, j] *= 1.0 - planes.boosts[i * n + j]
        _load(X, 1.0, work.X)
        _turn(work, planes, left, right)
    for i in range(n):
        for c in range(k):
            work.rounded[i, c] = work.X[i, c]
    if not _settle(work, planes, rule):
        return outcome | REFUSED
    for i in range(n):
        for c in range(k):
            X[i, c] = work.rounded[i, c]
    return outcome


@compiled
def _find_signs(X: np.ndarray, signs: np.ndarray, columns: np.ndarray) -> None:
    """The signs of the columns' lengths x^T J x."""
    for c in range(columns.shape[0]):
        length = 0.0
        for i in range(signs.shape[0]):
            length += signs[i] * X[i, c] * X[i, c]
        columns[c] = -1.0 if length < 0.0 else 1.0


@compiled_sum
def _square(X: np.ndarray) -> float:
    """||X||_F^2."""
    total = 0.0
    for i in range(X.shape[0]):
        for c in range(X.shape[1]):
            total += X[i, c] * X[i, c]
    return total


@compiled
def _turn(work: Work, planes: Planes, left: bool, right: bool) -> None:
    """X <- T_left X T_right^T in the work space."""
    if left:
        turn_rows(work.X, work.angles[0], planes.signs, planes.pairs, work.shears)
    if right:
        _transpose(work.X, work.transposed)
        turn_rows(work.transposed, work.angles[-1], planes.signs, planes.pairs, work.shears)
        _transpose(work.transposed, work.X)


@inlined
def _settle(work: Work, planes: Planes, rule: Rule) -> bool:
    """Take drift from the rounded X; False if it is not finite, or not J-orthogonal to half digits.

    As in `jorth.optim.steps.guard`, a few columns of X^T J X Z clear most matrices.
    """
    violation, longest, size, square = _violation(work, planes)
    near = violation <= rule.tolerance * longest
    if near and size > min(rule.drift * square, 0.5 * NEWTON_RADIUS):
        _take_newton_step(work, planes)
        violation, longest, size, square = _violation(work, planes)
    if violation <= rule.tolerance * longest:
        return True
    if not math.isfinite(violation):
        return False
    return violation_of(work.X, planes.signs, diagonal(work.columns)) <= rule.tolerance


@inlined
def _violation(work: Work, planes: Planes) -> tuple[float, float, float, float]:
    """How far the rounded X is from the group, E = X^T J X - D with D = diag(columns).

    Returns:
        The largest entry of E Z and ||x||^2 of the longest row, for the guard; ||E||_F, estimated
        from E Z unless Z = I, and ||X||_F^2. The first is infinite if X is not finite.
    """
    if not math.isfinite(_load(work.rounded, 1.0, work.X)):
        return math.inf, 1.0, math.inf, 1.0
    X, image, back = work.X, work.image, work.back
    _multiply(X, planes.probes, image)
    longest = 1.0
    for i in range(X.shape[0]):
        square = 0.0
        for c in range(X.shape[1]):
            square += X[i, c] * X[i, c]
        longest = max(longest, square)
        for c in range(image.shape[1]):
            image[i, c] *= planes.signs[i]
    _transpose(X, work.transposed)
    _multiply(work.transposed, image, back)
    violation, total = 0.0, 0.0
    k, count = planes.probes.shape
    for i in range(k):
        for c in range(count):
            entry = abs(back[i, c] - work.columns[i] * planes.probes[i, c])
            violation = max(violation, entry)
            total += entry * entry
    size = math.sqrt(total if count == k else total / count)
    return violation, longest, size, _square(X)


@compiled
def _take_newton_step(work: Work, planes: Planes) -> None:
    """X <- X (3 I - D X^T J X) / 2, rounded, where that surely lessens the error."""
    X = work.X
    n, k = X.shape
    signed, E, change = np.empty((n, k)), np.empty((k, k)), np.empty((n, k))
    for i in range(n):
        for c in range(k):
            signed[i, c] = planes.signs[i] * X[i, c]
    _multiply(work.transposed, signed, E)
    for i in range(k):
        for c in range(k):
            E[i, c] *= work.columns[i]
        E[i, i] -= 1.0
    if _square(E) > NEWTON_RADIUS * NEWTON_RADIUS:
        return
    _multiply(X, E, change)
    for i in range(n):
        for c in range(k):
            work.rounded[i, c] = X[i, c] - 0.5 * change[i, c]
