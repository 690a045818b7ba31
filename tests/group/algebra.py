"""Elements of the Lie algebra {K : J K skew}, their exponentials at 60 digits, and conditions."""

import mpmath
import numpy as np
import torch

from jorth.group.geodesics import algebra_basis


def random_algebra(sig, seed, size=1.0):
    """A random K with ||K||_F = size, or 0 where the algebra is trivial."""
    M = np.random.default_rng(seed).standard_normal((sig.n, sig.n))
    K = sig.signs[:, None] * (M - M.T)
    return K * (size / max(np.linalg.norm(K), 1e-300))


def boost(sig, seed, size):
    """A random symmetric K with ||K||_2 = size."""
    K = random_algebra(sig, seed)
    K = K + K.T
    return K * (size / np.linalg.norm(K, 2))


def exact_exp(K):
    """exp(K), rounded from 60 digits."""
    with mpmath.workdps(60):
        return np.array(mpmath.expm(mpmath.matrix(K.tolist())).tolist(), dtype=float)


def log_condition(K, sig):
    """How much longer a change of K may be than that of exp(K) within the group."""
    K = torch.from_numpy(K)
    basis = algebra_basis(sig.vector(K))
    moves = [torch.func.jvp(torch.linalg.matrix_exp, (K,), (one,))[1].flatten() for one in basis]
    return 1 / float(torch.linalg.svdvals(torch.stack(moves))[-1]) if moves else 1.0
