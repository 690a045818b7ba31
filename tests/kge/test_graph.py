from collections import Counter

import numpy as np
import pytest
import torch

from jorth._inputs import generator
from jorth.kge import Triples, hierarchy_with_cycles, hold_out, load_triples
from jorth.kge.graph import Known
from tests.kge.models import random_triples
from tests.kge.real_data import graph

GOOD = {
    "train": "b\tlikes\ta\na\tlikes\tc\nc\tknows\tb\n",
    "valid": "a\tknows\td\n",
    "test": "e\tlikes\ta\n",
}


def write(folder, suffix=".txt", **parts):
    for part, text in (GOOD | parts).items():
        if text is not None:
            (folder / f"{part}{suffix}").write_bytes(
                text if isinstance(text, bytes) else text.encode()
            )
    return folder


@pytest.mark.parametrize("suffix", [".txt", ".tsv"])
def test_names_become_numbers(tmp_path, suffix):
    triples = load_triples(write(tmp_path, suffix))
    assert triples.entities == ("a", "b", "c", "d", "e")  # d and e are unseen in training, and kept
    assert triples.relations == ("knows", "likes")
    assert triples.train.tolist() == [[1, 1, 0], [0, 1, 2], [2, 0, 1]]
    assert triples.valid.tolist() == [[0, 0, 3]]
    assert triples.test.tolist() == [[4, 1, 0]]
    assert triples.known.shape == (5, 3)
    assert "5 entities, 2 relations: 3 train, 1 valid, 1 test" in repr(triples)


def test_blank_lines_byte_order_mark_and_windows_ends(tmp_path):
    write(tmp_path, train=b"\xef\xbb\xbfb\tlikes\ta\r\n\r\na\tknows\tz\xc3\xbc\r\n\n")
    triples = load_triples(tmp_path)
    assert triples.entities == ("a", "b", "d", "e", "z\u00fc")
    assert triples.train.tolist() == [[1, 1, 0], [0, 0, 4]]


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"train": "a\tr\tb\na r b\n"}, ValueError, r"line 2: .*got 'a r b', with spaces instead"),
        ({"train": "a\tr\tb\na\tr\tb\tc\n"}, ValueError, "train.txt, line 2: expected three"),
        ({"test": "\ta\tlikes\n"}, ValueError, r"test.txt, line 1: expected three names"),
        ({"valid": "a\tlikes\tb\n\na\t\tb\n"}, ValueError, "valid.txt, line 3: expected three"),
        ({"train": b"a\tr\tb\na\tr\t\xff\xfe\n"}, ValueError, r"train.txt, line 2: not UTF-8"),
        ({"test": "a\tlikes\tb\na\tloves\tb\n"}, ValueError, "line 2: relation 'loves' is not"),
        ({"valid": "a\tloves\tb\n"}, ValueError, r"valid.txt, line 1: relation 'loves'"),
        ({"valid": ""}, ValueError, r"valid.txt is empty: expected three names"),
        ({"train": "\n\n"}, ValueError, r"train.txt is empty"),
        ({"test": ""}, ValueError, r"test.txt is empty"),
        ({"test": None}, FileNotFoundError, r"must hold test.txt or test.tsv"),
        ({"train": None}, FileNotFoundError, r"must hold train.txt or train.tsv"),
        ({"train": "a\tr\tb\nb\ts\ta", "valid": None, "test": "a\tr\tb"}, ValueError, "too few"),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path, parts, error, message):
    with pytest.raises(error, match=message):
        load_triples(write(tmp_path, **parts))


def test_missing_validation_is_held_out_by_seed(tmp_path):
    lines = [f"e{i}\t{'rare' if i == 7 else 'often'}\te{i + 1}\n" for i in range(40)]
    write(tmp_path, train="".join(lines), valid=None, test="e0\trare\te1\n")
    one, again, other = (load_triples(tmp_path, seed=seed) for seed in (0, 0, 1))
    assert (len(one.train), len(one.valid)) == (36, 4)
    assert torch.equal(one.valid, again.valid)
    assert not torch.equal(one.valid, other.valid)
    together = torch.cat([one.train, one.valid])
    assert len(torch.unique(together, dim=0)) == 40
    for seed in range(20):  # the only triple of a relation is never held out
        assert 1 in load_triples(tmp_path, seed=seed).train[:, 1]


def test_hold_out_keeps_the_order():
    train = torch.stack([torch.arange(50), torch.arange(50) % 3, torch.arange(50)], dim=1)
    kept, held = hold_out(train, share=0.3, seed=1)
    assert len(held) == 15
    assert (kept[:, 0].diff() > 0).all()
    assert (held[:, 0].diff() > 0).all()


