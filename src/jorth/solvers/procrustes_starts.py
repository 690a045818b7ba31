"""Where `procrustes` starts in each component, and bounds that leave components out.

All of it is for B problems, and for a single one with B = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from jorth.objectives.procrustes import Procrustes
from jorth.objectives.rows import BLOCK
from jorth.signature import Signature

Matrix: TypeAlias = NDArray[np.float64]
UNIT = 2.0**-53
CLEARLY_LOWER = 0.5
"""The factor of M is a start if its f is at most f(M) plus this share of f(I) - f(M); a worse one
usually lies far out."""
FACTOR_STEPS = 20
"""The most Newton steps to the factor of M, which takes more only far out."""


def squares(M: Matrix) -> Matrix:
    """Return ||M||_F^2 of matrices (..., n, k)."""
    return np.asarray(np.einsum("...ij,...ij->...", M, M))


def norms(M: Matrix) -> Matrix:
    """Return ||M||_F of matrices (..., n, k)."""
    return np.asarray(np.sqrt(squares(M)))


@dataclass
class Clouds:
    """B problems f(X) = (||source X - target||^2 + rest) / 2m = <X, A X> / 2 + <C, X> + c.

    ``source`` (B, k, n), triangular with k <= n, and ``target`` (B, k, n) are what a QR
    factorisation leaves of the rows, ``rest`` (B,) the square of what it drops. Entries are about
    1, as the data were divided by ``scale`` (B,), a power of two; NaN stands for data that are not
    finite. ``unit`` is the relative rounding error of sums of k or n terms, and of a QR of rows in
    blocks.
    """

    source: Matrix
    target: Matrix
    rest: Matrix
    scale: Matrix
    m: int

    def __post_init__(self) -> None:
        S, T = self.source, self.target
        self.A, self.C = S.swapaxes(1, 2) @ S / self.m, S.swapaxes(1, 2) @ T / -self.m
        self.gradient_scale = norms(self.A) + norms(self.C)
        self.unit = 4 * (sum(S.shape[1:]) + self.m / BLOCK) * UNIT

    @classmethod
    def of(cls, source: Matrix, target: Matrix) -> Clouds:
        """Compress rows (B, m, n), in blocks as `Procrustes` does."""
        size = np.maximum(abs(source).max((1, 2)), abs(target).max((1, 2)))
        finite = np.isfinite(size)
        scale = _power_of_two(np.where(finite, size, 1.0))
        rows = np.concatenate([source, target], 2) / scale[:, None, None]
        rows[~finite] = 0.0
        (m, n), stack = source.shape[1:], rows[:, :0]
        for start in range(0, m, BLOCK):
            stack = np.concatenate([stack, rows[:, start : start + BLOCK]], 1)
            stack = np.asarray(np.linalg.qr(stack, mode="r"))
        scale[~finite] = np.nan
        return cls(stack[:, :n, :n], stack[:, :n, n:], squares(stack[:, n:, n:]), scale, m)

    @classmethod
    def compressed(cls, problem: Procrustes) -> Clouds:
        """Take over the factor of a single problem."""
        parts = [part[: problem.samples].cpu().numpy() for part in (problem.R, problem.T1)]
        scale = _power_of_two(np.array([max(abs(part).max() for part in parts)]))
        source, target = (part[None] / scale for part in parts)
        return cls(source, target, problem.floor / scale / scale, scale, problem.samples)

    def value(self, X: Matrix) -> Matrix:
        """Return f (B,) from the residuals, so that nothing cancels."""
        return (squares(self.source @ X - self.target) + self.rest) / (2 * self.m)

    def select(self, which: NDArray[np.intp]) -> Clouds:
        if len(which) == len(self.scale):
            return self
        source, target = self.source[which], self.target[which]
        return Clouds(source, target, self.rest[which], self.scale[which], self.m)

    def least_squares(self) -> Matrix:
        """Return M (B, n, n), of least norm where it is not unique to rounding."""
        S, T = self.source, self.target
        regular = np.zeros(len(S), dtype=bool)
        if S.shape[1] == S.shape[2]:
            size = abs(np.einsum("bii->bi", S))
            regular = size.min(1) > S.shape[1] * UNIT * size.max(1)
        M = np.empty((len(S), *S.shape[2:] * 2))
        if regular.any():
            M[regular] = np.linalg.solve(S[regular], T[regular])
        for one in np.flatnonzero(~regular):
            M[one] = np.linalg.lstsq(S[one], T[one], rcond=None)[0]
        return M


class Starts:
    """Points in each component, the lowest f first, and what bounds f there.

    ``components`` (K, B) has bits for a negative det of X[+,+] and of X[-,-].
    """

    def __init__(self, clouds: Clouds, signature: Signature, x0: Matrix | None = None) -> None:
        self.clouds, self.x0 = clouds, x0
        self.blocks = [at for at in (signature.positive, signature.negative) if len(at)]
        self.M = M = clouds.least_squares()
        self.finite = np.isfinite(M).all((1, 2))  # a tiny source may have no inverse in range
        M[~self.finite] = 0.0
        W, identity = factor(M, signature.signs.astype(float)), np.eye(signature.n)
        at_m, at_w, at_identity = (clouds.value(X) for X in (M, W, identity))
        usable = at_w - at_m <= CLEARLY_LOWER * (at_identity - at_m)
        self.W = np.where(usable[:, None, None], W, identity)
        self.flips = component_flips(signature)
        self.which = _component(self.W, self.blocks)
        # f, but for what no flip changes: (B, K), by flip and then by component
        values = np.einsum("bij,bij->bj", clouds.C, self.W) @ self.flips.T
        values = np.nan_to_num(values, nan=np.inf)
        values = np.take_along_axis(values, self.which[:, None] ^ np.arange(len(self.flips)), 1)
        if x0 is not None:
            self.own = _component(x0, self.blocks)
            np.put_along_axis(values, self.own[:, None], -np.inf, 1)
        self.components = values.argsort(1, kind="stable").T

    def points(self, turn: int) -> Matrix:
        """Return the better one of I and the factor of M (B, n, n), with columns flipped, or x0."""
        component = self.components[turn]
        X: Matrix = self.W * self.flips[component ^ self.which][:, None, :]
        if self.x0 is not None:
            X = np.where((component == self.own)[:, None, None], self.x0, X)
        return X

    @cached_property
    def _growth(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return (B,) floor, weight and radius, with all rounding errors.

        With M* the exact least-squares solution f(X) >= floor + weight |X - M*|^2 / 2, and
        |M - M*| <= radius. There is no bound where weight is 0, as A is nearly singular.
        """
        clouds, M, A = self.clouds, self.M, self.clouds.A
        trace = np.einsum("bii->b", A)
        least = np.linalg.eigvalsh(A)[:, 0] - 2 * clouds.unit * trace
        weight = np.where(self.finite, least, 0.0).clip(0.0)
        slope = A @ M
        constant = (squares(clouds.target) + clouds.rest) / (2 * clouds.m)
        value = (M * (slope / 2 + clouds.C)).sum((1, 2)) + constant
        reach = np.sqrt(trace) * norms(M) + np.sqrt(2 * constant)
        gradient = norms(slope + clouds.C) + 2 * clouds.unit * np.sqrt(trace) * reach
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = gradient / weight
            floor = value - clouds.unit * reach**2 - gradient * radius / 2
        return floor, weight, radius

    @cached_property
    def _spectra(self) -> list[tuple[Any, Any]]:
        """Return the singular values of M[+,+] and M[-,-], and whether det is negative."""
        parts = [self.M[:, at[:, None], at] for at in self.blocks]
        return [(np.linalg.svd(part, compute_uv=False), np.linalg.det(part) < 0) for part in parts]

    def bound(self, turn: int, which: NDArray[np.intp]) -> Matrix:
        """Return a lower bound on f in the components of a turn, for the problems ``which``.

        X[+,+] has no singular value below 1, so its squared distance to M[+,+] is at least the sum
        of max(1 - sigma_i, 0)^2 over the singular values of M[+,+], with (1 + sigma_n)^2 as the
        last term if the signs of the determinants differ. Likewise for -.
        """
        component = self.components[turn][which]
        floor, weight, radius = (part[which] for part in self._growth)
        distance = np.zeros(len(which))
        with np.errstate(invalid="ignore"):
            for bit, (spectrum, negative) in enumerate(self._spectra):
                values = spectrum[which]
                missing = (1 - values - radius[:, None]).clip(0.0)
                other = negative[which] != (component >> bit & 1 == 1)
                known = other & (values[:, -1] > radius)  # the sign of the exact determinant
                missing[known, -1] = (1 + values[:, -1] - radius)[known]
                distance += (missing**2).sum(1)
            return np.where(weight > 0, floor + weight * distance / 2, -np.inf)


