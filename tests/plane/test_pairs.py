"""Matchings, tournaments and their tables."""

import itertools

import numpy as np
import pytest
import torch

from jorth.plane import all_pairs, random_matching, random_pairs, tournament
from jorth.plane.pairs import round_tables

SIZES = [2, 3, 6, 7, 50, 51]


def as_set(pairs):
    return {tuple(sorted(map(int, pair))) for pair in pairs}


def assert_matching(pairs, n):
    assert pairs.shape == (n // 2, 2)
    assert len(set(np.asarray(pairs).ravel().tolist())) == 2 * (n // 2)
    assert set(np.asarray(pairs).ravel().tolist()) <= set(range(n))


def test_random_matching_is_uniform():
    """The three matchings of four indices, each with probability 1/3;
    and the index that rests, each 1/5."""
    rng = np.random.default_rng(0)
    counts = {}
    for _ in range(3000):
        key = frozenset(as_set(random_matching(4, seed=rng)))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 3
    assert all(abs(count - 1000) < 130 for count in counts.values())
    everyone = set(range(5))
    rests = [
        (everyone - set(random_matching(5, seed=rng).ravel().tolist())).pop() for _ in range(2000)
    ]
    assert all(abs(rests.count(i) - 400) < 90 for i in range(5))


def test_random_pairs_are_uniform_over_different_indices():
    pairs = random_pairs(4, 24_000, seed=3)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = [
        int(((pairs == (i, j)).all(axis=1)).sum()) for i, j in itertools.permutations(range(4), 2)
    ]
    assert all(abs(count - 2000) < 220 for count in counts)


@pytest.mark.parametrize("n", SIZES)
def test_schedules(n):
    """Every pair once, in order without a seed; the same seed gives the same pairs."""
    everything = set(itertools.combinations(range(n), 2))
    assert_matching(random_matching(n, seed=1), n)
    assert list(map(tuple, all_pairs(n).tolist())) == sorted(everything)
    for seed in (None, 4, 5):
        rounds, pairs = tournament(n, seed=seed), all_pairs(n, seed=seed)
        assert len(rounds) == (n if n % 2 else n - 1)
        for matching in rounds:
            assert_matching(matching, n)
        assert as_set(rounds.reshape(-1, 2)) == as_set(pairs) == everything
        assert len(pairs) == len(everything)
        np.testing.assert_array_equal(tournament(n, seed=seed), rounds)
        np.testing.assert_array_equal(all_pairs(n, seed=seed), pairs)
    np.testing.assert_array_equal(random_matching(n, seed=1), random_matching(n, seed=1))


def test_seeds_shuffle():
    rounds = {frozenset(frozenset(as_set(r)) for r in tournament(8, seed=s)) for s in range(4)}
    assert len(rounds) == 4  # other matchings, not only another order of the same
    assert (all_pairs(8, seed=5) != all_pairs(8, seed=4)).any()


def test_tables_hold_every_index_once_and_the_resting_one_alone():
    rounds = np.array([[[5, 1], [2, 6], [0, 3]]])
    first, second, partner = round_tables(7, rounds, torch.device("cpu"))
    assert first.tolist() == [[0, 1, 2, 4]]
    assert second.tolist() == [[3, 5, 6, 4]]
    assert partner.tolist() == [[3, 5, 6, 0, 4, 1, 2]]
