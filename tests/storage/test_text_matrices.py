"""Text as spreadsheets, pandas, R and NumPy write it: the numbers, and what is said about it."""

import gzip
import re

import numpy as np
import pytest

from jorth.storage.matrices import read
from jorth.storage.text_matrices import Layout

WANTED = [[1.5, 2.5, -3.0], [4.25, 5.0, 6.0], [0.5, 1.5, 2.5]]
HEADER = "is read as names of columns; --header no reads it as data"
INDEX = "which has no name, is read as an index and left out; --index no reads it as data"

# what wrote it: (text, what is told)
WRITTEN = {
    "pandas, no index": ("0,1,2\n1.5,2.5,-3.0\n4.25,5.0,6.0\n0.5,1.5,2.5\n", [HEADER]),
    "pandas, index": (",0,1,2\n0,1.5,2.5,-3.0\n1,4.25,5.0,6.0\n2,0.5,1.5,2.5\n", [HEADER, INDEX]),
    "pandas, names": (",a,b,c\n0,1.5,2.5,-3.0\n1,4.25,5.0,6.0\n2,0.5,1.5,2.5\n", [INDEX]),
    "pandas, words": (",a,b,c\nx,1.5,2.5,-3.0\ny,4.25,5.0,6.0\nz,0.5,1.5,2.5\n", [INDEX]),
    "pandas, read and written": (
        "Unnamed: 0,a,b,c\n0,1.5,2.5,-3.0\n1,4.25,5.0,6.0\n2,0.5,1.5,2.5\n",
        [INDEX],
    ),
    "pandas, twice": (
        "Unnamed: 0.1,Unnamed: 0,a,b,c\n0,0,1.5,2.5,-3\n1,1,4.25,5,6\n2,2,0.5,1.5,2.5\n",
        ["columns 1 to 2 are read as an index and left out"],
    ),
    "pandas, tabs": (
        "\t0\t1\t2\n0\t1.5\t2.5\t-3\n1\t4.25\t5\t6\n2\t.5\t1.5\t2.5\n",
        [HEADER, INDEX],
    ),
    "from 1": ("1,2,3\n1.5,2.5,-3.0\n4.25,5.0,6.0\n0.5,1.5,2.5\n", [HEADER]),
    "R, write.csv": ('"","V1","V2","V3"\n"1",1.5,2.5,-3\n"2",4.25,5,6\n"3",0.5,1.5,2.5\n', [INDEX]),
    "R, write.table": ('"V1" "V2" "V3"\n"1" 1.5 2.5 -3\n"2" 4.25 5 6\n"3" 0.5 1.5 2.5\n', [INDEX]),
    "Excel in Germany": (
        "\ufeffa;b;c\r\n1,5;2,5;-3\r\n4,25;5;6\r\n0,5;1,5;2,5\r\n",
        ["decimal commas are read as decimal points"],
    ),
    "Excel, its own separator": ("sep=;\n1.5;2.5;-3\n4.25;5;6\n0.5;1.5;2.5\n", []),
    "tabs and decimal commas": ("1,5\t2,5\t-3\n4,25\t5\t6\n0,5\t1,5\t2,5\n", ["decimal commas"]),
    "quoted decimal commas": (
        '"1,5","2,5","-3"\n"4,25","5","6"\n"0,5","1,5","2,5"\n',
        ["decimal commas"],
    ),
    "quotes": ('"1.5","2.5","-3"\n"4.25","5","6"\n"0.5","1.5","2.5"\n', []),
    "separators at the ends": ("1.5,2.5,-3,\n4.25,5,6,\n0.5,1.5,2.5,\n", []),
    "the same under a header": ("a,b,c\n1.5,2.5,-3,\n4.25,5,6,\n0.5,1.5,2.5,\n", []),
    "commas, then tabs": ("1.5,\t2.5,\t-3\n4.25,\t5,\t6\n0.5,\t1.5,\t2.5\n", []),
    "old line ends": ("1.5,2.5,-3\r4.25,5,6\r0.5,1.5,2.5\r", []),
    "NumPy with a header": ("# a b c\n1.5 2.5 -3\n4.25 5 6\n0.5 1.5 2.5\n", []),
}


def assert_told(notes, path, parts):
    assert len(notes) == len(parts), notes
    for note, part in zip(notes, parts, strict=True):
        assert note.startswith(f"{path}: ")
        assert part in note
        assert "\n" not in note


@pytest.mark.parametrize(("text", "told"), WRITTEN.values(), ids=WRITTEN)
def test_tables_of_others(tmp_path, text, told):
    path = tmp_path / "A.csv"
    path.write_bytes(text.encode())
    notes = []
    assert read(path, tell=notes.append).tolist() == WANTED
    assert_told(notes, path, told)