def component_flips(signature: Signature) -> Matrix:
    """Return signs (K, n) of columns that change a component by xor with 0, ..., K - 1."""
    blocks = [block for block in (signature.positive, signature.negative) if len(block)]
    flips = np.ones((2 ** len(blocks), signature.n))
    for bit, block in enumerate(blocks):
        flips[np.arange(len(flips)) >> bit & 1 == 1, block[-1]] = -1
    return flips


def _component(X: Matrix, blocks: list[Any]) -> NDArray[np.intp]:
    """Return the numbers of the components of X (B, n, n)."""
    number = np.zeros(len(X), dtype=np.intp)
    for bit, block in enumerate(blocks):
        number |= (np.linalg.det(X[:, block[:, None], block]) < 0).astype(np.intp) << bit
    return number


def factor(M: Matrix, signs: Matrix) -> Matrix:
    """Return the J-orthogonal factor of each M, and NaN where the iteration does not find one."""
    s, J = signs[:, None] * signs, np.diag(signs)
    level = 4 * len(signs) * UNIT
    with np.errstate(all="ignore"):
        inverse = inverses(M)
        ratio = np.sqrt(norms(inverse) / norms(M))[:, None, None]
        X, inverse = M * ratio, inverse / ratio
        for turn in range(FACTOR_STEPS):
            X = (X + s * inverse.swapaxes(1, 2)) / 2
            if turn > 1:
                defect = abs(X.swapaxes(1, 2) @ (signs[:, None] * X) - J).max((1, 2))
                rounding = level * squares(X).clip(1.0)
                if not ((defect > rounding) & (defect < np.inf)).any():
                    break
            inverse = inverses(X)
        return np.where((defect <= rounding)[:, None, None], X, np.nan)


def inverses(M: Matrix) -> Matrix:
    """Return the inverses of M (B, n, n), of singular ones something that is not finite."""
    inverse, failed = torch.linalg.inv_ex(torch.from_numpy(M))
    found: Matrix = inverse.numpy()
    found[failed.numpy() != 0] = np.nan
    return found


def _power_of_two(size: Matrix) -> Matrix:
    """Return the largest power of two up to each size, and 1 for 0."""
    return np.where(size > 0, np.ldexp(1.0, np.frexp(size)[1] - 1), 1.0)
