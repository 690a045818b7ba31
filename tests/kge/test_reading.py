"""Files of triples as people have them: headings, commas, packed, one file for all."""

import gzip

import pytest
import torch

from jorth.kge import hierarchy_with_cycles, load_triples
from jorth.kge.graph import ROLES, read_table
from jorth.kge.tables import read_labels
from tests.kge.real_data import graph

BODY = "a\tr\tb\nb\tr\tc\nc\ts\ta\n"
TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]
GOOD = {
    "train": "b\tlikes\ta\na\tlikes\tc\nc\tknows\tb\n",
    "valid": "a\tknows\td\n",
    "test": "e\tlikes\ta\n",
}


def write(folder, suffix=".txt", **parts):
    for part, text in (GOOD | parts).items():
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (folder / f"{part}{suffix}").write_bytes(content)
    return folder


def read(tmp_path, content, name="train.tsv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_table(path, ROLES).itertuples(index=False, name=None))


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


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("headings", [" head\trelation\tTail", "subject\tpredicate\tobject"])
def test_headings_are_recognised(tmp_path, headings, mark):
    graph = load_triples(write(tmp_path, train=f"{mark}{headings}\n{GOOD['train']}"))
    assert graph.entities == ("a", "b", "c", "d", "e")
    assert graph.notes == (
        "the first line of train.txt has headings: " + ", ".join(headings.split()),
    )


@pytest.mark.parametrize("several", [True, False])
def test_headings_in_another_language(tmp_path, several):
    """The first line of every file is the same; of one file, no other line has its names."""
    first = "Kopf\tBeziehung\tEnde\n"
    body = "".join(f"{a}\tr\t{(a + 1) % 30}\n" for a in range(30))
    if several:
        graph = load_triples(write(tmp_path, **{part: first + GOOD[part] for part in GOOD}))
        assert graph.entities == ("a", "b", "c", "d", "e")
        assert len(graph.notes) == 3
    else:
        (tmp_path / "g.tsv").write_text(first + body)
        names = "g.tsv, Kopf, Beziehung, Ende, has names of its own"
        assert names in load_triples(tmp_path / "g.tsv").notes[0]
        (tmp_path / "g.tsv").write_text(body)
        assert "of its own" not in "".join(load_triples(tmp_path / "g.tsv").notes)


@pytest.mark.parametrize("packed", [False, True])
def test_utf_16(tmp_path, packed):
    content = "Köln\tliegt in\tNRW\r\n".encode("utf-16")
    name = "train.txt.gz" if packed else "train.txt"
    assert read(tmp_path, gzip.compress(content) if packed else content, name) == [
        ("Köln", "liegt in", "NRW")
    ]


def test_n_triples(tmp_path):
    """The examples of the standard, and a line that is none."""
    text = (
        "# comment\n<http://e/s> <http://e/p> <http://e/o> . # comment\n\n"
        '_:alice\t<http://e/knows>\t_:bob .\n<http://e/s> <http://e/p> "a . b"@en-GB .\n'
        '<http://e/s> <http://e/p> "1"^^<http://e/integer>.\n'
    )
    assert read(tmp_path, text, "g.nt") == [
        ("http://e/s", "http://e/p", "http://e/o"),
        ("_:alice", "http://e/knows", "_:bob"),
        ("http://e/s", "http://e/p", '"a . b"@en-GB'),
        ("http://e/s", "http://e/p", '"1"^^<http://e/integer>'),
    ]
    with pytest.raises(ValueError, match=r"g.nt, line 2: expected head, relation, tail, got 'a b"):
        read(tmp_path, "<a> <b> <c> .\na b c\n", "g.nt")


def test_quotes(tmp_path):
    text = '"Doe, Jane",knows,"the ""Cat"""\n'
    assert read(tmp_path, text, "train.csv") == [("Doe, Jane", "knows", 'the "Cat"')]
    text = '"Weird Al" Yankovic\tsings\tEat It\n"x"\tsings\ty\n'  # quotes that belong to names
    assert [row[0] for row in read(tmp_path, text)] == ['"Weird Al" Yankovic', '"x"']


@pytest.mark.parametrize("packed", [False, True])
def test_blank_lines_and_windows_ends(tmp_path, packed):
    text = BODY.replace("\n", "\r\n\r\n") + "NA\tnull\t#1\r\n"
    content = gzip.compress(text.encode()) if packed else text.encode()
    found = read(tmp_path, content, "train.tsv.gz" if packed else "train.tsv")
    assert found == [*TRIPLES, ("NA", "null", "#1")]


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({"train": "a\tr\tb\na r b\n"}, ValueError, r"train.txt, line 2: expected head, .*'a r b"),
        ({"train": "a\tr\tb\na\tr\tb\tc\n"}, ValueError, "train.txt cannot be read .*line 2"),
        ({"test": "a,r,b\n"}, ValueError, "test.txt must have lines of head, relation, tail"),
        ({"valid": "a\tlikes\tb\n\na\t\tb\n"}, ValueError, "valid.txt, line 3: expected head"),
        ({"train": b"a\tr\tb\na\tr\t\xff\xfe\n"}, ValueError, "train.txt cannot be read .*utf-8"),
        ({"test": "a\tlikes\tb\na\tloves\tb\n"}, ValueError, "line 2: relation 'loves' is not"),
        ({"valid": ""}, ValueError, "valid.txt cannot be read .*No columns"),
        ({"test": "\t\t\n"}, ValueError, "test.txt must have lines of head, .* got 0 lines"),
        ({"test": None}, FileNotFoundError, "must hold test.txt, test.tsv"),
        ({"train": "a\tr\tb\nb\ts\ta", "valid": None, "test": "a\tr\tb"}, ValueError, "too few"),
    ],
)  # fmt: skip
def test_errors_name_file_and_line(tmp_path, parts, error, message):
    with pytest.raises(error, match=message):
        load_triples(write(tmp_path, **parts))


