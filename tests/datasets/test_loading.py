"""Every format and the rule of the subsets, on small files written here."""

import bz2
import gzip
import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import dump_svmlight_file

from jorth.datasets import load
from jorth.datasets.loading import data_folder

M, N = 30, 12
PACKERS = {"": open, ".txt": open, ".bz2": bz2.open, ".gz": gzip.open}


def matrix(seed=0):
    """Whole numbers; columns 3 and 7 are zero, the last one is not (LIBSVM text ends there)."""
    X = np.random.default_rng(seed).integers(0, 9, (M, N)).astype(float)
    X[X < 4] = 0
    X[:, [3, 7]] = 0
    X[0, -1] = 5
    return X


def write_libsvm(path, X):
    with PACKERS[path.suffix](path, "wb") as stream:
        dump_svmlight_file(X, np.zeros(len(X)), stream, zero_based=False)


WRITERS = {
    ".npz": lambda path, X: np.savez(path, X=X, y=np.zeros(len(X))),
    "_csr.npz": lambda path, X: scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(X)),
    **dict.fromkeys(PACKERS, write_libsvm),
}


def put(folder, ending, X, name="sector"):
    path = folder / f"{name}{ending}"
    WRITERS[ending](path, X)
    return path


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_every_format(tmp_path, ending, sparse):
    put(tmp_path, ending, matrix())
    X = load("sector", folder=tmp_path, sparse=sparse)
    assert isinstance(X, scipy.sparse.csr_array if sparse else np.ndarray)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X.toarray() if sparse else X, matrix())


# subsets


@pytest.mark.parametrize("ending", [".npz", "_csr.npz"])
def test_random_subset_by_hand(tmp_path, ending):
    put(tmp_path, ending, matrix())
    X = load("sector", 8, 6, seed=4, folder=tmp_path)
    rng = np.random.default_rng(4)
    rows = rng.choice(M, 8, replace=False)
    used = [j for j in range(N) if any(matrix()[i, j] != 0 for i in rows)]
    columns = rng.choice(used, 6, replace=False)
    np.testing.assert_array_equal(X, matrix()[np.ix_(rows, columns)])
    np.testing.assert_array_equal(
        X, load("sector", 8, 6, seed=4, folder=tmp_path, sparse=True).toarray()
    )
    assert not np.array_equal(X, load("sector", 8, 6, seed=5, folder=tmp_path))


def test_stored_zeros_are_zeros(tmp_path):
    X = scipy.sparse.csr_array(matrix())
    X.data[X.indices == 5] = 0
    scipy.sparse.save_npz(tmp_path / "sector_csr.npz", X)
    assert load("sector", n=9, folder=tmp_path).any(axis=0).all()
    with pytest.raises(ValueError, match="n must be at most 9"):
        load("sector", n=10, folder=tmp_path)


def test_first_subset_drops_nothing(tmp_path):
    put(tmp_path, "_csr.npz", matrix())
    found = load("sector", 7, 5, subset="first", folder=tmp_path)
    np.testing.assert_array_equal(found, matrix()[:7, :5])


@pytest.mark.parametrize("subset", ["random", "first"])
def test_more_than_there_is(tmp_path, subset):
    put(tmp_path, ".npz", matrix())
    with pytest.raises(
        ValueError, match=r"m must be at most 30: data set sector .* has shape \(30, 12\), got 31"
    ):
        load("sector", 31, 5, subset=subset, folder=tmp_path)
    with pytest.raises(ValueError, match=r"n must be at most 12: .*, got 13"):
        load("sector", 3, 13, subset=subset, folder=tmp_path)


# scale


@pytest.mark.parametrize("ending", [".npz", "_csr.npz", ".bz2"])
def test_mnist_bytes_are_scaled(tmp_path, ending):
    put(tmp_path, ending, 28 * matrix(), name="mnist")  # up to 224
    np.testing.assert_array_equal(load("mnist", folder=tmp_path), 28 * matrix() / 255)
    np.testing.assert_array_equal(
        load("mnist", folder=tmp_path, sparse=True).toarray(), 28 * matrix() / 255
    )


@pytest.mark.parametrize("factor", [1 / 8, 1 / 3, 1000.0, -1.0])
def test_mnist_in_other_units_is_left_alone(tmp_path, factor):
    put(tmp_path, ".npz", factor * matrix(), name="mnist")
    np.testing.assert_array_equal(load("mnist", folder=tmp_path), factor * matrix())


# folders and errors


def test_folder_argument_then_variable_then_cache(tmp_path, monkeypatch):
    for seed, place in enumerate(("argument", "variable")):
        (tmp_path / place).mkdir()
        put(tmp_path / place, ".npz", matrix(seed))
    monkeypatch.setenv("JORTH_DATA", str(tmp_path / "variable"))
    np.testing.assert_array_equal(load("sector"), matrix(1))
    np.testing.assert_array_equal(load("sector", folder=tmp_path / "argument"), matrix(0))
    monkeypatch.delenv("JORTH_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder().name == "jorth"


def test_missing_set_says_how_to_get_it(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match=r"data set w1a is not in .*`jorth.datasets.fetch\('w1a'\)` downloads it.*JORTH",
    ):
        load("w1a", folder=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"data set tdt2 is not in .*no public address"):
        load("tdt2", folder=tmp_path / "nowhere")


def test_without_pooch_a_folder_is_asked_for(monkeypatch):
    monkeypatch.delenv("JORTH_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(
        ImportError, match=r'pip install "jorth\[data\]"; or name a folder by folder= or JORTH_DATA'
    ):
        load("w1a")


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_broken_files_are_named(tmp_path, ending, damage):
    path = put(tmp_path, ending, matrix())
    content = path.read_bytes()
    noise = np.random.default_rng(0).bytes(200)
    # cut text inside a pair, so that it cannot be a shorter file
    cut = content[: content.rindex(b":") + 1] if ending in ("", ".txt") else content[:-20]
    path.write_bytes({"cut": cut, "noise": noise, "empty": b""}[damage])
    with pytest.raises(
        ValueError, match=rf"data set sector: .*sector{ending} (cannot be read|must hold)"
    ):
        load("sector", folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"Z": np.eye(3)}, "it must hold X, it holds Z"),
        ({"X": np.ones(3)}, r"must hold a real matrix \(m, n\), got float64 of shape \(3,\)"),
        ({"X": np.eye(3) * 1j}, "must hold a real matrix"),
        ({"X": np.array([["a"]])}, "must hold a real matrix"),
        ({"X": np.array([[1.0, np.nan]])}, "must be finite, got . NaN"),
        ({"X": np.array([[None]])}, "cannot be read"),  # would need pickle
    ],
)
def test_files_with_something_else(tmp_path, content, message):
    np.savez(tmp_path / "sector.npz", **content)
    with pytest.raises(ValueError, match=message):
        load("sector", folder=tmp_path)