def together(*parts):
    return Counter(tuple(triple) for part in parts for triple in part.tolist())


@pytest.mark.parametrize("share", [0.1, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_identical_triples_are_held_out_together(seed, share):
    """Every triple once, twice or three times, mixed."""
    once = torch.unique(random_triples(100, 12, 3, seed=seed), dim=0)
    copies = torch.from_numpy(np.random.default_rng(seed).integers(1, 4, size=len(once)))
    train = once.repeat_interleave(copies, dim=0)
    train = train[torch.from_numpy(np.random.default_rng(seed + 1).permutation(len(train)))]
    kept, held = hold_out(train, share=share, seed=seed)
    assert not set(together(kept)) & set(together(held))
    assert together(kept, held) == together(train)
    assert len(held) == round(share * len(train))  # there are triples that come once to fill up
    assert set(kept[:, 1].tolist()) == set(train[:, 1].tolist())


def test_hold_out_of_copies_is_as_near_as_can_be():
    """All triples twice: an odd number cannot be held out, and less than two neither."""
    once = torch.stack([torch.arange(20), torch.zeros(20, dtype=torch.int64), torch.arange(20)], 1)
    train = torch.cat([once, once])
    for share, found in ((0.01, {2}), (0.1, {4}), (0.12, {4, 6}), (0.9, {36})):
        kept, held = hold_out(train, share=share)
        assert len(held) in found
        assert not set(together(kept)) & set(together(held))
    for share, found in ((4 / 60, 3), (5 / 60, 6), (6 / 60, 6)):  # all triples three times
        assert len(hold_out(once.repeat(3, 1), share=share)[1]) == found
    # the only triple of its relation stays, however often it comes
    with pytest.raises(ValueError, match="40 triples, too few to hold 39 out and keep every"):
        hold_out(train, share=0.97)
    with pytest.raises(ValueError, match="2 triples, too few to hold 1 out"):
        hold_out(train[[0, 0]])
    with pytest.raises(ValueError, match="train has 0 triples, too few"):
        hold_out(train[:0])


def test_triples_held_out_once_are_those_of_before():
    """Without copies the split is the seed's permutation, relations kept."""
    train = torch.unique(random_triples(60, 20, 2), dim=0)
    order = generator(3).permutation(len(train))
    stay = [next(k for k in order if train[k, 1] == r) for r in (0, 1)]
    free = [k for k in order if k not in stay]
    expected = sorted(free[: round(0.2 * len(train))])
    assert torch.equal(hold_out(train, share=0.2, seed=3)[1], train[expected])


def test_lines_that_come_twice_count_once(tmp_path):
    lines = [f"e{i}\tr\te{i + 1}\n" for i in range(40)]
    write(tmp_path, train="".join(lines + lines[::-1]), valid=None, test=2 * "e0\tr\te2\n")
    triples = load_triples(tmp_path)
    assert (len(triples.train), len(triples.valid), len(triples.test)) == (36, 4, 1)
    assert triples.leaks()["valid"] == {"identical": 0, "reversed": 0}


SMALL = {
    "entities": ("a", "b", "c"),
    "relations": ("r",),
    "train": torch.tensor([[0, 0, 1], [1, 0, 2], [2, 0, 2]]),
    "valid": torch.tensor([[0, 0, 1]]),
    "test": torch.tensor([[1, 0, 0], [2, 0, 1], [0, 0, 2], [2, 0, 2]]),
}


@pytest.mark.parametrize(
    ("part", "value", "error", "message"),
    [
        ("train", SMALL["train"].int(), TypeError, r"train must be an int64 tensor \(N, 3\), got"),
        ("valid", torch.zeros(2, 4, dtype=torch.int64), TypeError, r"valid must .*shape \(2, 4\)"),
        ("test", [[0, 1]], TypeError, "test must be an int64 tensor .*got list"),
        ("test", SMALL["test"].to("meta"), TypeError, "test must be an int64 tensor"),
        ("train", torch.tensor([[0, 0, 3]]), ValueError, "entities of train must be from 0 to 2"),
        ("test", torch.tensor([[0, -1, 1]]), ValueError, "relations of test must be from 0 to 0"),
        ("valid", torch.tensor([[0, 1, 1]]), ValueError, "relations of valid must be .*got 1 to 1"),
        ("train", SMALL["train"][:0], ValueError, "train must hold at least one triple, got none"),
        ("entities", ("a", "b", "a"), ValueError, "entities must have distinct .*got 'a' 2 times"),
        ("relations", (1,), TypeError, r"relations must be a tuple of names, got \(1,\)"),
        ("relations", "r", TypeError, "relations must be a tuple of names, got 'r'"),
    ],
)  # fmt: skip
def test_graphs_are_checked(part, value, error, message):
    with pytest.raises(error, match=message):
        Triples(**SMALL | {part: value})


def test_validation_and_test_may_be_empty():
    triples = Triples(**SMALL | {"valid": SMALL["valid"][:0]})
    triples.require("train", "test")
    with pytest.raises(ValueError, match="valid must hold at least one triple, got none"):
        triples.require("train", "valid")
    assert triples.leaks()["valid"] == {"identical": 0, "reversed": 0}


def test_names_in_a_list_become_a_tuple():
    assert Triples(**SMALL | {"relations": ["r"]}).relations == ("r",)


def test_leaks_by_hand():
    """The loop (2, 0, 2) is its own reverse."""
    assert Triples(**SMALL).leaks() == {
        "valid": {"identical": 1, "reversed": 0},
        "test": {"identical": 1, "reversed": 3},
    }


def test_leaks_by_brute_force():
    parts = [random_triples(count, 7, 3, seed=seed) for seed, count in enumerate((60, 30, 40))]
    found = Triples(tuple("abcdefg"), tuple("rst"), *parts).leaks()
    seen = {tuple(triple) for triple in parts[0].tolist()}
    for part, triples in (("valid", parts[1]), ("test", parts[2])):
        same = sum((h, r, t) in seen for h, r, t in triples.tolist())
        back = sum((t, r, h) in seen for h, r, t in triples.tolist())
        assert found[part] == {"identical": same, "reversed": back}


def test_generated_graph():
    graph = hierarchy_with_cycles(branching=3, depth=3, seed=0)
    names = {
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for h, r, t in graph.known.tolist()
    }
    assert len(graph.entities) == 1 + 3 + 9 + 27
    assert len(names) == len(graph.known)
    assert ("0.1.2", "parent", "0.1") in names
    assert ("0.1.2", "ancestor", "0") in names
    assert ("0.1.2", "ancestor", "0.1") not in names
    assert ("0.1.2", "next", "0.2.0") in names
    assert ("0.2.2", "next", "0.0.0") in names
    assert ("0.1.2", "second_next", "0.2.1") in names
    inferred = {graph.relations.index("ancestor"), graph.relations.index("second_next")}
    assert set(torch.cat([graph.valid, graph.test])[:, 1].tolist()) <= inferred
    assert (
        len(graph.valid) == len(graph.test) == 10
    )  # a tenth of 9 + 2 * 27 ancestors and 39 second neighbours
    again, other = (
        hierarchy_with_cycles(branching=3, depth=3),
        hierarchy_with_cycles(branching=3, depth=3, seed=1),
    )
    assert torch.equal(again.test, graph.test)
    assert not torch.equal(other.test, graph.test)


def test_known_answers_by_brute_force():
    triples = random_triples(80, 9, 4)
    known = Known(triples, 9, 4)
    facts = {tuple(row) for row in triples.tolist()}
    anchor, code = (
        grid.ravel() for grid in torch.meshgrid(torch.arange(9), torch.arange(8), indexing="ij")
    )
    queries = torch.stack([anchor, code], dim=1).tolist()
    expected = torch.tensor(
        [[(a, c, x) in facts or (x, c - 4, a) in facts for x in range(9)] for a, c in queries]
    )
    assert torch.equal(known.contains(anchor, code, torch.arange(9)), expected)
    found = torch.zeros_like(expected)
    rows, answers = known.answers(anchor, code)
    found[rows, answers] = True
    assert torch.equal(found, expected)
    assert len(rows) == expected.sum()


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("WN18RR", (40943, 11, 86835, 3034, 3134)),
        ("FB15k-237", (14541, 237, 272115, 17535, 20466)),
        ("WN18RR-mini", (208, 5, 494, 55, 234)),
        ("FB15k-237-mini", (135, 20, 633, 70, 300)),
    ],
)
def test_real_graphs(name, sizes):
    triples = graph(name)
    found = (
        len(triples.entities),
        len(triples.relations),
        len(triples.train),
        len(triples.valid),
        len(triples.test),
    )
    assert found == sizes
    if name == "WN18RR":
        seen = torch.zeros(len(triples.entities), dtype=torch.bool)
        seen[triples.train[:, [0, 2]].ravel()] = True
        for part in (triples.valid, triples.test):
            assert (~seen[part[:, [0, 2]]]).any(dim=1).sum() == 210
