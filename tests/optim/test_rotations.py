"""Turns by given angles: products of plane exponentials, in any precision and on any side."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from jorth.optim.rotations import torch_turned
from jorth.optim.rounds import SHUFFLES, numbered_rounds, pair_codes
from jorth.plane.pairs import rounds_in_tournament
from tests.optim.rotations import check_turns, problem, product_of_turns


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("n", "k"), [(2, 2), (4, 4), (7, 7), (8, 3), (33, 33)])
@pytest.mark.parametrize("largest", [0.05, 1.5])
def test_rounds_in_torch_are_products_of_turns(n, k, dtype, largest):
    check_turns(torch_turned, "cpu", n, k, b=2, dtype=dtype, largest=largest)


@pytest.mark.gpu
@pytest.mark.parametrize("b", [1, 1000])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("n", "k"), [(4, 4), (8, 8), (33, 33), (64, 64), (100, 30), (128, 128), (200, 200), (256, 256)]
)
def test_rounds_in_one_launch_are_products_of_turns(n, k, b, dtype):
    from jorth.optim.rotations import triton_turned

    check_turns(triton_turned, "cuda", n, k, b=b if n < 100 else min(b, 20), dtype=dtype)


def test_many_steps_stay_on_the_group():
    sig, X, codes, factors, angles, rounds = problem(9, 9, 2, torch.float64, 0.4)
    X = torch.eye(9, dtype=torch.float64).repeat(2, 1, 1)
    even, odd = factors
    largest = 1.0
    for _ in range(50):
        X = torch_turned(X, codes, even, odd)
        largest = max(largest, float(X.norm()))
        X = torch_turned(X, codes.flip(0), even.flip(1), -odd.flip(1))  # and back again
    assert largest > 3
    assert jorth.residual(X, sig).max() <= 50 * 9 * 2.0**-53 * largest**2
    torch.testing.assert_close(
        X[0], torch.eye(9, dtype=torch.float64), rtol=0, atol=1e-11 * largest**2
    )
    assert np.isfinite(product_of_turns(angles, sig, rounds).numpy()).all()


@pytest.mark.parametrize("n", [2, 7, 8])
def test_codes_are_the_rounds_which_recur(n):
    sig = Signature.of([1, -1, 1, 1, -1, 1, 1, 1][:n])
    length = rounds_in_tournament(n)
    tables = [numbered_rounds(n, "tournament", length, 3, turn) for turn in (5, 5 + SHUFFLES, 6)]
    np.testing.assert_array_equal(tables[0], tables[1])
    assert n == 2 or (tables[0] != tables[2]).any()
    codes = pair_codes(sig.signs, tables[0])
    for turn, pairs in enumerate(tables[0]):
        alone = set(range(n)) - set(pairs.reshape(-1).tolist())
        assert all(codes[turn, i] == i for i in alone)
        for i, j in pairs:
            opposite = sig.signs[i] != sig.signs[j]
            assert codes[turn, i] == (-1 - j if opposite else j)
            assert codes[turn, j] == (-1 - i if opposite else i)
