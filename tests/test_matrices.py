"""Matrices in files: every format bit for bit, and errors that say where."""

import gzip
import re

import numpy as np
import pytest
import scipy.sparse

from jorth._matrices import WRITABLE, read, stored, write

HARD = np.array([[1 / 3, -0.0, 5e-324], [np.finfo(float).max, -np.pi * 1e-200, 1 + 2**-52]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ending", WRITABLE)
def test_round_trip_bit_for_bit(tmp_path, ending, dtype):
    with np.errstate(over="ignore"):
        X = np.clip(HARD, -1e38, 1e38).astype(dtype) if dtype == np.float32 else HARD
    path = tmp_path / f"X{ending}"
    write(path, X)
    back = read(path).astype(dtype)
    assert back.shape == X.shape
    assert back.tobytes() == X.tobytes()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("ending", WRITABLE)
def test_vectors_come_back(tmp_path, ending):
    write(tmp_path / f"v{ending}", HARD[0])
    assert np.ravel(stored(tmp_path / f"v{ending}")).tobytes() == HARD[0].tobytes()


TEXTS = {
    "commas": "1,2.5\n-3,4e0\n",
    "commas and blanks": " 1, 2.5 \n-3 , 4.0",
    "semicolons": "1;2.5\n-3;4\n",
    "white space": "1 2.5\n -3\t4\n",
    "header": "first,second\n1,2.5\n-3,4\n",
    "quoted header": '"a";"b"\n1;2.5\n-3;4\n',
    "comments and blank lines": "# made by hand\n\n1,2.5 # one\n\n-3,4\n",
    "Windows, with a mark of byte order": "\ufeff1,2.5\r\n-3,4\r\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("ending", [".csv", ".txt", ".tsv", ".CSV"])
def test_text(tmp_path, text, ending):
    path = tmp_path / f"A{ending}"
    path.write_bytes(text.encode())
    assert read(path).tolist() == [[1, 2.5], [-3, 4]]


def test_one_column_and_one_row(tmp_path):
    (tmp_path / "column.txt").write_text("1\n2\n3\n")
    (tmp_path / "row.txt").write_text("1 2 3\n")
    assert read(tmp_path / "column.txt").shape == (3, 1)
    assert read(tmp_path / "row.txt").shape == (1, 3)


def test_packed_text_and_names_in_other_encodings(tmp_path):
    content = "größe,b\n1,2.5\n-3,4\n".encode("latin-1")
    (tmp_path / "A.csv.gz").write_bytes(gzip.compress(content))
    assert read(tmp_path / "A.csv.gz").tolist() == [[1, 2.5], [-3, 4]]


def test_names_that_are_numbers_are_data_and_a_warning_says_so(tmp_path):
    (tmp_path / "A.csv").write_text("0,1,2\n3,4,5\n")
    with pytest.warns(UserWarning, match=r"A.csv: line 1 \(0,1,2,...\) is read as data"):
        assert read(tmp_path / "A.csv").shape == (2, 3)


BAD_TEXT = {
    "a word": ("1,2\n3,four\n", "'four' to float64 at row 1, column 2"),
    "half a header": ("name,2\n3,4\n", "'name' to float64 at row 0, column 1"),
    "a second header": ("a,b\n\nc,d\n1,2", "'c' to float64 at row 0, column 1"),
    "decimal commas": ("x;y\n1,5;2.5", "'1,5' to float64"),
    "a gap": ("1,2\n3,\n", "'' to float64 at row 1, column 2"),
    "a short line": ("1,2,3\n4,5\n", "changed from 3 to 2 at row 2"),
    "an index of pandas": (",a,b\n0,1.5,2\n", "a column has no name, as an index"),
    "the same, read and written": ("Unnamed: 0,a,b\n0,1.5,2\n", "a column has no name"),
    "an index of R": ('"V1" "V2"\n"1" 1.5 2\n', "a column has no name, as an index"),
    "empty": ("", "there are no numbers in it"),
    "a header alone": ("a,b\n", "there are no numbers in it"),
    "NaN": ("1,2\n3,nan\n", "NaN or infinite entries: 1, the first in row 2, column 2"),
}


@pytest.mark.parametrize(("text", "message"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text(tmp_path, text, message):
    path = tmp_path / "A.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))


BAD_ARRAYS = {
    "complex": (np.eye(2) * 1j, "must hold a real matrix (m, n), got complex128 of shape (2, 2)"),
    "three dimensions": (
        np.ones((2, 2, 2)),
        "must hold a real matrix (m, n), got float64 of shape (2, 2, 2)",
    ),
    "one dimension": (np.ones(3), "must hold a real matrix (m, n), got float64 of shape (3,)"),
    "empty": (np.ones((0, 3)), "must hold a real matrix (m, n), got float64 of shape (0, 3)"),
    "words": (np.array([["a"]]), "must hold a real matrix (m, n), got <U1 of shape (1, 1)"),
    "infinite": (np.array([[1, 2, 3], [4, 5, np.inf]]), "the first in row 2, column 3"),
    "object": (
        np.array([[None]]),
        "cannot be read (Object arrays cannot be loaded when allow_pickle=False)",
    ),
}


@pytest.mark.parametrize(("array", "message"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays(tmp_path, array, message):
    np.save(tmp_path / "A.npy", array)
    with pytest.raises(ValueError, match=re.escape(message)):
        read(tmp_path / "A.npy")


def test_keys(tmp_path):
    path = tmp_path / "two.npz"
    arrays = {"A": np.eye(2), "B": np.ones((2, 3))}
    np.savez(path, **arrays)
    assert read(path, key="B").tolist() == arrays["B"].tolist()
    with pytest.raises(
        ValueError, match="it must hold one variable, or --key must name one; it holds A, B"
    ):
        read(path)
    with pytest.raises(ValueError, match="--key must name a variable of it, got C; it holds A, B"):
        read(path, key="C")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse(tmp_path, form):
    X = scipy.sparse.csr_array(np.diag([1.0, 0, 3]))
    scipy.sparse.save_npz(tmp_path / "X.npz", X.asformat(form))
    np.testing.assert_array_equal(read(tmp_path / "X.npz").toarray(), X.toarray())
    X.data[1] = np.nan
    scipy.sparse.save_npz(tmp_path / "X.npz", X.asformat(form))
    with pytest.raises(ValueError, match="the first in row 3, column 3"):
        read(tmp_path / "X.npz")


FAR = 500_000_000


def compressed(form, indices, indptr):
    places = dict(indices=np.int32(indices), indptr=np.int32(indptr))
    return dict(format=np.array(form.encode()), shape=(3, 3), data=np.ones(len(indices)), **places)


BROKEN = {
    "csr, index": compressed("csr", [0, 1, FAR], [0, 1, 2, 3]),
    "csc, negative": compressed("csc", [0, 1, -FAR], [0, 1, 2, 3]),
    "csr, pointers": compressed("csr", [0, 1, 2], [0, FAR, 2, 3]),
    "csc, pointers of nothing": compressed("csc", [], [0, FAR, 0, 0]),
    "coo, index": dict(format=np.array(b"coo"), shape=(3, 3), data=np.ones(1), row=[FAR], col=[0]),
    "another format": dict(
        format=np.array(b"dia"), shape=(3, 3), data=np.ones((1, 3)), offsets=[2**31 - 1]
    ),
}


@pytest.mark.parametrize("arrays", BROKEN.values(), ids=BROKEN)
def test_indices_that_lead_out_of_the_matrix(tmp_path, arrays):
    np.savez(tmp_path / "A.npz", **arrays)
    with pytest.raises(ValueError, match=r"A.npz cannot be read \("):
        read(tmp_path / "A.npz")


@pytest.mark.parametrize("name", ["A.npy", "A.npz", "A.csv"])
def test_broken_files(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x93NUMPY\xff\xff nonsense")
    with pytest.raises(ValueError, match=rf"{name} cannot be read \("):
        read(tmp_path / name)


def test_other_files(tmp_path):
    endings = ".npy, .npz, .csv, .tsv, .txt"
    with pytest.raises(ValueError, match=rf"A.xls must end in {endings}, got '.xls'; save the sh"):
        read(tmp_path / "A.xls")
    with pytest.raises(ValueError, match=r"got '.mat'; save it by numpy.save after scipy.io.loadm"):
        read(tmp_path / "A.mat")
    with pytest.raises(ValueError, match=r"none.npy cannot be read .*No such file"):
        read(tmp_path / "none.npy")
