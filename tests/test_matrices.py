"""Matrices in files: every format bit for bit, and errors that say where."""

import numpy as np
import pytest
import scipy.sparse

from jorth._matrices import WRITABLE, read, write

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


def test_names_in_another_encoding(tmp_path):
    (tmp_path / "A.csv").write_bytes("größe,b\n1,2.5\n-3,4\n".encode("latin-1"))
    assert read(tmp_path / "A.csv").tolist() == [[1, 2.5], [-3, 4]]


BAD_TEXT = {
    "a word": "1,2\n3,four\n",
    "a second header": "a,b\n\nc,d\n1,2",
    "decimal commas": "x;y\n1,5;2.5",
    "a gap": "1,2\n3,\n",
    "a short line": "1,2,3\n4,5\n",
    "an index of pandas": ",a,b\n0,1.5,2\n",
    "empty": "",
    "NaN": "1,2\n3,nan\n",
}


@pytest.mark.parametrize("text", BAD_TEXT.values(), ids=BAD_TEXT)
def test_bad_text(tmp_path, text):
    path = tmp_path / "A.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"A.csv (cannot be read|must be finite)"):
        read(path)


BAD_ARRAYS = {
    "complex": np.eye(2) * 1j,
    "three dimensions": np.ones((2, 2, 2)),
    "one dimension": np.ones(3),
    "empty": np.ones((0, 3)),
    "infinite": np.array([[1, 2, 3], [4, 5, np.inf]]),
    "object": np.array([[None]]),
}


@pytest.mark.parametrize("array", BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays(tmp_path, array):
    np.save(tmp_path / "A.npy", array)
    with pytest.raises(ValueError, match=r"A.npy (must|cannot)"):
        read(tmp_path / "A.npy")


def test_keys(tmp_path):
    path = tmp_path / "two.npz"
    arrays = {"A": np.eye(2), "B": np.ones((2, 3))}
    np.savez(path, **arrays)
    assert read(path, key="B").tolist() == arrays["B"].tolist()
    with pytest.raises(ValueError, match="--key must name one; it holds A, B"):
        read(path)
    with pytest.raises(ValueError, match="--key must name one; it holds A, B"):
        read(path, key="C")


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse(tmp_path, form):
    X = scipy.sparse.csr_array(np.diag([1.0, 0, 3]))
    scipy.sparse.save_npz(tmp_path / "X.npz", X.asformat(form))
    np.testing.assert_array_equal(read(tmp_path / "X.npz").toarray(), X.toarray())
    X.data[1] = np.nan
    scipy.sparse.save_npz(tmp_path / "X.npz", X.asformat(form))
    with pytest.raises(ValueError, match="must be finite"):
        read(tmp_path / "X.npz")


def test_indices_that_lead_out_of_the_matrix(tmp_path):
    places = dict(indices=np.int32([0, 1, 500_000_000]), indptr=np.int32([0, 1, 2, 3]))
    about = dict(format=np.array(b"csr"), shape=(3, 3), data=np.ones(3))
    np.savez(tmp_path / "A.npz", **about, **places)
    with pytest.raises(ValueError, match=r"A.npz cannot be read \("):
        read(tmp_path / "A.npz")


@pytest.mark.parametrize("name", ["A.npy", "A.npz", "A.csv", "A.xls", "none.npy"])
def test_broken_files(tmp_path, name):
    if name != "none.npy":
        (tmp_path / name).write_bytes(b"\x93NUMPY\xff\xff nonsense")
    with pytest.raises(ValueError, match=rf"{name} (cannot be read|must end in)"):
        read(tmp_path / name)
