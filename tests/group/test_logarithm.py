"""The logarithm: inverse of exp to rounding, against mpmath, derivatives, where there is none."""

import numpy as np
import pytest
import torch

from jorth import Signature, exp, log
from tests.group.algebra import boost, exact_exp, log_condition, random_algebra
from tests.group.strategies import UNIT

SIGS = [
    Signature(3, 1),
    Signature.of([1, -1, 1, -1, -1]),
    Signature(3, 3),
    Signature(4, 0),
    Signature(0, 3),
    Signature(1, 0),
]


def within_domain(K, largest=3.0):
    """K, made shorter where an angle exceeds what the principal logarithm can return."""
    angle = np.abs(np.linalg.eigvals(K).imag).max()
    return K * min(1.0, largest / max(angle, 1e-300))


def error_bound(K, X, sig):
    """n u ||X|| times the condition, and 1 / cos(angle / 2) for I + X near singular.

    The largest ratio in 500 cases was 2.
    """
    angle = np.abs(np.linalg.eigvals(K).imag).max()
    condition = log_condition(K, sig) / np.cos(angle / 2)
    return 20 * sig.n * UNIT * np.linalg.norm(X, 2) * condition


@pytest.mark.parametrize("sig", SIGS, ids=str)
@pytest.mark.parametrize("size", [0.01, 0.3, 1.0, 4.0, 9.0])
def test_log_is_the_inverse_of_exp(sig, size):
    for seed in range(4):
        K = within_domain(random_algebra(sig, seed, size))
        X = exact_exp(K)
        found = log(X, sig)
        assert np.linalg.norm(found - K) <= error_bound(K, X, sig)
        JK = sig.signs[:, None] * found
        assert np.array_equal(JK, -JK.T)


@pytest.mark.parametrize("sig", [Signature(3, 1), Signature(2, 3)], ids=str)
@pytest.mark.parametrize("size", [9.0, 14.0, 16.0])
def test_large_boosts_lose_digits_like_their_norm(sig, size):
    """The norm is 1e6 at 14, and scipy.linalg.logm has an error of 2e-6 there, this one 1e-10."""
    K = boost(sig, 1, size)
    X = exact_exp(K)
    assert np.linalg.norm(log(X, sig) - K) <= 20 * sig.n * UNIT * np.linalg.norm(X, 2)


@pytest.mark.parametrize("gap", [1e-1, 1e-3, 1e-6, 1e-7])
def test_near_half_turns_lose_digits_like_the_gap(gap):
    sig = Signature(3, 0)
    K = random_algebra(sig, 2)
    K *= (np.pi - gap) / np.abs(np.linalg.eigvals(K)).max()
    assert np.linalg.norm(log(exact_exp(K), sig) - K) <= 20 * sig.n * UNIT * 2 / gap


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e-6])
def test_short_ones_keep_all_digits(size):
    sig = Signature(3, 2)
    K = random_algebra(sig, 3, size)
    found = log(exact_exp(K), sig)
    assert np.linalg.norm(found - K) <= 10 * sig.n * UNIT * size


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_batches_of_all_sizes_are_what_each_is_alone(dtype):
    sig = Signature.of([1, -1, 1, 1, -1])
    K = [within_domain(random_algebra(sig, seed, 10.0 ** (seed - 5))) for seed in range(6)]
    X = torch.stack([torch.from_numpy(exact_exp(one)) for one in K]).to(dtype).reshape(2, 3, 5, 5)
    found = log(X, sig)
    assert found.dtype == dtype
    assert found.shape == (2, 3, 5, 5)
    for row in range(2):
        for column in range(3):
            alone = log(X[row, column], sig)
            size = alone.norm() * float(X[row, column].norm()) ** 2
            eps = torch.finfo(dtype).eps
            assert torch.linalg.norm(found[row, column] - alone) <= 50 * eps * size
    assert log(torch.empty(0, 5, 5, dtype=dtype), sig).shape == (0, 5, 5)


@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 4.0])
def test_derivatives(size):
    """Along the group, where they are defined; both orders."""
    sig = Signature.of([1, -1, 1])
    X = exp(torch.from_numpy(within_domain(random_algebra(sig, 4, size))), sig)
    signs = sig.vector(X)[:, None]
    start = torch.zeros(3, 3, dtype=torch.float64, requires_grad=True)

    def moved(M):
        return log(exp(signs * (M - M.mT) / 2, sig) @ X, sig)

    assert torch.autograd.gradcheck(moved, (start,), atol=1e-7)
    assert torch.autograd.gradgradcheck(moved, (start,), atol=1e-6)


def test_where_there_is_none():
    sig = Signature(2, 2)
    with pytest.raises(ValueError, match=r"identity component .*got component \(1, -1\)"):
        log(np.diag([1.0, 1.0, -1.0, 1.0]), sig)
    with pytest.raises(ValueError, match=r"negative real axis .*got -1 \(a half turn\)$"):
        log(-np.eye(2), Signature(2, 0))
    with pytest.raises(ValueError, match="X must be J-orthogonal"):
        log(2 * np.eye(4), sig)
    near_half_turn = random_algebra(Signature(3, 0), 2)
    near_half_turn *= (np.pi - 1e-11) / np.abs(np.linalg.eigvals(near_half_turn)).max()
    with pytest.raises(ValueError, match="half of its digits"):  # its eigenvalues are not negative
        log(exact_exp(near_half_turn), Signature(3, 0))
    c = np.cosh(20.0)
    s = np.nextafter(c, np.inf)  # sinh, but for the last digit
    with pytest.raises(ValueError, match=r"negative real axis .*\(zero to rounding: \|\|X\|\|_2 ="):
        log([[c, s], [s, c]], Signature(1, 1))
