"""`procrustes` for many pairs of point clouds at once, in torch operations on all of them.

It goes as for a single pair: starts from the least-squares solution M and the identity, one per
component, and bounds that leave components out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from jorth import arrays
from jorth.group.norms import power_of_two
from jorth.group.polishing import orthogonal_factor
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
from jorth.solvers.loop.record import Result, public
from jorth.solvers.loop.status import Status
from jorth.solvers.procrustes.certificate import Certificate, Neighbourhood

CLEARLY_LOWER = 0.5
"""The factor of M is a start if its f is at most f(M) plus this share of f(I) - f(M); a worse one
usually lies far out."""
FULL_RANK = 1e-10
"""The least 1 / (||A||_F ||A^-1||_F) with which A has a lower bound on its eigenvalues: the inverse
then has an error of at most one per cent."""
RIDGE = 1e-12
"""M is that of A + RIDGE ||A|| I where A is nearly singular."""
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


class Unconstrained(NamedTuple):
    """M, the minimiser of f over all matrices, and f(X) >= floor + weight |X - M*|^2 / 2.

    M* is the exact one, and |M - M*| <= radius. All of it is for B problems; weight is 0, and there
    is no bound, where A is nearly singular.
    """

    A: Tensor
    error: Tensor
    """That of an eigenvalue of A."""
    M: Tensor
    floor: Tensor
    weight: Tensor
    radius: Tensor

    @classmethod
    def of(cls, clouds: Clouds) -> Unconstrained:
        A, C, constant = clouds.A, clouds.C, clouds.constant
        k, n = clouds.source.shape[1:]
        unit = 4 * (k + n) * arrays.unit_roundoff(A)
        M, weight = _least_squares(A, C)
        trace = A.diagonal(dim1=-2, dim2=-1).sum(-1)
        error = 2 * unit * trace
        weight = (0.99 * weight - error).clamp(min=0.0)
        slope = A @ M
        value = (M * (slope / 2 + C)).sum((-2, -1)) + constant
        reach = trace.sqrt() * torch.linalg.matrix_norm(M) + (2 * constant).sqrt()
        gradient = torch.linalg.matrix_norm(slope + C) + 2 * unit * trace.sqrt() * reach
        radius = gradient / weight
        floor = value - unit * reach.square() - gradient * radius / 2
        return cls(A, error, M, floor, weight, radius)

    def component_bound(self, kinds: Tensor, blocks: list[Tensor]) -> Tensor:
        """Return a lower bound (B,) on f in the components ``kinds``.

        X[+,+] has no singular value below 1, so that its squared distance to M[+,+] is at least the
        sum of max(1 - sigma_i, 0)^2 over the singular values of M[+,+]; if the signs of the two
        determinants differ, the last term is (1 + sigma_n)^2. Likewise for -.
        """
        weight = torch.maximum(self.weight, torch.linalg.eigvalsh(self.A)[:, 0] - self.error)
        distance = torch.zeros_like(weight)
        for bit, block in enumerate(blocks):
            part = self.M[..., block[:, None], block]
            values = torch.linalg.svdvals(part)
            missing = (1 - values - self.radius[:, None]).clamp(min=0.0)
            other = (torch.linalg.det(part) < 0) != (kinds >> bit & 1 == 1)
            last = 1 + values[:, -1] - self.radius
            known = other & (values[:, -1] > self.radius)  # the sign of the exact determinant
            missing[:, -1] = torch.where(known, last, missing[:, -1])
            distance += missing.square().sum(1)
        bound = self.floor + weight * distance / 2
        return torch.where(self.weight > 0, bound, -torch.inf)

    def select(self, which: Tensor) -> Unconstrained:
        return Unconstrained(*(part[which] for part in self))


def procrustes_batch(
    source: Any,
    target: Any,
    signature: Signature,
    x0: Any,
    components: str,
    tolerance: float,
    limits: Limits,
    again: Callable[..., tuple[Result, Certificate | None]] | None,
) -> BatchResult:
    """`jorth.procrustes` for sources and targets (B, m, n), with bounds if ``again`` is given.

    ``again`` solves a single problem (source, target, x0), whose gap is open.
    """
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
    arrays.check_number(tolerance, "gradient_tolerance", 0)
    own = None if x0 is None else starts(x0, T, len(S), signature).double()
    if own is not None and T.dtype is not torch.float64:
        own = orthogonal_factor(own, signature, "x0")
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
    proof = None if again is None else _certify(answers, S, T, signature, again)
    result = batch_result(answers, budget, signature, T, numpy_out)
    if proof is None:
        return result
    bound, gap = (
        public(torch.from_numpy(part).to(T.device), numpy_out=numpy_out)
        for part in (proof.bound, proof.gap)
    )
    message = f"{result.message}; {int(proof.closed.sum())} certified"
    return replace(result, bound=bound, gap=gap, message=message)


def _certify(
    answers: Answers,
    source: Tensor,
    target: Tensor,
    signature: Signature,
    again: Callable[..., tuple[Result, Certificate | None]],
) -> Certificate:
    """Bound f in each problem; open ones are solved again, one by one, and better answers kept."""
    pieces = []
    for part in _parts(source):
        S, T, X = (x[part].double().cpu().numpy() for x in (source, target, answers.X))
        pieces.append(Neighbourhood(S, T, X, signature).certificate()[:3])
    proof = Certificate(*map(np.concatenate, zip(*pieces, strict=True)))
    open_ = ~torch.from_numpy(proof.closed) & torch.isfinite(answers.value).cpu()
    for place in torch.nonzero(open_)[:, 0].tolist():
        single, found = again(*(x[place].double().cpu() for x in (source, target, answers.X)))
        if found is None:
            continue
        for column, entry in zip(proof[:3], found[:3], strict=True):
            column[place] = entry
        answers.iterations[place] += single.iterations
        if single.value < answers.value[place] and single.status in STATUSES:
            answers.X[place], answers.value[place] = single.x, single.value
            answers.norm[place] = single.gradient_norm
            answers.codes[place] = STATUSES.index(single.status)
    return proof


class Starts(NamedTuple):
    """Points (K, B, n, n) in the components (K, B), the lowest f first, and what bounds f there."""

    points: Tensor
    kinds: Tensor
    """A component is a number whose bits say of which of X[+,+] and X[-,-] det is negative."""
    of_m: Tensor
    """The component of M."""
    least: Unconstrained

    def bound(self, turn: int) -> Tensor:
        """The bound without singular values: 1 for each block of M with the wrong determinant."""
        wrong = self.kinds[turn] ^ self.of_m
        near = (1 - 2 * self.least.radius).clamp(min=0.0)
        distance = near.square() * ((wrong & 1) + (wrong >> 1))
        bound = self.least.floor + self.least.weight * distance / 2
        return torch.where(self.least.weight > 0, bound, -torch.inf)


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
        bound = begin.least.select(todo).component_bound(begin.kinds[turn][todo], self.blocks)
        return todo[bound <= best.value[todo]]

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
        least = Unconstrained.of(self.clouds)
        M = least.M
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
        return Starts(torch.stack(points), rank.mT, self._component(M[None])[0], least)

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
    """M = -A^-1 C, and 1 / ||A^-1||_F; 0 where A is nearly singular."""
    size = torch.linalg.matrix_norm(A)
    factor, info = torch.linalg.cholesky_ex(A)
    identity = torch.eye(A.shape[-1]).to(A)
    inverse = torch.cholesky_inverse(torch.where(info[:, None, None] == 0, factor, identity))
    weight = 1 / torch.linalg.matrix_norm(inverse)
    sound = (info == 0) & (weight > FULL_RANK * size)
    if not bool(sound.all()):
        shifted = A.clone()
        small = RIDGE * torch.where(size > 0, size, 1.0)
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
