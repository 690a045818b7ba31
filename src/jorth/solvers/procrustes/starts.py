"""Where `procrustes` starts in each component, and bounds that leave components out.

All of it is for B problems, and for a single one with B = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from jorth import _inputs
from jorth.objectives.procrustes import BLOCK
from jorth.signature import Signature

CLEARLY_LOWER = 0.5
"""The factor of M is a start if its f is at most f(M) plus this share of f(I) - f(M); a worse one
usually lies far out."""
FULL_RANK = 1e-10
"""The least 1 / (||A||_F ||A^-1||_F) with which A has a lower bound on its eigenvalues: the inverse
then has an error of at most one per cent."""
RIDGE = 1e-12
"""M is that of A + RIDGE ||A|| I where A is nearly singular."""
FACTOR_STEPS = 20


class Clouds(NamedTuple):
    """Sources and targets (B, m, n), scaled, and A = S^T S / m, C = -S^T T / m, (B, n, n)."""

    source: Tensor
    target: Tensor
    A: Tensor
    C: Tensor
    constant: Tensor
    """(B,), f(X) - 1/2 tr(X^T A X) - <C, X>."""
    unit: Tensor
    """(B,), the relative rounding error of sums of k or n terms, and of a QR of rows in blocks."""

    @classmethod
    def of(cls, source: Tensor, target: Tensor, m: int | None = None, rest: float = 0.0) -> Clouds:
        """Return the form of f for k rows, or for a factor of m rows that leaves ``rest``."""
        k, n = source.shape[1:]
        m = m or k
        constant = (target.square().sum((1, 2)) + rest) / (2 * m)
        unit = 4 * (k + n + m / BLOCK) * _inputs.unit_roundoff(source)
        A, C = source.mT @ source / m, source.mT @ target / -m
        return cls(source, target, A, C, constant, torch.full_like(constant, unit))

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
    def of(cls, clouds: Clouds, M: Tensor | None = None) -> Unconstrained:
        """Return the bounds around the M that is given, or that of the normal equations."""
        A, C, constant, unit = clouds[2:]
        inverse, weight = _inverse(A)
        M = -inverse @ C if M is None else M
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


class Starts(NamedTuple):
    """Points (K, B, n, n) in the components (K, B), the lowest f first, and what bounds f there."""

    points: Tensor
    kinds: Tensor
    """A component is a number whose bits say of which of X[+,+] and X[-,-] det is negative."""
    of_m: Tensor
    """The component of M."""
    least: Unconstrained
    blocks: list[Tensor]

    @classmethod
    def of(
        cls, clouds: Clouds, signature: Signature, x0: Tensor | None = None, M: Tensor | None = None
    ) -> Starts:
        """Return in each component the better one of I and the factor of M, columns flipped.

        In its component x0 (B, n, n) takes their place, and comes first.
        """
        A, C = clouds.A, clouds.C
        blocks = [block for block in signature.positions(A.device) if len(block)]
        identity = torch.eye(signature.n).to(A).expand_as(A)
        least = Unconstrained.of(clouds, M)
        M = least.M
        W = _factor(M, signature.vector(A))
        at_m, at_w, at_identity = (clouds.rough_value(X) for X in (M, W, identity))
        usable = at_w - at_m <= CLEARLY_LOWER * (at_identity - at_m)
        W = torch.where(usable[:, None, None], W, identity)
        flips = component_flips(signature).to(A)
        changes = torch.arange(len(flips), device=A.device)
        both = torch.stack([identity, W])
        values = _flipped_values(A, C, both, flips)  # (2, B, K)
        which = _component(both, blocks)  # (2, B), the number of a component
        by_component = values.gather(2, which[..., None] ^ changes)
        from_w = by_component[1] < by_component[0]
        lowest = torch.where(from_w, by_component[1], by_component[0])  # (B, K)
        if x0 is not None:
            own = _component(x0, blocks)
            lowest.scatter_(1, own[:, None], -torch.inf)
        rank = lowest.argsort(1)
        points = []
        for kind in rank.unbind(1):
            better = from_w.gather(1, kind[:, None])[:, 0]
            flip = kind ^ torch.where(better, which[1], which[0])
            X = torch.where(better[:, None, None], W, identity) * flips[flip][:, None, :]
            if x0 is not None:
                X = torch.where((kind == own)[:, None, None], x0, X)
            points.append(X)
        return cls(torch.stack(points), rank.mT, _component(M, blocks), least, blocks)

    def name(self, turn: int) -> str:
        """Return the signs of the determinants in the component of a turn, as in "+1-1"."""
        bits = int(self.kinds[turn, 0])
        return f"{1 - 2 * (bits & 1):+d}{1 - 2 * (bits >> 1):+d}"

    def cheap_bound(self, turn: int) -> Tensor:
        """Return a bound without singular values: 1 for each block of M with the wrong sign."""
        wrong = self.kinds[turn] ^ self.of_m
        near = (1 - 2 * self.least.radius).clamp(min=0.0)
        distance = near.square() * ((wrong & 1) + (wrong >> 1))
        bound = self.least.floor + self.least.weight * distance / 2
        return torch.where(self.least.weight > 0, bound, -torch.inf)

    def bound(self, turn: int, which: Tensor) -> Tensor:
        """Return a lower bound on f in the components of a turn, for the problems ``which``."""
        return self.least.select(which).component_bound(self.kinds[turn][which], self.blocks)


def component_flips(signature: Signature) -> Tensor:
    """Return signs (K, n) of columns that change a component by xor with 0, ..., K - 1."""
    blocks = [block for block in (signature.positive, signature.negative) if len(block)]
    flips = torch.ones((2 ** len(blocks), signature.n), dtype=torch.float64)
    for number in range(len(flips)):
        for bit, block in enumerate(blocks):
            if number >> bit & 1:
                flips[number, int(block[-1])] = -1
    return flips


def _component(X: Tensor, blocks: list[Tensor]) -> Tensor:
    """The number of the component of X (..., n, n)."""
    number = torch.zeros(X.shape[:-2], dtype=torch.int64, device=X.device)
    for bit, block in enumerate(blocks):
        negative = torch.linalg.det(X[..., block[:, None], block]) < 0
        number |= negative.long() << bit
    return number


def _inverse(A: Tensor) -> tuple[Tensor, Tensor]:
    """A^-1 and 1 / ||A^-1||_F; where A is nearly singular, those of A + RIDGE ||A|| I and 0."""
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
    return inverse, torch.where(sound, weight, 0.0)


def _factor(M: Tensor, signs: Tensor) -> Tensor:
    """The J-orthogonal factor of each M, and NaN where the iteration does not find one."""
    inverse, info = torch.linalg.inv_ex(M)
    ratio = (torch.linalg.matrix_norm(inverse) / torch.linalg.matrix_norm(M)).sqrt()
    X = M * ratio[:, None, None]
    inverse = inverse / ratio[:, None, None]
    s = signs[:, None] * signs
    level = 4 * len(signs) * _inputs.unit_roundoff(M)
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
