"""`procrustes` for many pairs of point clouds at once, in torch operations on all of them.

It goes as for a single pair: starts from the least-squares solution M and the identity, one per
component, and bounds that leave components out. A cheap bound comes first. With A = S^T S / m and
lambda >= 1 / ||A^-1||_F its least eigenvalue, a component for which k blocks of M have the wrong
sign of their determinant has f >= f(M) + lambda k / 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from jorth import arrays
from jorth.group.norms import power_of_two
from jorth.group.time_column import warn_of_other_time
from jorth.signature import Signature
from jorth.solvers.batches import (
    STATUSES,
    UNFINISHED,
    Answers,
    BatchResult,
    Budget,
    batch_result,
    solve_many,
    starts,
)
from jorth.solvers.loop.budget import Interrupt, Limits
from jorth.solvers.loop.status import Status

CLEARLY_LOWER = 0.5
"""As in `jorth.solvers.procrustes.alignment`."""
FULL_RANK = 1e-6
"""The least 1 / (||A||_F ||A^-1||_F) with which bounds are trusted."""
FACTOR_STEPS = 20
AT_ONCE = {"cpu": 2**17, "cuda": 2**27}
"""The numbers in the sources of a chunk."""
LEAST, PIECES = 32, 16
"""A chunk on the CPU has at most a part of the batch, but at least so many problems."""


class Clouds(NamedTuple):
    """Sources and targets (B, m, n), scaled, and A = S^T S / m, C = -S^T T / m, (B, n, n)."""

    source: Tensor
    target: Tensor
    A: Tensor
    C: Tensor
    constant: Tensor
    """(B,), f(X) - 1/2 tr(X^T A X) - <C, X>."""

    @classmethod
    def of(cls, source: Tensor, target: Tensor) -> Clouds:
        m = source.shape[1]
        constant = target.square().sum((1, 2)) / (2 * m)
        return cls(source, target, source.mT @ source / m, source.mT @ target / -m, constant)

    def rough_value(self, X: Tensor) -> Tensor:
        """f to the rounding of its largest terms, for X (..., B, n, n)."""
        found: Tensor = (X * (self.A @ X / 2 + self.C)).sum((-2, -1)) + self.constant
        return found

    def value(self, X: Tensor) -> Tensor:
        """f from the residuals, so that nothing cancels."""
        residual = torch.baddbmm(self.target, self.source, X, beta=-1)
        found: Tensor = residual.square_().sum((1, 2)) / (2 * self.source.shape[1])
        return found

    def select(self, which: Tensor) -> Clouds:
        return Clouds(*(part[which] for part in self))


def procrustes_batch(
    source: Any,
    target: Any,
    signature: Signature,
    x0: Any,
    components: str,
    tolerance: float | None,
    limits: Limits,
) -> BatchResult:
    """`jorth.procrustes` for sources and targets (B, m, n)."""
    T = arrays.to_tensor(target, "target").detach()
    S = arrays.tensor_alike(source, "source", T, "target").detach()
    n = arrays.check_signature(signature).n
    if S.ndim != 3 or S.shape[2] != n or not S.numel():
        wanted = f"(B, m, {n}) with B and m at least 1 for {signature}"
        raise ValueError(f"source must have shape {wanted}, got {arrays.describe(source)}")
    if T.shape != S.shape:
        wanted = f"{tuple(S.shape)} like source"
        raise ValueError(f"target must have shape {wanted}, got {arrays.describe(target)}")
    warn_of_other_time(signature, S, T)
    if tolerance is None:
        tolerance = float(arrays.unit_roundoff(T) ** (2 / 3))
    arrays.check_number(tolerance, "gradient_tolerance", 0)
    own = None if x0 is None else starts(x0, T, len(S), signature).double()
    answers = Answers.unknown(starts(None, T, len(S), signature).double() if own is None else own)
    with Interrupt() as interrupt, _threads(T.device) as threads:
        budget = Budget(limits, interrupt)

        def solved(part: slice) -> Answers:
            ours = None if own is None else own[part]
            chunk = _Chunk(S[part].double(), T[part].double(), signature, ours)
            return chunk.solve(components, tolerance, budget)

        parts = _parts(S)
        with ThreadPoolExecutor(threads) as pool:
            for part, found in zip(parts, pool.map(solved, parts), strict=True):
                answers.put(part, found)
        interrupt.hold()
        numpy_out = not isinstance(target if x0 is None else x0, Tensor)
        return batch_result(answers, budget, signature, T, numpy_out)


class Starts(NamedTuple):
    """Points (K, B, n, n) in the components (K, B), the lowest f first, and what bounds f there."""

    points: Tensor
    kinds: Tensor
    """A component is a number whose bits say of which of X[+,+] and X[-,-] det is negative."""
    M: Tensor
    of_m: Tensor
    floor: Tensor
    """f(M), less its rounding."""
    weight: Tensor
    """A lower bound on the eigenvalues of A; 0 where A is nearly singular."""

    def bound(self, turn: int) -> Tensor:
        """The cheap bound."""
        wrong = self.kinds[turn] ^ self.of_m
        bound = self.floor + self.weight * ((wrong & 1) + (wrong >> 1)) / 2
        return torch.where(self.weight > 0, bound, -torch.inf)


@contextmanager
def _threads(device: torch.device) -> Iterator[int]:
    """How many chunks are solved side by side: on the CPU one per thread of torch.

    Torch itself then takes one thread, which is faster for small matrices, and the answers do not
    depend on the number of threads.
    """
    if device.type != "cpu":
        yield 1
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def _parts(source: Tensor) -> list[slice]:
    """The chunks: small enough for the cache, and some for each thread, however many there are."""
    on_cpu = source.device.type == "cpu"
    step = max(1, AT_ONCE["cpu" if on_cpu else "cuda"] // source[0].numel())
    if on_cpu:
        step = min(step, max(LEAST, len(source) // PIECES))
    return [slice(start, start + step) for start in range(0, len(source), step)]


class _Chunk:
    """Some pairs of clouds, their starts in each component, and bounds on f there."""

    def __init__(
        self, source: Tensor, target: Tensor, signature: Signature, x0: Tensor | None
    ) -> None:
        size = torch.maximum(source.abs().amax((1, 2)), target.abs().amax((1, 2)))
        self.finite = torch.isfinite(size)
        scale = power_of_two(torch.where(self.finite, size, 1.0))
        self.unit = scale.square()
        healthy = self.finite[:, None, None]
        scale = scale[:, None, None]
        self.clouds = Clouds.of(
            torch.where(healthy, source / scale, 0.0), torch.where(healthy, target / scale, 0.0)
        )
        self.signature = signature
        self.signs = signature.vector(source)
        self.blocks = [block for block in signature.positions(source.device) if len(block)]
        self.x0 = x0

    def solve(self, components: str, tolerance: float, budget: Budget) -> Answers:
        """The best local minimum over the components that may hold it."""
        count, n = len(self.clouds.A), self.signature.n
        identity = torch.eye(n).to(self.clouds.A).expand(count, n, n)
        best = Answers.unknown(identity if self.x0 is None else self.x0)
        if not budget.ended():
            begin = self._starts()
            for turn in range(len(begin.points) if components == "all" else 1):
                todo = None if turn == 0 else self._promising(begin, turn, best)
                self._run(best, begin.points[turn], todo, tolerance, budget)
        best.value = self.clouds.value(best.X) * self.unit
        best.norm = best.norm * self.unit
        best.settle(
            self.clouds.A,
            self.signature,
            lambda X, index: self.clouds.select(index).value(X),
            bounded=True,
        )
        best.codes[~self.finite] = STATUSES.index(Status.NON_FINITE)
        best.value[~self.finite] = best.norm[~self.finite] = torch.nan
        return best

    def _promising(self, begin: Starts, turn: int, best: Answers) -> Tensor:
        """The problems that may have a lower f in the component of this turn."""
        cheap = (begin.bound(turn) <= best.value) & (best.codes != UNFINISHED)
        todo = cheap.nonzero()[:, 0]
        if not len(todo):
            return todo
        eigenvalues = torch.linalg.eigvalsh(self.clouds.A[todo])
        rounding = 8 * len(self.signs) * arrays.unit_roundoff(eigenvalues) * eigenvalues[:, -1]
        weight = (eigenvalues[:, 0] - rounding).clamp(min=0.0)
        wrong = begin.kinds[turn][todo] ^ begin.of_m[todo]
        distance = torch.zeros_like(weight)
        for bit, block in enumerate(self.blocks):
            values = torch.linalg.svdvals(begin.M[todo[:, None, None], block[:, None], block])
            missing = (1 - values).clamp(min=0.0)
            other = wrong >> bit & 1 == 1
            missing[:, -1] = torch.where(other, 1 + values[:, -1], missing[:, -1])
            distance += missing.square().sum(1)
        bound = begin.floor[todo] + weight * distance / 2
        return todo[(bound <= best.value[todo]) | (begin.weight[todo] == 0)]

    def _run(
        self, best: Answers, start: Tensor, todo: Tensor | None, tolerance: float, budget: Budget
    ) -> None:
        """Solve some problems, or all of them, and keep what is better."""
        if budget.ended() or (todo is not None and not len(todo)):
            return
        clouds = self.clouds if todo is None else self.clouds.select(todo)
        X = start if todo is None else start[todo]
        found = solve_many(clouds.A, clouds.C, self.signs, X, tolerance, budget)
        found.value = clouds.value(found.X)
        if todo is None:
            best.put(slice(None), found)
            return
        best.iterations[todo] += found.iterations
        found.iterations = best.iterations[todo]
        better = found.value < best.value[todo]
        best.put(todo[better], Answers(*(part[better] for part in vars(found).values())))

    def _starts(self) -> Starts:
        """A start in each component: the better one of I and the factor of M, columns flipped."""
        A, C = self.clouds.A, self.clouds.C
        n = len(self.signs)
        identity = torch.eye(n).to(A).expand_as(A)
        M, weight = _least_squares(A, C)
        W = _factor(M, self.signs)
        at_m, at_w, at_identity = (self.clouds.rough_value(X) for X in (M, W, identity))
        usable = at_w - at_m <= CLEARLY_LOWER * (at_identity - at_m)
        W = torch.where(usable[:, None, None], W, identity)
        flips = self._flips(A)
        changes = torch.arange(len(flips), device=A.device)
        both = torch.stack([identity, W])
        values = _flipped_values(A, C, both, flips)  # (2, B, K)
        which = self._component(both)  # (2, B), the number of a component
        by_component = values.gather(2, which[..., None] ^ changes)
        from_w = by_component[1] < by_component[0]
        lowest = torch.where(from_w, by_component[1], by_component[0])  # (B, K)
        if self.x0 is not None:
            own = self._component(self.x0[None])[0]
            lowest.scatter_(1, own[:, None], -torch.inf)
        rank = lowest.argsort(1)
        points = []
        for kind in rank.unbind(1):
            better = from_w.gather(1, kind[:, None])[:, 0]
            flip = kind ^ torch.where(better, which[1], which[0])
            X = torch.where(better[:, None, None], W, identity) * flips[flip][:, None, :]
            if self.x0 is not None:
                X = torch.where((kind == own)[:, None, None], self.x0, X)
            points.append(X)
        floor = at_m - 8 * n * arrays.unit_roundoff(A) * self.clouds.constant
        of_m = self._component(M[None])[0]
        return Starts(torch.stack(points), rank.mT, M, of_m, floor, weight)

    def _flips(self, like: Tensor) -> Tensor:
        """Signs (K, n) of columns that change a component by xor with 0, ..., K - 1."""
        flips = like.new_ones((2 ** len(self.blocks), len(self.signs)))
        for number in range(len(flips)):
            for bit, block in enumerate(self.blocks):
                if number >> bit & 1:
                    flips[number, block[-1]] = -1
        return flips

    def _component(self, X: Tensor) -> Tensor:
        """The number of the component of X (..., n, n)."""
        number = torch.zeros(X.shape[:-2], dtype=torch.int64, device=X.device)
        for bit, block in enumerate(self.blocks):
            negative = torch.linalg.det(X[..., block[:, None], block]) < 0
            number |= negative.long() << bit
        return number


def _least_squares(A: Tensor, C: Tensor) -> tuple[Tensor, Tensor]:
    """M = -A^-1 C, and a lower bound on the eigenvalues of A; 0 where A is nearly singular.

    There M is that of A + 1e-12 ||A|| I.
    """
    size = torch.linalg.matrix_norm(A)
    factor, info = torch.linalg.cholesky_ex(A)
    identity = torch.eye(A.shape[-1]).to(A)
    inverse = torch.cholesky_inverse(torch.where(info[:, None, None] == 0, factor, identity))
    weight = 1 / torch.linalg.matrix_norm(inverse)
    sound = (info == 0) & (weight > FULL_RANK * size)
    if not bool(sound.all()):
        shifted = A.clone()
        small = FULL_RANK**2 * torch.where(size > 0, size, 1.0)
        shifted.diagonal(dim1=-2, dim2=-1).add_(small[:, None])
        inverse = torch.where(sound[:, None, None], inverse, torch.linalg.inv_ex(shifted).inverse)
    return -inverse @ C, torch.where(sound, weight, 0.0)


def _factor(M: Tensor, signs: Tensor) -> Tensor:
    """The J-orthogonal factor of each M, and NaN where the iteration does not find one."""
    inverse, info = torch.linalg.inv_ex(M)
    ratio = (torch.linalg.matrix_norm(inverse) / torch.linalg.matrix_norm(M)).sqrt()
    X = M * ratio[:, None, None]
    inverse = inverse / ratio[:, None, None]
    s = signs[:, None] * signs
    level = 4 * len(signs) * arrays.unit_roundoff(M)
    J = torch.diag(signs)
    for turn in range(FACTOR_STEPS):
        X = (X + s * inverse.mT) / 2
        defect = (X.mT @ (signs[:, None] * X) - J).abs().amax((1, 2))
        rounding = level * X.square().sum((1, 2)).clamp(min=1.0)
        unfinished = (defect > rounding) & (defect < torch.inf)
        if turn > 2 and not bool(unfinished.any()):
            break
        inverse, _ = torch.linalg.inv_ex(X)
    return torch.where(
        (defect <= rounding)[:, None, None] & (info == 0)[:, None, None], X, torch.nan
    )


def _flipped_values(A: Tensor, C: Tensor, X: Tensor, flips: Tensor) -> Tensor:
    """f, but for a constant, at X (2, B, n, n) with columns flipped: (2, B, K)."""
    quadratic = (X * (A @ X)).sum((-2, -1)) / 2
    linear = (C * X).sum(-2)  # of each column
    found: Tensor = quadratic[..., None] + linear @ flips.mT
    return found.nan_to_num(torch.inf)