def test_other_encodings_and_gzip(tmp_path):
    text = "größe,b,c\n1.5,2.5,-3.0\n4.25,5.0,6.0\n0.5,1.5,2.5\n"
    for code in ("utf-16", "latin-1", "utf-8"):
        (tmp_path / "A.csv").write_bytes(text.encode(code))
        assert read(tmp_path / "A.csv").tolist() == WANTED
    (tmp_path / "A.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert read(tmp_path / "A.csv.gz").tolist() == WANTED
    with pytest.raises(ValueError, match="bytes of memory or more, and 20 are allowed"):
        read(tmp_path / "A.csv.gz", max_bytes=20)


DATA = {
    "a permutation": "0,1\n1,0\n",
    "a symmetric matrix": "1,2,3\n2,5,6\n3,6,9\n",
    "counting on": "0,1,2\n3,4,5\n6,7,8\n9,10,11\n",
    "one column of signs": "1\n1\n-1\n",
    "one row": "0,1,2\n",
    "floats": "0.0,1.0,2.0\n0.5,0.5,0.5\n",
    "integers that do not count": "1,2,4\n5,6,7\n",
    "an index without names": "0,0.5,0.25\n1,1.5,2.5\n2,0.5,0.5\n",
}


@pytest.mark.parametrize("text", DATA.values(), ids=DATA)
def test_data_stay_data(tmp_path, text):
    path = tmp_path / "A.csv"
    path.write_text(text)
    wanted = [[float(cell) for cell in line.split(",")] for line in text.splitlines()]
    notes = []
    assert read(path, tell=notes.append).tolist() == wanted
    doubtful = {DATA["a symmetric matrix"]: "--header yes", DATA["counting on"]: "--header yes"}
    doubtful[DATA["an index without names"]] = "--index yes leaves it out"
    assert_told(notes, path, [doubtful[text]] if text in doubtful else [])


def test_counts_may_be_a_header_over_integers(tmp_path):
    path = tmp_path / "A.csv"
    notes = []
    path.write_text("0,1,2\n7,0,3\n4,1,1\n5,5,5\n")
    assert read(path, tell=notes.append).tolist() == [[7, 0, 3], [4, 1, 1], [5, 5, 5]]
    assert HEADER in notes[-1]


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        (Layout(header="no"), [[0, 1, 2], [0, 1.5, 2.5], [1, 3.5, 4.5]]),
        (Layout(header="yes"), [[0, 1.5, 2.5], [1, 3.5, 4.5]]),
        (Layout(header="yes", index="yes"), [[1.5, 2.5], [3.5, 4.5]]),
        (Layout(header="no", index="yes"), [[1, 2], [1.5, 2.5], [3.5, 4.5]]),
    ],
)
def test_the_user_decides(tmp_path, layout, wanted):
    path = tmp_path / "A.csv"
    path.write_text("0,1,2\n0,1.5,2.5\n1,3.5,4.5\n")
    assert read(path, layout=layout).tolist() == wanted


def test_an_index_may_be_kept(tmp_path):
    path = tmp_path / "A.csv"
    path.write_text(",a\n0,1.5\n1,2.5\n")
    assert read(path, layout=Layout(index="no")).tolist() == [[0, 1.5], [1, 2.5]]


BAD = {
    "a gap in the corner": (b",2,3\n4,5,6\n7,8,9\n", "line 1, column 1 is empty"),
    "a column without numbers": (b"a,b\n1,\n2,\n", "line 2, column 2 is empty"),
    "names of rows": (
        b"name,a,b\nx,1,2\n",
        "line 2, column 1: 'x' is not a number (--index yes leaves column 1 out)",
    ),
    "a word behind an index": (b",a,b\n0,1,x\n", "line 2, column 3: 'x' is not a number"),
    "too long behind an index": (b",a,b\n0,1,2\n1,3,4,5\n", "line 3 has 3 entries"),
    "a workbook": (b"PK\x03\x04\x14\0", "it is a workbook or a zip archive, not text; save the"),
    "an old workbook": (b"\xd0\xcf\x11\xe0\xa1", "it is an old workbook, not text; save the sheet"),
    "bytes": (b"1,2\n\0\0", "it is not text"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong(tmp_path, content, message):
    path = tmp_path / "A.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(path)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("A.xlsx", "got '.xlsx'; save the sheet as CSV"),
        ("A.ods", "got '.ods'; save the sheet as CSV"),
        ("A.parquet", "got '.parquet'; save it by numpy.save, or as CSV"),
        ("A.npy.gz", "got '.gz'"),
    ],
)
def test_files_of_other_kinds(tmp_path, name, advice):
    with pytest.raises(ValueError, match=re.escape(advice)):
        read(tmp_path / name)


def test_large_tables_are_read_fast_enough_and_right(tmp_path):
    A = np.random.default_rng(0).standard_normal((2000, 50))
    np.savetxt(
        tmp_path / "A.csv",
        A,
        delimiter=",",
        fmt="%.17g",
        header=",".join(map(str, range(50))),
        comments="",
    )
    assert (read(tmp_path / "A.csv") == A).all()