def test_a_damaged_packed_file_and_no_file(tmp_path):
    (tmp_path / "all.tsv.gz").write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(ValueError, match=r"all.tsv.gz cannot be read"):
        load_triples(tmp_path / "all.tsv.gz")
    with pytest.raises(FileNotFoundError, match="path must be a folder or a file of triples"):
        load_triples(tmp_path / "nothing")


def test_missing_validation_is_held_out_by_seed(tmp_path):
    lines = [f"e{i}\t{'rare' if i == 7 else 'often'}\te{i + 1}\n" for i in range(40)]
    write(tmp_path, train="".join(lines), valid=None, test="e0\trare\te1\n")
    one, again, other = (load_triples(tmp_path, seed=seed) for seed in (0, 0, 1))
    assert (len(one.train), len(one.valid)) == (36, 4)
    assert torch.equal(one.valid, again.valid)
    assert not torch.equal(one.valid, other.valid)
    assert len(torch.unique(torch.cat([one.train, one.valid]), dim=0)) == 40


def test_lines_that_come_twice_count_once(tmp_path):
    lines = [f"e{i}\tr\te{i + 1}\n" for i in range(40)]
    write(tmp_path, train="".join(lines + lines[::-1]), valid=None, test=2 * "e0\tr\te2\n")
    triples = load_triples(tmp_path)
    assert (len(triples.train), len(triples.valid), len(triples.test)) == (36, 4, 1)


def test_one_file_is_split(tmp_path):
    graph = hierarchy_with_cycles(branching=3, depth=3)
    names = (graph.entities, graph.relations, graph.entities)
    rows = (
        "\t".join(own[number] for own, number in zip(names, triple, strict=True))
        for triple in graph.known.tolist()
    )
    (tmp_path / "all.tsv").write_text("\n".join(["head\trelation\ttail", *rows]))
    one, again, other = (load_triples(tmp_path / "all.tsv", seed=seed) for seed in (0, 0, 1))
    assert one.entities == graph.entities
    total = len(graph.known)
    assert abs(len(one.test) - total / 10) <= 1
    assert abs(len(one.valid) - total * 0.09) <= 1
    assert len(torch.unique(one.known, dim=0)) == total == len(one.known)
    assert torch.equal(one.test, again.test)
    assert not torch.equal(one.test, other.test)
    headings, split = one.notes
    assert headings == "the first line of all.tsv has headings: head, relation, tail"
    assert split == (
        f"held out of all.tsv with seed 0: {len(one.test)} test and {len(one.valid)} valid triples"
    )


def test_labels(tmp_path):
    path = tmp_path / "lines.tsv"
    path.write_text("\ufeffa\tplant\n\nb\t 3 \n")
    assert read_labels(path) == {"a": "plant", "b": "3"}
    path.write_text("a\t1\nb\t2.5\n")
    assert read_labels(path) == {"a": 1.0, "b": 2.5}
    path.write_text("a\n")
    with pytest.raises(ValueError, match="must have lines of entity, label separated by tabs"):
        read_labels(path)


@pytest.mark.parametrize("mark", ["\u2028", "\u0085", "\x0b", "\x1c", "\r"])
def test_names_with_breaks_of_lines(mark, tmp_path):
    """Only a line feed ends a line."""
    name = f"a{mark}b"
    write(tmp_path, **dict.fromkeys(GOOD, f"{name}\tr\tc\r\nc\tr\t{name}\n"))
    assert load_triples(tmp_path).entities == (name, "c")


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
    parts = (triples.entities, triples.relations, triples.train, triples.valid, triples.test)
    assert tuple(map(len, parts)) == sizes
