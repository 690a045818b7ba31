"""Matrices in files: every format bit for bit, and errors that say where."""

import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from jorth.storage.atomic import replacing
from jorth.storage.matrices import WRITABLE, read, stored, write

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
    write(tmp_path / f"v{ending}", HARD[0], name="eigenvalues")
    assert np.ravel(stored(tmp_path / f"v{ending}")).tobytes() == HARD[0].tobytes()
    if ending == ".mat":
        assert scipy.io.loadmat(tmp_path / "v.mat")["eigenvalues"].shape == (3, 1)


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


BAD_TEXT = {
    "a word": ("1,2\n3,four\n", "line 2, column 2: 'four' is not a number"),
    "half a header": (
        "name,2\n3,4\n",
        r"line 1, column 1: 'name' is not a number \(--header yes reads line 1 as names of columns",
    ),
    "a second header": ("a,b\n\nc,d\n1,2", "line 3, column 1: 'c' is not a number"),
    "commas and points": ("x;y\n1,5;2.5", "line 2, column 1: '1,5' is not a number"),
    "an underscore": ("1,2\n3,4_0\n", "line 2, column 2: '4_0' is not a number"),
    "a gap": ("1,2\n3,\n", "line 2, column 2 is empty"),
    "a short line": ("1,2,3\n4,5\n", "line 2 has 2 entries, the lines before it 3"),
    "complex": ("1,2\n3,1+2j\n", r"line 2, column 2: '1\+2j' is not a number"),
    "empty": ("", "there are no numbers in it"),
    "a header alone": ("a,b\n", "there are no numbers in it"),
    "NaN": (
        "1,2\n3,nan\n",
        "must be finite, got NaN or infinite entries: 1, the first in row 2, column 2",
    ),
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


@pytest.mark.parametrize("ending", [".npz", ".mat"])
def test_keys(tmp_path, ending):
    path = tmp_path / f"two{ending}"
    arrays = {"A": np.eye(2), "B": np.ones((2, 3))}
    np.savez(path, **arrays) if ending == ".npz" else scipy.io.savemat(path, arrays)
    assert read(path, key="B").tolist() == arrays["B"].tolist()
    with pytest.raises(
        ValueError, match="it must hold one variable, or --key must name one; it holds A, B"
    ):
        read(path)
    with pytest.raises(ValueError, match="--key must name a variable of it, got C; it holds A, B"):
        read(path, key="C")


def test_sparse(tmp_path):
    X = scipy.sparse.csr_array(np.diag([1.0, 0, 3]))
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    scipy.io.savemat(tmp_path / "X.mat", {"D": X})
    for name in ("X.npz", "X.mat"):
        found = read(tmp_path / name)
        assert scipy.sparse.issparse(found)
        assert (found.toarray() == X.toarray()).all()
    X.data[1] = np.nan
    scipy.sparse.save_npz(tmp_path / "X.npz", X)
    with pytest.raises(ValueError, match="the first in row 3, column 3"):
        read(tmp_path / "X.npz")


@pytest.mark.parametrize("name", ["A.npy", "A.npz", "A.mat", "A.csv"])
def test_broken_files(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x93NUMPY\xff\xff nonsense")
    with pytest.raises(ValueError, match=rf"{name} cannot be read \("):
        read(tmp_path / name)


def test_other_files(tmp_path):
    (tmp_path / "A.mat").write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(ValueError, match=r"A.mat is a MATLAB 7.3 file; save it with -v7"):
        read(tmp_path / "A.mat")
    with pytest.raises(
        ValueError, match=r"A.xls must end in .npy, .npz, .mat, .csv, .tsv, .txt, got '.xls'"
    ):
        read(tmp_path / "A.xls")
    with pytest.raises(ValueError, match=r"none.npy cannot be read .*No such file"):
        read(tmp_path / "none.npy")


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "X.npy"
    write(path, np.eye(2))

    def fail():
        with replacing(path) as stream:
            stream.write(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert (read(path) == np.eye(2)).all()
    assert [file.name for file in tmp_path.iterdir()] == ["X.npy"]
