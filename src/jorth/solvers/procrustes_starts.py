"""Where `procrustes` starts in each component, and bounds that leave components out.

All of it is for B problems, and for a single one with B = 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from jorth._inputs import unit_roundoff
from jorth.group.elements import power_of_two
from jorth.objectives.procrustes import BLOCK, Procrustes
from jorth.signature import Signature

CLEARLY_LOWER = 0.5
"""The factor of M is a start if its f is at most f(M) plus this share of f(I) - f(M); a worse one
usually lies far out."""
FACTOR_STEPS = 20
"""The most Newton steps to the factor of M, which takes more only far out."""


@dataclass
class Clouds:
    """B problems f(X) = (||source X - target||^2 + rest) / 2m by k rows, whose entries are about 1.

    With m rows [S T] = Q [[source, target], [0, R]], rest = ||R||^2, and k is at most n. Up to a
    constant, f is 1/2 <X, A X> + <C, X>.

    Attributes:
        source: (B, k, n), triangular; zero if the data are not finite.
        target: (B, k, n).
        rest: (B,).
        scale: (B,), the power of two by which the data were divided; NaN if they are not finite.
        m: The number of rows of the data.
        gradient_scale: (B,), ||A||_F + ||C||_F.
        unit: The relative rounding error of sums of k or n terms, and of a QR of rows in blocks.
    """

    source: Tensor
    target: Tensor
    rest: Tensor
    scale: Tensor
    m: int

    def __post_init__(self) -> None:
        S, T = self.source, self.target
        self.A, self.C = S.mT @ S / self.m, S.mT @ T / -self.m
        self.gradient_scale = torch.linalg.matrix_norm(self.A) + torch.linalg.matrix_norm(self.C)
        self.unit = 4 * (sum(S.shape[1:]) + self.m / BLOCK) * unit_roundoff(S)

    @classmethod
    def of(cls, source: Tensor, target: Tensor) -> Clouds:
        """Compress rows (B, m, n), in blocks as `Procrustes` does."""
        size = torch.maximum(source.abs().amax((1, 2)), target.abs().amax((1, 2)))
        finite = size.isfinite()[:, None, None]
        scale = power_of_two(torch.where(finite[:, 0, 0], size, 1.0))[:, None, None]
        rows = torch.where(finite, torch.cat([source, target], 2) / scale, 0.0)
        (m, n), stack = source.shape[1:], rows[:, :0]
        for start in range(0, m, BLOCK):
            stack = torch.cat([stack, rows[:, start : start + BLOCK]], 1)
            stack = torch.linalg.qr(stack, mode="r").R
        rest = stack[:, n:, n:].square().sum((1, 2))
        scale = torch.where(finite, scale, torch.nan)[:, 0, 0]
        return cls(stack[:, :n, :n], stack[:, :n, n:], rest, scale, m)

    @classmethod
    def compressed(cls, problem: Procrustes) -> Clouds:
        """Take over the factor of a single problem."""
        rows = torch.cat([problem.R, problem.T1], 1)[None, : problem.samples].cpu()
        scale = power_of_two(rows.abs().max())
        source, target = (rows / scale).split(len(problem.R), 2)  # type: ignore[no-untyped-call]
        rest = problem.floor / scale / scale
        return cls(source, target, rest[None], scale[None], problem.samples)

    def value(self, X: Tensor) -> Tensor:
        """Return f (B,) from the residuals, so that nothing cancels."""
        square = (self.source @ X - self.target).square().sum((1, 2))
        return torch.div(square + self.rest, 2 * self.m)

    def select(self, which: Tensor) -> Clouds:
        source, target = self.source[which], self.target[which]
        return Clouds(source, target, self.rest[which], self.scale[which], self.m)

    def least_squares(self) -> Tensor:
        """Return M (B, n, n), of least norm where it is not unique to rounding."""
        S, T = self.source, self.target
        if S.shape[1] < S.shape[2]:
            M: Tensor = torch.linalg.lstsq(S, T, driver="gelsd").solution
            return M
        size = S.diagonal(dim1=1, dim2=2).abs()
        regular = size.amin(1) > len(S[0]) * unit_roundoff(S) * size.amax(1)
        R = torch.where(regular[:, None, None], S, torch.eye(len(S[0])).to(S))
        M = torch.linalg.solve_triangular(R, T, upper=True)
        if not bool(regular.all()):
            M[~regular] = torch.linalg.lstsq(S[~regular], T[~regular], driver="gelsd").solution
        return M


class Starts:
    """Points in each component, the lowest f first, and what bounds f there.

    With M* the exact least-squares solution f(X) >= floor + weight |X - M*|^2 / 2, and
    |M - M*| <= radius for the computed M. There is no bound where weight is 0, as A is nearly
    singular.

    Attributes:
        points: (K, B, n, n): the better one of I and the factor of M, with columns flipped. In its
            component x0 (B, n, n) takes their place, and comes first.
        components: (K, B), numbers whose bits say of which of X[+,+] and X[-,-] det is negative.
    """

    def __init__(self, clouds: Clouds, signature: Signature, x0: Tensor | None = None) -> None:
        A, C = clouds.A, clouds.C
        self.blocks = [block for block in signature.positions(A.device) if len(block)]
        M = clouds.least_squares()
        finite = M.isfinite().flatten(1).all(1)  # a tiny source may have no inverse in range
        self.M = M = torch.where(finite[:, None, None], M, 0.0)
        # the bound on f; each term with its rounding error
        trace = A.diagonal(dim1=-2, dim2=-1).sum(-1)
        least = torch.linalg.eigvalsh(A)[:, 0] - 2 * clouds.unit * trace
        self.weight = torch.where(finite, least, 0.0).clamp(min=0.0)
        slope = A @ M
        constant = (clouds.target.square().sum((1, 2)) + clouds.rest) / (2 * clouds.m)
        value = (M * (slope / 2 + C)).sum((-2, -1)) + constant
        reach = trace.sqrt() * torch.linalg.matrix_norm(M) + (2 * constant).sqrt()
        gradient = torch.linalg.matrix_norm(slope + C) + 2 * clouds.unit * trace.sqrt() * reach
        self.radius = gradient / self.weight
        self.floor = value - clouds.unit * reach.square() - gradient * self.radius / 2
        # the points
        W = factor(M, signature.vector(A))
        identity = torch.eye(signature.n).to(A).expand_as(A)
        at_m, at_w, at_identity = (clouds.value(X) for X in (M, W, identity))
        usable = at_w - at_m <= CLEARLY_LOWER * (at_identity - at_m)
        W = torch.where(usable[:, None, None], W, identity)
        flips, which = component_flips(signature).to(A), _component(W, self.blocks)
        # f, but for what no flip changes: (B, K), by flip and then by component
        values = ((C * W).sum(-2) @ flips.mT).nan_to_num(torch.inf)
        values = values.gather(1, which[:, None] ^ torch.arange(len(flips)))
        if x0 is not None:
            own = _component(x0, self.blocks)
            values.scatter_(1, own[:, None], -torch.inf)
        self.components = values.argsort(1).mT
        points = []
        for component in self.components:
            X = W * flips[component ^ which][:, None, :]
            if x0 is not None:
                X = torch.where((component == own)[:, None, None], x0, X)
            points.append(X)
        self.points = torch.stack(points)

    def bound(self, turn: int, which: Tensor) -> Tensor:
        """Return a lower bound on f in the components of a turn, for the problems ``which``.

        X[+,+] has no singular value below 1, so that its squared distance to M[+,+] is at least the
        sum of max(1 - sigma_i, 0)^2 over the singular values of M[+,+]; if the signs of the two
        determinants differ, the last term is (1 + sigma_n)^2. Likewise for -.
        """
        component, M = self.components[turn][which], self.M[which]
        floor, weight, radius = (part[which] for part in (self.floor, self.weight, self.radius))
        distance = torch.zeros_like(weight)
        for bit, block in enumerate(self.blocks):
            part = M[..., block[:, None], block]
            values = torch.linalg.svdvals(part)
            missing = (1 - values - radius[:, None]).clamp(min=0.0)
            other = (torch.linalg.det(part) < 0) != (component >> bit & 1 == 1)
            known = other & (values[:, -1] > radius)  # the sign of the exact determinant
            missing[:, -1] = torch.where(known, 1 + values[:, -1] - radius, missing[:, -1])
            distance += missing.square().sum(1)
        return torch.where(weight > 0, floor + weight * distance / 2, -torch.inf)


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
    """Return the numbers of the components of X (..., n, n)."""
    number = torch.zeros(X.shape[:-2], dtype=torch.int64)
    for bit, block in enumerate(blocks):
        number |= (torch.linalg.det(X[..., block[:, None], block]) < 0).long() << bit
    return number


def factor(M: Tensor, signs: Tensor) -> Tensor:
    """Return the J-orthogonal factor of each M, and NaN where the iteration does not find one."""
    inverse, info = torch.linalg.inv_ex(M)
    ratio = (torch.linalg.matrix_norm(inverse) / torch.linalg.matrix_norm(M)).sqrt()
    X, inverse = M * ratio[:, None, None], inverse / ratio[:, None, None]
    s, J = signs[:, None] * signs, torch.diag(signs)
    level = 4 * len(signs) * unit_roundoff(M)
    for turn in range(FACTOR_STEPS):
        X = (X + s * inverse.mT) / 2
        defect = (X.mT @ (signs[:, None] * X) - J).abs().amax((1, 2))
        rounding = level * X.square().sum((1, 2)).clamp(min=1.0)
        if turn > 2 and not bool(((defect > rounding) & (defect < torch.inf)).any()):
            break
        inverse, _ = torch.linalg.inv_ex(X)
    sound = (defect <= rounding) & (info == 0)
    return torch.where(sound[:, None, None], X, torch.nan)
