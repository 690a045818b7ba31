"""Plane rotations by given angles: each is the exponential of its generator; and their order."""

import mpmath as mp
import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim.jobcd import (
    SHUFFLES,
    codes_of_step,
    couples,
    pair_codes,
    pairs_of_step,
    rotate_rows,
    rounds_of_step,
)

UNIT = 2.0**-53
SIGNS = Signature.of([1, -1, 1, 1, -1])


def rotated(X, angles, signature, rounds):
    codes = torch.from_numpy(pair_codes(signature.signs, rounds)).to(X.device)
    return rotate_rows(X, angles, signature.vector(angles), codes)


def skew(rng, shape, size):
    """Skew matrices with entries up to ``size``."""
    upper = np.triu(rng.uniform(-size, size, shape), 1)
    return torch.from_numpy(upper - upper.swapaxes(-2, -1))


def exact(X, angles, signature, rounds):
    """The product of exp(-J K) over the planes, times X, in 50 digits; and the product of norms."""
    signs = signature.signs.tolist()
    with mp.workdps(50):
        product, growth = mp.matrix(X.tolist()), mp.mpf(1)
        for i, j in rounds.reshape(-1, 2).tolist():
            a = mp.mpf(float(angles[i, j]))
            cosine, sine = (mp.cos, mp.sin) if signs[i] == signs[j] else (mp.cosh, mp.sinh)
            c, s = cosine(a), sine(a)
            for k in range(product.cols):
                x, y = product[i, k], product[j, k]
                product[i, k] = c * x - signs[i] * s * y
                product[j, k] = c * y + signs[j] * s * x
            growth *= mp.exp(abs(a)) if signs[i] != signs[j] else 1
        return torch.tensor(np.array(product.tolist(), dtype=float)), float(growth)


def check_rotations(device, columns, size):
    rng = np.random.default_rng(3)
    rounds = couples(5, seed=1)
    angles = skew(rng, (2, 5, 5), size)
    angles[1] = 0.0
    angles[1, 4, 0], angles[1, 0, 4] = size, -size
    X = torch.from_numpy(rng.standard_normal((2, 5, columns)))
    moved = rotated(X.to(device), angles.to(device), SIGNS, rounds).cpu()
    for found, before, theta in zip(moved, X, angles, strict=True):
        expected, growth = exact(before, theta, SIGNS, rounds)
        rounding = 40 * rounds.size * UNIT * growth * float(before.norm())
        assert (found - expected).abs().max() <= rounding
        change = (found - expected).abs().max() / (expected - before).abs().max()
        assert size != 1e-9 or change <= 1e-6  # an error in the angles would hide in rounding


@pytest.mark.parametrize("size", [1e-300, 1e-9, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("columns", [5, 2, 19])
def test_rotations_are_exponentials(columns, size):
    check_rotations("cpu", columns, size)


@pytest.mark.gpu
@pytest.mark.parametrize("columns", [5, 2, 19])
def test_rotations_on_a_device(columns):
    check_rotations("cuda", columns, 1.0)


@pytest.mark.parametrize("n", [2, 7, 8, 10])
def test_codes_and_pairs_are_the_rounds_which_recur(n):
    sig = Signature.of([1, -1, 1, 1, -1, 1, 1, 1, -1, 1][:n])
    X = torch.nn.Parameter(torch.eye(n))
    (group,) = jorth.optim.JOBCD([X], sig, seed=3).param_groups
    tables = [rounds_of_step(group | {"turn": turn}) for turn in (5, 5 + SHUFFLES, 6)]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert n == 2 or (tables[0] != tables[2]).any()
    codes = codes_of_step(group | {"turn": 5}, torch.device("cpu")).numpy()
    for turn, rounds in enumerate(tables[0]):
        pairs = [(i, j) for i, j in rounds if i != j]
        alone = set(range(n)) - {i for pair in pairs for i in pair}
        assert len(alone) == n - 2 * len(pairs)
        assert all(codes[turn, i] == i for i in alone)
        for i, j in pairs:
            opposite = sig.signs[i] != sig.signs[j]
            assert codes[turn, i] == (-1 - j if opposite else j)
            assert codes[turn, j] == (-1 - i if opposite else i)

    # an order that changes nothing: every row meets its partners in the order of the rounds
    order = pairs_of_step(group | {"turn": 5}).tolist()
    assert len(order) == n * (n - 1) // 2
    for i in range(n):
        met = [sum(pair) - i for pair in order if i in pair]
        assert met == [sum(pair) - i for pair in tables[0].reshape(-1, 2) if (pair == i).sum() == 1]


def test_random_rounds_differ_from_step_to_step_and_with_the_seed():
    X = torch.nn.Parameter(torch.eye(6))
    (group,) = jorth.optim.JOBCD([X], Signature(6, 0), rounds_per_gradient=2).param_groups
    rounds = [rounds_of_step(group | change) for change in ({}, {"turn": 1}, {"seed": 1})]
    assert all(sorted(own.flatten()) == list(range(6)) for own in np.concatenate(rounds))
    assert len({own.tobytes() for own in rounds}) == 3
