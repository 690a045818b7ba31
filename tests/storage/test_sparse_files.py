"""Sparse files whose indices lead out of the matrix: an error, not a read or a write elsewhere.

The broken matrices are read in a process of their own, which a wrong read may end.
"""

import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from jorth.cli import main
from jorth.storage.matrices import read

FAR = 500_000_000
LOWEST = -(2**31)
HIGHEST = 2**31 - 1


def compressed(form, indices, indptr, data=None, shape=(3, 3)):
    values = np.ones(len(indices)) if data is None else data
    places = dict(indices=np.int32(indices), indptr=np.int32(indptr))
    return dict(format=np.array(form.encode()), shape=shape, data=values, **places)


def diagonals(offset):
    return dict(format=np.array(b"dia"), shape=(3, 3), data=np.ones((1, 3)), offsets=[offset])


BROKEN = {
    "csr, index": (compressed("csr", [0, 1, FAR], [0, 1, 2, 3]), "must be < 3"),
    "csc, index": (compressed("csc", [0, 1, FAR], [0, 1, 2, 3]), "must be < 3"),
    "csr, negative": (compressed("csr", [0, 1, -FAR], [0, 1, 2, 3]), "indices must be >= 0"),
    "csc, negative": (compressed("csc", [0, 1, -FAR], [0, 1, 2, 3]), "indices must be >= 0"),
    "csr, pointers": (compressed("csr", [0, 1, 2], [0, FAR, 2, 3]), "non-decreasing"),
    "csc, pointers of nothing": (compressed("csc", [], [0, FAR, 0, 0]), "non-decreasing"),
    "csr, pointers whose differences overflow": (
        compressed("csr", [0, 1, 2], [0, HIGHEST, LOWEST, -1, 3], shape=(4, 3)),
        "non-decreasing",
    ),
    "bsr, index": (compressed("bsr", [FAR], [0, 1], np.ones((1, 2, 2)), (2, 2)), "must be < 1"),
    "bsr, rows": (
        compressed("bsr", [0], [0, 1], np.ones((1, 2, 3)), (3, 3)),
        r"shape \(3, 3\) must be a multiple of the size \(2, 3\)",
    ),
    "bsr, columns": (
        compressed("bsr", [0], [0, 1], np.ones((1, 3, 2)), (3, 3)),
        r"shape \(3, 3\) must be a multiple of the size \(3, 2\)",
    ),
    "coo, index": (
        dict(format=np.array(b"coo"), shape=(3, 3), data=np.ones(1), row=[FAR], col=[0]),
        "exceeds matrix dimension",
    ),
    "dia, above": (diagonals(HIGHEST), "offsets must be > -3 and < 3"),
    "dia, below": (diagonals(LOWEST), "offsets must be > -3 and < 3"),
}
READ = """
import sys
from pathlib import Path
from jorth.storage.matrices import read
for name in sys.argv[1:]:
    try:
        read(Path(name)).toarray()
        print("read", flush=True)
    except ValueError as error:
        print(error, flush=True)
"""


def test_indices_that_lead_out_of_the_matrix(tmp_path):
    paths = [str(tmp_path / f"{number}.npz") for number in range(len(BROKEN))]
    for path, (arrays, _) in zip(paths, BROKEN.values(), strict=True):
        np.savez(path, **arrays)
    command = [sys.executable, "-c", READ, *paths]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = result.stdout.splitlines()
    assert len(lines) == len(BROKEN), f"ended by {result.returncode} at {list(BROKEN)[len(lines)]}"
    for line, path, (_, reason) in zip(lines, paths, BROKEN.values(), strict=True):
        assert f"{path} cannot be read" in line
        with pytest.raises(ValueError, match=reason):
            raise ValueError(line)


def far_mat(path):
    """A sparse variable whose last row index is changed to one far away."""
    matrix = scipy.sparse.csc_array(np.fliplr(np.diag([1.0, 2.0, 3.0])))
    scipy.io.savemat(path, {"X": matrix})
    content = path.read_bytes()
    rows = np.array([2, 1, 0], dtype="<i4").tobytes()
    assert content.count(rows) == 1
    path.write_bytes(content.replace(rows, np.array([2, 1, FAR], dtype="<i4").tobytes()))


def test_a_sparse_variable_of_matlab(tmp_path):
    path = tmp_path / "A.mat"
    far_mat(path)
    result = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0
    assert "must be < 3" in result.stdout


def test_commands_name_the_file(tmp_path):
    arrays, reason = BROKEN["csr, index"]
    for name in ("w1a_csr.npz", "A.npz"):
        np.savez(tmp_path / name, **arrays)
    solve = ["solve", "eigen", tmp_path / "A.npz", "-s", "2,1", "-o", tmp_path / "X.npy"]
    for command in (["data", "show", "w1a", "--folder", tmp_path], solve):
        result = CliRunner().invoke(main, [str(word) for word in command])
        assert result.exit_code == 1, result.output
        assert reason in " ".join(result.output.split())


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia"])
def test_whole_matrices_of_every_format(tmp_path, form):
    dense = np.arange(24.0).reshape(4, 6) % 5
    scipy.sparse.save_npz(tmp_path / "A.npz", scipy.sparse.csr_array(dense).asformat(form))
    np.testing.assert_array_equal(read(tmp_path / "A.npz").toarray(), dense)
