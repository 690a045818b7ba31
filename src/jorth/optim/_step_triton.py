"""The angle step of `jorth.optim.jobcd` by Triton, one small matrix per program, in one launch.

The formulas are those of `jorth.optim.jobcd`, in float64, on tiles (N, N) with zeros beyond the
matrix. What is done twice, for two sides or with and without boosts, is a loop, which compiles
faster. A round of rotations is one gather and one increment. ``codes`` (rounds, n) hold the partner
p of a row of the same sign, and -1 - p if its sign is the other one; a row without a partner is its
own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from jorth.plane.pairs import upload
from jorth.signature import Signature

if TYPE_CHECKING:
    from jorth.optim.jobcd import Rule


def take_step(
    rule: Rule, signature: Signature, codes: Tensor, p: Tensor, G: Tensor, state: dict[str, Tensor]
) -> None:
    """Move a contiguous parameter (..., n, n) along its gradient G, in place, with its state."""
    b, n = p.shape[:-2].numel(), p.shape[-1]
    on_device, rows = isinstance(rule.lr, Tensor), 1 << (n - 1).bit_length()
    warps = min(max(rows * rows // 128, 1), 16)  # four to eight entries per thread
    whole_steps[(b,)](
        p, G.to(p.dtype).contiguous(), state["momentum"], state["momentum_weight"],
        state["root"], state["root_weight"], state["gain"],
        device_signs(signature, p.device), codes,
        p.new_empty((b, 2, n + 2 * len(codes), n), dtype=torch.float64),
        state["not_finite"], state["too_far"],
        n, len(codes), rule.lr if on_device else p, 0.0 if on_device else rule.lr,
        rule.momentum, rule.decay, rule.eps, rule.first_gain, rule.gain_rate, rule.early_growth,
        rule.largest_gain,
        rule.largest_growth, rule.largest_angle, rule.reach, rule.max_norm,
        rule.drift * rule.unit, rule.newton_radius, rule.unit**0.5, rule.sense,
        HAS_LR=on_device, N=rows, num_warps=warps, num_stages=1,
    )  # fmt: skip


@lru_cache(maxsize=64)
def device_signs(signature: Signature, device: torch.device) -> Tensor:
    """Return the signs (n,) on a device, float64: Triton's dots need all in float64."""
    return upload(signature.signs.astype(np.float64), device)


# -- rotations


@triton.jit
def round_factors(codes, even, odd, turn, rounds, boosts, n, N: tl.constexpr):
    """(partner, even, odd) of a round, with zeros beyond the matrix and after the last round."""
    i = tl.arange(0, N)
    at, inside = turn * n + i, (i < n) & (turn < rounds)
    code = tl.load(codes + at, mask=inside, other=0).to(tl.int32)
    e, o = tl.load(even + at, mask=inside, other=0.0), tl.load(odd + at, mask=inside, other=0.0)
    weight = tl.where(code < 0, boosts, 1)
    return tl.where(code < 0, -1 - code, code), e * weight, o * weight


@triton.jit
def rotate_tile(x, codes, even, odd, rounds, boosts, n, N: tl.constexpr):
    """Return the rows of x (N, N) after all rounds, with the factors (rounds, n) of this matrix.

    ``boosts`` is 0 for rotations alone, else 1. A round's factors are loaded during the one before.
    """
    partner, e, o = round_factors(codes, even, odd, 0, rounds, boosts, n, N)
    for turn in range(rounds):
        after, e_after, o_after = round_factors(codes, even, odd, turn + 1, rounds, boosts, n, N)
        y = tl.gather(x, tl.broadcast_to(partner[:, None], [N, N]), 0)
        x += e[:, None] * x + o[:, None] * y
        partner, e, o = after, e_after, o_after
    return x


# -- the whole step


@triton.jit
def total(x):
    """Return the sum of a tile."""
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def half_tangent(y, boost):
    """tanh y for boosts, tan y for rotations, where |y| <= 1/2: `_step_numba.shears_of_angles`."""
    z = tl.where(boost, -1.0, 1.0) * y * y
    P = 2027025.0 + z * (-270270.0 + z * (6930.0 - 36.0 * z))
    Q = 2027025.0 + z * (-945945.0 + z * (51975.0 + z * (z - 630.0)))
    return y * P / Q


@triton.jit
def product(A, B, N: tl.constexpr):
    """A B^T of tiles (N, N)."""
    if N >= 16:
        return tl.dot(A, tl.trans(B), out_dtype=tl.float64)
    return tl.sum(A[:, None, :] * B[None, :, :], 2)


@triton.jit
def slopes(X, G, s, n, row_stride, column_stride, N: tl.constexpr):
    """S = skew(J G X^T) in the precision of X, as float64."""
    i = tl.arange(0, N)
    at = i[:, None] * row_stride + i[None, :] * column_stride
    inside = (i < n)[:, None] & (i < n)[None, :]
    g = tl.load(G + at, mask=inside, other=0.0).to(tl.float64)
    x = tl.load(X + at, mask=inside, other=0.0).to(tl.float64)
    M = s[:, None] * product(g, x, N)
    return (0.5 * (M - tl.trans(M))).to(X.dtype.element_ty).to(tl.float64)


