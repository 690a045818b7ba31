"""Geodesics of the right-invariant metric <K X, L X> = tr(K^T L), J K and J L skew.

The geodesic from X along K X is exp(t (K - K^T)) exp(t K^T) X. (For the left-invariant metric of
GL(n), in which the group is totally geodesic because it is closed under transposition: E.
Andruchow, G. Larotonda, L. Recht and A. Varela, The left invariant metric in the general linear
group, J. Geom. Phys. 86 (2014).) Its inverse has no closed form. It is found by Newton's method
along a path from I to M = Y X^-1, exp(t log Q) exp(t log P) with the polar factors of M = Q P.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import unit_roundoff
from jorth.group.newton import find_zero
from jorth.group.retractions import matrix_exp
from jorth.signature import Signature

SHORTEST = 2.0**-8
"""The least part of the path in one step."""
NEAR = 1e-9
"""What || geodesic - M || may be, relative to M; more where M is large and rounding is felt."""


def geodesic_end(K: Tensor) -> Tensor:
    """exp(K - K^T) exp(K^T): where the geodesic from I along K is after unit time."""
    return matrix_exp(K - K.mT) @ matrix_exp(K.mT)


def end_velocity(K: Tensor) -> Tensor:
    """The velocity at the end of that geodesic, divided by the point: exp(A) K exp(-A), A skew."""
    turn = matrix_exp(K - K.mT)
    return turn @ K @ turn.mT


def geodesic_log(M: Tensor, signature: Signature) -> Tensor | None:
    """The shorter of the geodesics found for M and M^-1 (n, n), as K at I; None if none is found.

    M is in the identity component, on the CPU and in float64.
    """
    s = signature.vector(M)
    there = _continued(M, signature)
    back = _continued(s[:, None] * M.mT * s, signature)
    found = [there, None if back is None else -end_velocity(back)]
    known = [K for K in found if K is not None]
    return min(known, key=torch.linalg.matrix_norm) if known else None


def _continued(M: Tensor, signature: Signature) -> Tensor | None:
    """K with geodesic_end(K) = M, followed along the path; None where Newton's method loses it.

    A K that is longer than the path so far belongs to a geodesic that is not the shortest.
    """
    turn, boost = polar_logs(M, signature)
    length = float(torch.linalg.matrix_norm(turn) + torch.linalg.matrix_norm(boost))
    K, reached, step = turn + boost, 0.0, 1.0
    while reached < 1 and step >= SHORTEST:
        share = min(1.0, reached + step)
        target = M if share == 1 else matrix_exp(share * turn) @ matrix_exp(share * boost)
        found = _solved(K * (share / (reached or 1.0)), target, signature)
        if found is None or torch.linalg.matrix_norm(found) > (1 + NEAR) * share * length + NEAR:
            step /= 2
        else:
            K, reached, step = found, share, 2 * step
    return K if reached == 1 else None


def _solved(K: Tensor, M: Tensor, signature: Signature) -> Tensor | None:
    """The zero near K of sinh(log N), N = geodesic_end(K) M^-1."""
    s = signature.vector(M)
    inverse = s[:, None] * M.mT * s

    def field(K: Tensor) -> Tensor:
        N = geodesic_end(K) @ inverse
        return (N - s[:, None] * N.mT * s) / 2

    found, size = find_zero(field, torch.add, K, s)
    norm = float(torch.linalg.matrix_norm(M))
    if not size <= max(NEAR, 16 * len(s) * unit_roundoff(M) * norm**2):
        return None
    # N = N^-1 has other solutions than I
    off = float(torch.linalg.matrix_norm(geodesic_end(found) - M))
    return found if off <= 1e-3 * norm else None


def polar_logs(M: Tensor, signature: Signature) -> tuple[Tensor, Tensor]:
    """Logarithms of the factors of M = Q P: of the rotation Q and of the boost P."""
    s = signature.vector(M)
    U, sigma, Vh = torch.linalg.svd(M)
    boost = Vh.mT @ (sigma.log()[:, None] * Vh)
    boost = (boost - s[:, None] * boost.mT * s) / 2
    Q = (U @ Vh).numpy()
    turn = np.zeros_like(Q)
    for at in (signature.positive, signature.negative):
        if len(at):
            turn[np.ix_(at, at)] = rotation_log(Q[np.ix_(at, at)])
    return torch.from_numpy(turn), boost


def rotation_log(Q: np.ndarray) -> np.ndarray:
    """A skew logarithm of a rotation (n, n), with angles up to pi, from its real Schur form."""
    from scipy.linalg import schur

    T, Z = schur(Q, output="real")
    log = np.zeros_like(T)
    pairs = np.flatnonzero(np.diag(T, -1))
    for k in pairs:
        log[k + 1, k] = math.atan2(T[k + 1, k] - T[k, k + 1], T[k, k] + T[k + 1, k + 1])
    single = np.setdiff1d(np.arange(len(T)), [*pairs, *(pairs + 1)])
    half_turned = single[np.diag(T)[single] < 0]  # eigenvalues -1, an even number of them
    for i, k in zip(half_turned[::2], half_turned[1::2], strict=False):
        log[k, i] = math.pi
    log = Z @ log @ Z.T
    found: np.ndarray = log - log.T
    return found
