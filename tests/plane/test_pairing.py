import itertools

import numpy as np
import pytest
import torch

from jorth.plane import all_pairs, greedy_matching, random_matching, random_pairs, tournament

SIZES = [2, 3, 6, 7, 50, 51]


def as_set(pairs):
    return {tuple(sorted(map(int, pair))) for pair in pairs}


def assert_matching(pairs, n):
    assert pairs.shape == (n // 2, 2)
    assert len(set(np.asarray(pairs).ravel().tolist())) == 2 * (n // 2)
    assert set(np.asarray(pairs).ravel().tolist()) <= set(range(n))


@pytest.mark.parametrize("n", SIZES)
def test_random_matching(n):
    assert_matching(random_matching(n, seed=1), n)
    np.testing.assert_array_equal(random_matching(n, seed=1), random_matching(n, seed=1))


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
    rests = [
        (set(range(5)) - set(random_matching(5, seed=rng).ravel().tolist())).pop()
        for _ in range(2000)
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
def test_all_pairs(n):
    everything = set(itertools.combinations(range(n), 2))
    ordered, shuffled = all_pairs(n), all_pairs(n, seed=4)
    assert list(map(tuple, ordered.tolist())) == sorted(everything)
    assert as_set(shuffled) == everything
    assert len(shuffled) == len(everything)
    if n > 3:
        assert (shuffled != ordered).any()
        assert (all_pairs(n, seed=5) != shuffled).any()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("seed", [None, 0])
def test_tournament_holds_every_pair_once(n, seed):
    rounds = tournament(n, seed=seed)
    assert len(rounds) == (n if n % 2 else n - 1)
    for pairs in rounds:
        assert_matching(pairs, n)
    assert as_set(rounds.reshape(-1, 2)) == set(itertools.combinations(range(n), 2))


def test_tournament_is_shuffled_by_seed():
    rounds = {
        frozenset(frozenset(as_set(r)) for r in tournament(8, seed=seed)) for seed in range(4)
    }
    assert len(rounds) == 4  # other matchings, not only another order of the same
    assert (tournament(8, seed=1) == tournament(8, seed=1)).all()


def greedy_by_sorting(weights):
    n = len(weights)
    edges = sorted(itertools.combinations(range(n), 2), key=lambda pair: -weights[pair])
    used, chosen = set(), set()
    for pair in edges:
        if not used & set(pair):
            used |= set(pair)
            chosen.add(pair)
    return chosen


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_greedy_matching_equals_the_sorted_one(n, kind):
    W = np.random.default_rng(n).random((n, n))
    W = W + W.T
    W -= 3 * (n % 2)  # negative weights too
    np.fill_diagonal(W, 100.0)  # ignored
    pairs = greedy_matching(W if kind == "numpy" else torch.from_numpy(W), seed=0)
    assert isinstance(pairs, np.ndarray if kind == "numpy" else torch.Tensor)
    assert as_set(pairs) == greedy_by_sorting(W)


@pytest.mark.parametrize("n", SIZES)
def test_greedy_matching_with_equal_weights_is_a_matching_by_seed(n):
    W = np.zeros((n, n))
    assert_matching(greedy_matching(W, seed=1), n)
    np.testing.assert_array_equal(greedy_matching(W, seed=1), greedy_matching(W, seed=1))
    if n > 6:
        assert as_set(greedy_matching(W, seed=1)) != as_set(greedy_matching(W, seed=2))


def test_greedy_matching_of_a_chain_and_of_sums():
    """Weights that give one mutual pair a round: the rest is sorted."""
    n = 300
    chain = np.diag(np.arange(1.0, n), 1)
    assert as_set(greedy_matching(chain, seed=0)) >= {(n - 2, n - 1), (n - 4, n - 3)}
    a = np.random.default_rng(1).random(n)
    assert as_set(greedy_matching(a[:, None] + a, seed=0)) == greedy_by_sorting(a[:, None] + a)


def test_greedy_matching_of_asymmetric_weights_takes_the_larger():
    cycle = np.array([[0, 2.0, 1], [1, 0, 2.5], [2, 1, 0]])
    assert as_set(greedy_matching(cycle, seed=0)) == {(1, 2)}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_matching(4.0, seed=0), TypeError, "n must be an integer, got 4.0"),
        (
            lambda: random_matching(4, seed=None),
            TypeError,
            "seed must be an integer of at least 0 or a NumPy generator",
        ),
        (lambda: random_pairs(4, -1, seed=0), ValueError, "count must be at least 0, got -1"),
        (lambda: random_matching(1, seed=0), ValueError, "n must be at least 2, got 1"),
        (lambda: tournament(0), ValueError, "n must be at least 2"),
        (
            lambda: greedy_matching(np.zeros((2, 3)), seed=0),
            ValueError,
            "weights must have shape \\(n, n\\)",
        ),
        (
            lambda: greedy_matching(np.full((2, 2), np.nan), seed=0),
            ValueError,
            "weights must not be NaN",
        ),
        (
            lambda: greedy_matching(np.zeros((3, 3), bool), seed=0),
            TypeError,
            "weights must hold real numbers",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()