@triton.jit
def direction(M, r, momentum_weight, root_weight, eps, n):
    """M / (r + eps ||r||), each over its weight: `jobcd.direction`."""
    M = M * (1.0 / tl.where(momentum_weight > 0.0, momentum_weight, 1.0))
    r = r * (1.0 / tl.sqrt(tl.where(root_weight > 0.0, root_weight, 1.0)))
    size = tl.sqrt(total(r * r)) / n
    return tl.where(r > 0.0, M / (r + eps * size), 0.0)


@triton.jit
def adapted(gain, before, new, mask, rate, early_growth, largest):
    """Return the gain of the planes of a mask after new slopes: `jobcd.next_angles`."""
    a, b = tl.where(mask, before, 0.0), tl.where(mask, new, 0.0)
    size = tl.sqrt(total(a * a)) * tl.sqrt(total(b * b))
    cosine = tl.where(size > 0.0, total(a * b) / tl.where(size > 0.0, size, 1.0), 0.0)
    early = early_growth * cosine * cosine / (1.0 + gain * gain)
    grown = gain * tl.exp(rate * cosine * (1.0 + early))
    grown = tl.where(grown > largest, largest, grown)
    grown = tl.where(grown * largest < 1.0, 1.0 / largest, grown)
    return tl.where(rate > 0.0, grown, gain)


@triton.jit
def side_angles(
    S, finite, boost, momentum, momentum_weight, root, root_weight, gain,
    lr, b1, b2, eps, rate, early_growth, largest_gain, largest_growth, largest_angle, reach, n,
    N: tl.constexpr,
):  # fmt: skip
    """Return the angles of one side after new slopes; averages and gains change in place."""
    real = momentum.dtype.element_ty
    i = tl.arange(0, N)
    at, inside = i[:, None] * n + i[None, :], (i < n)[:, None] & (i < n)[None, :]
    M = tl.load(momentum + at, mask=inside, other=0.0).to(tl.float64)
    r = tl.load(root + at, mask=inside, other=0.0).to(tl.float64)
    wm, wr = tl.load(momentum_weight).to(tl.float64), tl.load(root_weight).to(tl.float64)
    turns, pushes = tl.load(gain).to(tl.float64), tl.load(gain + 1).to(tl.float64)
    before = direction(M, r, wm, wr, eps, n)
    largest = r * tl.sqrt(largest_growth / (1.0 - b2) / tl.where(wr > 0.0, wr, 1.0))
    S = tl.where(finite, S, 0.0)
    S = tl.where(r > 0.0, tl.maximum(tl.minimum(S, largest), -largest), S)
    new = direction(S, r, 1.0, wr, eps, n)
    r = tl.where(finite, tl.sqrt(b2 * r * r + (1.0 - b2) * S * S), r).to(real)
    M = tl.where(finite, M + (1.0 - b1) * (S - M), M).to(real)
    wm = tl.where(finite, b1 * wm + (1.0 - b1), wm).to(real)
    wr = tl.where(finite, b2 * wr + (1.0 - b2), wr).to(real)
    turns = adapted(turns, before, new, boost == 0, rate, early_growth, largest_gain).to(real)
    pushes = adapted(pushes, before, new, boost, rate, early_growth, largest_gain).to(real)
    tl.debug_barrier()  # all have read what is now written
    tl.store(momentum + at, M, mask=inside)
    tl.store(root + at, r, mask=inside)
    tl.store(momentum_weight, wm)
    tl.store(root_weight, wr)
    tl.store(gain, turns)
    tl.store(gain + 1, pushes)
    wm, wr = wm.to(tl.float64), wr.to(tl.float64)
    D = direction(M.to(tl.float64), r.to(tl.float64), wm, wr, eps, n)
    D = tl.where(finite & inside, D, 0.0)
    scale = tl.where(boost, reach * pushes.to(tl.float64), turns.to(tl.float64))
    return tl.maximum(tl.minimum(lr * scale * D, largest_angle), -largest_angle)


@triton.jit
def remove_drift(x, s, drift, radius, max_residual, N: tl.constexpr):
    """x without drift; 1 if it is J-orthogonal to half its digits, else 0: `jobcd.remove_drift`."""
    i = tl.arange(0, N)
    transposed = tl.trans(x)
    E = product(transposed, transposed * s[None, :], N)
    E -= tl.where(i[:, None] == i[None, :], s[:, None], 0.0)
    longest = tl.maximum(tl.max(tl.sum(x * x, 1), 0), 1.0)
    sound = (tl.abs(E) <= max_residual * longest) & (tl.abs(x) < float("inf"))  # not if NaN
    feasible = tl.where(total((sound == 0).to(tl.int32)) == 0, 1, 0)
    size, due = tl.sqrt(total(E * E)), tl.minimum(drift * total(x * x), 0.5 * radius)
    if (feasible == 1) & (size > due) & (size <= radius):
        x -= 0.5 * product(x * s[None, :], E, N)  # E is symmetric
    return x, feasible


