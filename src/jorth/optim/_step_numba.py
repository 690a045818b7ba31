"""A step of `JOBCD` in the invariant metric on the CPU, compiled: one call per parameter, in place.

It is `jorth.optim.steps.angle_step` for one matrix after the other, from gradients to new matrices.
The arithmetic is float64; what is stored has the dtype of the parameters. Matrices of slopes and
angles are vectors of their n^2 entries, so that loops are long also where n is small.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.group._numba import diagonal
from jorth.group._numba import violation as violation_of
from jorth.optim._rotations_numba import turn_rows
from jorth.optim.angles import BOOST_REACH, FIRST_GAIN, LARGEST_GAIN
from jorth.optim.guard import DRIFT, NEWTON_RADIUS, largest_norm, largest_residual
from jorth.optim.rounds import numbered_rounds
from jorth.optim.steps import sides_of
from jorth.optim.weight_decay import pull
from jorth.plane._numba import compiled, compiled_sum, inlined
from jorth.plane.averages import LARGEST_GROWTH
from jorth.plane.pairs import rounds_in_tournament
from jorth.signature import Signature

NOT_FINITE, HELD, REFUSED = 1, 2, 4
"""What a step can come to: a matrix that is held takes its rotations alone."""
FEW_ROWS = 16
"""Up to here plain loops multiply matrices faster than BLAS."""
PROBES = 16
"""Columns of Z. With probability 1 - 2^-16 the largest entry of E = X^T J X - J is at most that of
E Z, where Z has random signs: flipping the sign that multiplies the entry changes its row of E Z by
twice its size. So E Z, in O(n^2), clears most matrices; the others need the residual itself."""
STATE = ("momentum", "momentum_weight", "root", "root_weight", "gain")
STATE_WITHOUT_ROOTS = ("momentum", "momentum_weight", "gain")


class Rule(NamedTuple):
    """The numbers of a step: see `jorth.optim.angles` and `jorth.optim.guard`.

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


# -- parameters


def compiled_steps(
    group: dict[str, Any],
    params: list[Tensor],
    gradients: list[Tensor],
    states: list[dict[str, Tensor]],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Take the step of parameters (..., n, k) of one dtype and width; they and their states move.

    Returns:
        The masks ``finite`` and ``too_far`` of `Outcome`, of all their matrices in turn.
    """
    first = params[0]
    n = first.shape[-2]
    count = group["rounds_per_gradient"] or rounds_in_tournament(n)
    rounds = numbered_rounds(n, group["matching"], count, group["seed"], group["turn"])
    planes = Planes(rounds.reshape(-1, 2), *_shared(group["signature"], first.shape[-1]))
    rule = _rule(group, first.dtype)
    sides = sides_of(group, first)
    names = STATE if group["curvature"] != "scheduled" else STATE_WITHOUT_ROOTS
    back = np.empty((0, 0))
    found = []
    for p, gradient, state in zip(params, gradients, states, strict=True):
        X = p.detach().contiguous()
        matrices = X.numpy().reshape(-1, *X.shape[-2:])
        G = gradient.detach().to(X.dtype).contiguous().numpy().reshape(matrices.shape)
        own = {name: state[name].contiguous() for name in names}
        if group["weight_decay"] > 0:
            back = _pull(group, X, sides)
        outcome = step_batch(
            matrices, G, _averages(own, len(matrices), len(sides)), back,
            planes, rule, "left" in sides, "right" in sides,
        )  # fmt: skip
        for target, value in ((p, X), *((state[name], own[name]) for name in own)):
            if value.data_ptr() != target.data_ptr():  # it was not contiguous
                target.copy_(value)
        finite = (outcome & NOT_FINITE) == 0
        steps = state["step"].numpy()
        steps += finite.reshape(steps.shape)
        found.append((finite, (outcome & (HELD | REFUSED)) != 0))
    for param in params:  # a list of them is taken by torch 2.5 and later only
        torch.autograd.graph.increment_version(param)
    finite, too_far = zip(*found, strict=True)
    return np.concatenate(finite), np.concatenate(too_far)


def _averages(state: dict[str, Tensor], batch: int, sides: int) -> Averages:
    """The averages as arrays (b, sides, c), which share the memory of the state."""
    shape = (batch, sides, -1)
    none = np.empty((batch, sides, 0), dtype=state["gain"].numpy().dtype)
    return Averages(
        *[state[name].numpy().reshape(shape) if name in state else none for name in STATE]
    )


@lru_cache(maxsize=16)
def _shared(signature: Signature, columns: int) -> tuple[NDArray[np.float64], ...]:
    """The signs, the planes of boosts and the probes of the guard."""
    signs = signature.signs.astype(np.float64)
    boosts = (signs[:, None] != signs).astype(np.float64).reshape(-1)
    return signs, boosts, probes(columns).double().numpy()


def _pull(group: dict[str, Any], X: Tensor, sides: tuple[str, ...]) -> NDArray[np.float64]:
    """The angles (b, n^2) of the weight decay."""
    matrices = X.reshape(-1, *X.shape[-2:])
    rows = matrices.mT if sides[0] == "right" else matrices
    share = min(float(group["lr"]) * group["weight_decay"], 1.0)
    back = pull(rows, group["signature"], group["decay_towards"], share)
    return back.flatten(1).contiguous().numpy()


def _rule(group: dict[str, Any], dtype: torch.dtype) -> Rule:
    signature, lr = group["signature"], float(group["lr"])
    return Rule(
        lr=lr,
        momentum=group["momentum"],
        decay=group["decay"],
        eps=group["eps"],
        gain_rate=group["gain_rate"],
        max_angle=group["max_angle"],
        reach=BOOST_REACH / math.sqrt(max(signature.p, signature.q, 1)),
        first_gain=FIRST_GAIN,
        largest_gain=LARGEST_GAIN,
        largest_growth=float(LARGEST_GROWTH),
        sense=-1.0 if group["maximize"] else 1.0,
        largest=torch.finfo(dtype).max,
        max_norm=float(largest_norm(dtype) if group["max_norm"] is None else group["max_norm"]),
        drift=DRIFT * torch.finfo(dtype).eps / 2,
        tolerance=largest_residual(dtype),
    )


@lru_cache(maxsize=16)
def probes(n: int) -> Tensor:
    """Random signs (n, 16), or the identity if that is no larger."""
    if n <= PROBES:
        return torch.eye(n, device="cpu")
    generator = torch.Generator("cpu").manual_seed(0)
    return 1 - 2 * torch.randint(2, (n, PROBES), generator=generator, device="cpu").float()


# -- one matrix after the other


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

    As in `jorth.optim.guard`, a few columns of X^T J X Z clear most matrices.
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


# -- angles from slopes


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
