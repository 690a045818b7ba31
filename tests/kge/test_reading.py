"""Files of triples as people have them: headings, commas, quotes, packed, one file for all."""

import gzip

import pytest
import torch

from jorth.kge import CSVLog, hierarchy_with_cycles, lines, load_triples, read_config
from jorth.kge.lines import columns_of, read_lines
from jorth.kge.tables import read_queries

BODY = "a\tr\tb\nb\tr\tc\nc\ts\ta\n"
TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]


def read(tmp_path, content, name="train.tsv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found = read_lines(path, **options)
    return [triple[1:] for triple in found.triples], found.headings


@pytest.mark.parametrize(
    "headings",
    [
        ("head", "relation", "tail"),
        ("Head", "Relation", "Tail"),
        ("subject", "predicate", "object"),
        ("source", "edge_type", "target"),
        ("src", "rel", "dst"),
        ("from", "type", "to"),
        ("head_id", "relation_id", "tail_id"),
        (":START_ID", ":TYPE", ":END_ID"),
        ("#head", "relation", "tail"),
        ("h", "r", "t"),
        ("S", "P", "O"),
        ("entity1", "relation", "entity2"),
        ("head", "what it says", "tail"),
        (" head", "relation ", "tail"),
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_headings_are_recognised(tmp_path, headings, mark):
    found, told = read(tmp_path, mark + ("\t".join(headings) + "\n" + BODY).encode())
    # a relation that is called r like the heading is a triple of its own
    expected = [headings, *TRIPLES] if headings == ("h", "r", "t") else TRIPLES
    assert found == expected
    assert [name.strip() for name in headings] == list(told) or headings == ("h", "r", "t")


def test_columns_in_another_order_and_further_columns(tmp_path):
    text = ",relation,tail,head,weight\n0,r,b,a,1.5\n1,r,c,b,2\n2,s,a,c,\n"
    assert read(tmp_path, text, "train.csv")[0] == TRIPLES
    assert columns_of(["tail", "relation", "head"]) == (2, 1, 0)
    assert columns_of(["relation", "head", "tail"]) == (1, 0, 2)
    assert columns_of(["head", "head_id", "relation", "tail"]) is None
    assert columns_of(["head", "tail"]) is None
    assert columns_of(["a", "likes", "b"]) is None


def test_quotes(tmp_path):
    text = '"head"\t"relation"\t"tail"\n"a"\t"r"\t"b"\n"b"\t"r"\t"c"\n"c"\t"s"\t"a"\n'
    assert read(tmp_path, text)[0] == TRIPLES
    text = 'head,relation,tail\n"Doe, Jane",knows,"the ""Cat"""\n'
    assert read(tmp_path, text, "train.csv")[0] == [("Doe, Jane", "knows", 'the "Cat"')]
    text = '"Weird Al" Yankovic\tsings\tEat It\n"x"\tsings\ty\n'  # quotes that belong to names
    assert read(tmp_path, text)[0][0][0] == '"Weird Al" Yankovic'
    assert read(tmp_path, text)[0][1][0] == '"x"'
    assert read(tmp_path, "head;relation;tail\na;r;b\n", "x.csv")[0] == [("a", "r", "b")]


def test_what_looks_like_headings_and_is_used_below_is_a_triple(tmp_path):
    text = "source\ttype\ttarget\n"
    for below in ("river\ttype\twater\n", "source\tof\triver\n", "river\tof\ttarget\n"):
        assert len(read(tmp_path, text + below)[0]) == 2
    assert read(tmp_path, text + "a\tr\tb\n")[0] == [("a", "r", "b")]


def test_headings_on_request(tmp_path):
    odd = "x\ty\tz\n" + BODY
    assert read(tmp_path, odd)[0][0] == ("x", "y", "z")
    assert read(tmp_path, odd, header=True) == (TRIPLES, ("x", "y", "z"))
    usual = "head\trelation\ttail\n" + BODY
    assert read(tmp_path, usual, header=False)[0][0] == ("head", "relation", "tail")


@pytest.mark.parametrize("packed", [False, True])
def test_comments_blank_lines_and_windows_ends(tmp_path, packed):
    text = "# made by hand\r\n\r\n#\r\nhead\trelation\ttail\r\n" + BODY.replace("\n", "\r\n\r\n")
    content = gzip.compress(text.encode()) if packed else text.encode()
    assert read(tmp_path, content, "train.tsv.gz" if packed else "train.tsv")[0] == TRIPLES
    assert read(tmp_path, "#1\tr\t#2\n")[0] == [("#1", "r", "#2")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.tsv", "a\tr\tb\na r\tb\n", r"line 2: expected three .*got 'a r \| b', 2 fields"),
        ("train.tsv", "\n# x\na r b\n", "line 3: .*got 'a r b', with spaces instead of tabs"),
        ("train.tsv", "a,r,b\n", "line 1: .*with commas: a file with commas must end in .csv"),
        ("train.tsv", "a\n", "line 1: .*got 'a', without a tab"),
        ("train.tsv", "a\t\tb\n", "line 1: .*where a name is empty"),
        ("train.tsv", "head\trelation\ttail\tx\na\tr\tb\n", "line 2: expected 4 fields, as line 1"),
        ("train.tsv", "head\trelation\ttail\n", "has headings and no triples below them"),
        ("train.csv", 'a,r,b\na,"r,b\n', "line 2: unexpected end of data"),
        ("train.tsv", b"\xff\xfea\0\t\0", "is UTF-16 text; save it as UTF-8"),
        ("train.gz", b"\x1f\x8b\x08\x00", "is no complete gzip file"),
        ("train.tsv", "# only a comment\n", "is empty: expected three names"),
    ],
)
def test_errors_name_the_line(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read(tmp_path, content, name)
    assert name in str(caught.value)
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


def graph_in(path):
    graph = hierarchy_with_cycles(branching=3, depth=3)
    names = (
        (graph.entities[h], graph.relations[r], graph.entities[t])
        for h, r, t in graph.known.tolist()
    )
    path.write_text("head\trelation\ttail\n" + "".join("\t".join(row) + "\n" for row in names))
    return graph


def test_one_file_is_split(tmp_path):
    graph = graph_in(tmp_path / "all.tsv")
    one, again, other = (load_triples(tmp_path / "all.tsv", seed=seed) for seed in (0, 0, 1))
    assert one.entities == graph.entities
    total = len(graph.known)
    assert abs(len(one.test) - total / 10) <= 1
    assert abs(len(one.valid) - total * 0.09) <= 1
    assert len(torch.unique(one.known, dim=0)) == total == len(one.known)
    assert torch.equal(one.test, again.test)
    assert not torch.equal(one.test, other.test)
    headings, split = one.notes
    assert headings.startswith("the first line of all.tsv has headings: head 'head', relation")
    assert split == (
        f"held out of all.tsv with seed 0: {len(one.test)} test and {len(one.valid)} valid triples"
    )


def test_notes_are_short(tmp_path):
    for part in ("train", "valid", "test"):
        (tmp_path / f"{part}.csv").write_text("subject,predicate,object\na,r,b\nb,r,c\n")
    (note,) = load_triples(tmp_path).notes
    assert note.startswith("the first line of train.csv, valid.csv, test.csv has headings: ")
    assert load_triples(tmp_path).relations == ("r",)
    with pytest.raises(TypeError, match="header must be True or False, got 'yes'"):
        load_triples(tmp_path, header="yes")
    with pytest.raises(FileNotFoundError, match="path must be a folder or a file of triples"):
        load_triples(tmp_path / "nothing")


def test_queries_may_have_headings(tmp_path):
    path = tmp_path / "queries.tsv"
    path.write_text("head\trelation\ttail\na\tr\t?\n")
    assert read_queries(path) == [("a", "r", "?")]
    path.write_text("a\tr\tb\na\tr\t?\n")
    with pytest.raises(ValueError, match="line 1: one of head and tail must be"):
        read_queries(path)


def test_what_a_packed_file_may_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_UNPACKED", len(BODY))
    assert read(tmp_path, gzip.compress(BODY.encode()), "train.tsv.gz")[0] == TRIPLES
    with pytest.raises(ValueError, match=r"train.tsv.gz holds more than 18 bytes; unpack it first"):
        read(tmp_path, gzip.compress(BODY.encode() + b"\n"), "train.tsv.gz")


def test_arguments_are_named(tmp_path):
    with pytest.raises(TypeError, match="path must be a path"):
        load_triples("")
    (tmp_path / "run.toml").write_text("lr = 0.1")
    with pytest.raises(TypeError, match=r"changes must be a dictionary of settings, got"):
        read_config(tmp_path / "run.toml", changes=2.0)
    with pytest.raises(TypeError, match="row must be a mapping with the numbers epoch"):
        CSVLog(tmp_path / "history.csv")([])