@triton.jit
def write_factors(h, even, odd, codes, rounds, n, N: tl.constexpr):
    """Write the factors (rounds, n) of rows, from the half tangents (n, n)."""
    i = tl.arange(0, N)[None, :]
    for start in range(0, rounds, N):
        turn = start + tl.arange(0, N)[:, None]
        at, inside = turn * n + i, (turn < rounds) & (i < n)
        code = tl.load(codes + at, mask=inside, other=0).to(tl.int32)
        partner = tl.where(code < 0, -1 - code, code)
        half = tl.load(h + i * n + partner, mask=inside, other=0.0)
        side = tl.where(code < 0, 0.0 * half + 1.0, 0.0 * half - 1.0)
        o = 2.0 * half / (1.0 - side * half * half)
        tl.store(even + at, side * half * o, mask=inside)
        tl.store(odd + at, o, mask=inside)


@triton.jit(do_not_specialize=["rounds"])  # compiling for one round of two rows would not end
def whole_steps(
    X, G, momentum, momentum_weight, root, root_weight, gain, signs, codes, scratch,
    not_finite, too_far, n, rounds, lr_tensor, lr: tl.float64, b1: tl.float64, b2: tl.float64,
    eps: tl.float64, first_gain: tl.float64, rate: tl.float64, early_growth: tl.float64,
    largest_gain: tl.float64, largest_growth: tl.float64, largest_angle: tl.float64,
    reach: tl.float64, max_norm: tl.float64, drift: tl.float64, radius: tl.float64,
    max_residual: tl.float64, ascend: tl.float64,
    HAS_LR: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Take one step of each matrix X (b, n, n) along its gradient G, all in place.

    ``not_finite`` and ``too_far`` count such gradients, and steps not taken whole. ``scratch``
    (b, sides, n + 2 rounds, n) has no meaning before and after.
    """
    matrix = tl.program_id(0).to(tl.int64)
    X += matrix * n * n
    G += matrix * n * n
    side = matrix * 2
    room = (n + 2 * rounds) * n
    scratch += side * room
    if HAS_LR:
        lr = tl.load(lr_tensor).to(tl.float64)
    i = tl.arange(0, N)
    at, inside = i[:, None] * n + i[None, :], (i < n)[:, None] & (i < n)[None, :]
    s = tl.load(signs + i, mask=i < n, other=0).to(tl.float64)
    boost = inside & (s[:, None] * s[None, :] < 0.0)
    bad = 0
    for number in range(2):
        rows = n if number == 0 else 1
        S = ascend * slopes(X, G, s, n, rows, n + 1 - rows, N)
        bad += total(((tl.abs(S) < float("inf")) == 0).to(tl.int32))
        tl.store(scratch + number * room + at, S, mask=inside)
    finite = bad == 0
    tl.debug_barrier()
    for number in range(2):
        own = side + number
        S = tl.load(scratch + number * room + at, mask=inside, other=0.0)
        theta = side_angles(
            S, finite, boost, momentum + own * n * n, momentum_weight + own, root + own * n * n,
            root_weight + own, gain + 2 * own,
            lr, b1, b2, eps, rate, early_growth, largest_gain, largest_growth, largest_angle,
            reach, n, N,
        )  # fmt: skip
        h = half_tangent(-0.5 * s[:, None] * theta, boost)
        half = scratch + number * room
        tl.store(half + at, h, mask=inside)
        tl.debug_barrier()
        even = half + n * n
        write_factors(half, even, even + rounds * n, codes, rounds, n, N)
    tl.debug_barrier()
    at = X + i[:, None] * n + i[None, :]
    x = tl.load(at, mask=inside, other=0.0).to(tl.float64)
    before = total(x * x)
    without_boosts = 0
    for attempt in range(2):
        if without_boosts >= attempt:  # with boosts, and without if they lead too far
            x = tl.load(at, mask=inside, other=0.0).to(tl.float64)
            for number in range(2):
                even = scratch + number * room + n * n
                odd = even + rounds * n
                x = tl.trans(rotate_tile(x, codes, even, odd, rounds, 1 - attempt, n, N))
            after = total(x * x)
            if attempt == 0:
                near = (after <= max_norm * max_norm) | (after <= before)  # not if it is NaN
                without_boosts = 1 - near.to(tl.int32)
    if without_boosts == 1:
        for number in range(2):
            own = side + number
            tl.store(momentum + own * n * n + i[:, None] * n + i[None, :], 0.0 * x, mask=boost)
            tl.store(gain + 2 * own + 1, 0.0 * before + first_gain, mask=rate > 0.0)
    x, feasible = remove_drift(x, s, drift, radius, max_residual, N)
    tl.store(at, x, mask=inside & (feasible == 1) & finite)
    tl.atomic_add(not_finite, 1, mask=finite == 0)
    tl.atomic_add(too_far, 1, mask=without_boosts + 1 - feasible > 0)
