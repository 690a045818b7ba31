"""Bad input to `jorth solve`: one line that names what is wrong, and no file touched."""

import os

import numpy as np
import pytest

from tests.cli.conftest import N, solve


@pytest.fixture
def bad_files(folder):
    np.save("complex.npy", np.eye(N) * 1j)
    np.save("deep.npy", np.ones((2, 2, 2)))
    np.save("tilted.npy", np.load("A.npy") + np.triu(np.ones((N, N)), 1))
    np.save("indefinite.npy", np.diag([-1.0] * 4 + [1.0, -2.0, -2.0, 3.0]))
    np.save("short.npy", np.load("T.npy")[:-1])
    np.save("far.npy", 2 * np.eye(N))
    np.save("signs.npy", np.array([1, 1, 0, 1, 1, -1, -1, -1]))
    np.savez("two.npz", A=np.eye(N), B=np.eye(N))
    (folder / "words.csv").write_text("1,2\n3,four\n")
    (folder / "A.xls").write_text("1")
    os.link("A.npy", "link.npy")
    np.save("X.npy", np.eye(N))
    return folder


OUT = ["-s", "5,3", "-o", "out.npy"]
BAD = {
    # exit code 1: a file or the matrices
    "complex": (1, ["eigen", "complex.npy", *OUT], "complex.npy must hold a real matrix (m, n), got complex128"),
    "3-D": (1, ["eigen", "deep.npy", *OUT], "deep.npy must hold a real matrix (m, n), got float64 of shape (2, 2, 2)"),
    "a word": (1, ["eigen", "words.csv", *OUT], "words.csv cannot be read (could not convert string 'four' to float64 at row 1, column 2.)"),
    "several variables": (1, ["eigen", "two.npz", *OUT], "it must hold one variable, or --key must name one; it holds A, B"),
    "no such variable": (1, ["eigen", "two.npz", "--key", "C", *OUT], "got C; it holds A, B"),
    "not symmetric": (1, ["eigen", "tilted.npy", *OUT], "A must be symmetric, got max |A - A^T| = 1 (A is tilted.npy)"),
    "no definite pencil": (1, ["eigen", "indefinite.npy", *OUT], "A must form a definite pencil with J"),
    "rows differ": (1, ["procrustes", "S.npy", "short.npy", *OUT], "target must have shape (40, k) to go with source, got a"),
    "an infeasible start": (1, ["procrustes", "S.npy", "T.npy", "--start", "far.npy", *OUT], "x0 must be J-orthogonal for Signature(5, 3)"),
    "not a finite sum": (1, ["quadratic", "A.npy", "--method", "vr-j-jobcd", *OUT], "finite sum"),
    # exit code 2: the options
    "no file": (2, ["eigen", "none.npy", *OUT], "File 'none.npy' does not exist"),
    "an unknown ending": (2, ["eigen", "A.xls", *OUT], "A must end in .npy, .npz, .csv, .tsv, .txt, got A.xls"),
    "an unknown output": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "X.xls"], "--output must end in .npy, .csv, got X.xls"),
    "no output": (2, ["eigen", "A.npy", "-s", "5,3"], "Missing option '--output'"),
    "no signature": (2, ["eigen", "A.npy", "-o", "out.npy"], "Missing option '--signature'"),
    "too few signs": (2, ["eigen", "A.npy", "-s", "5,2", "-o", "out.npy"], "--signature must have 8 signs, one per column of the data, got 5,2 with 7"),
    "too many signs": (2, ["eigen", "A.npy", "-s", "++++-----", "-o", "out.npy"], "--signature must have 8 signs, one per column of the data, got ++++----- with 9"),
    "a signature of nothing": (2, ["eigen", "A.npy", "-s", "minkowski", "-o", "out.npy"], "--signature must be p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last, or a file of +1 and -1; got 'minkowski', and there is no such file"),
    "a zero among the signs": (2, ["eigen", "A.npy", "-s", "signs.npy", "-o", "out.npy"], "--signature must name a file of +1 and -1, got signs.npy: signs must each be +1 or -1, got 0 at position 2"),
    "a matrix of signs": (2, ["eigen", "A.npy", "-s", "far.npy", "-o", "out.npy"], "--signature must name a file with one row or column, got far.npy of shape (8, 8)"),
    "an unknown method": (2, ["procrustes", "S.npy", "T.npy", "--method", "newton", *OUT], "riemannian-cg, riemannian-lbfgs, riemannian-newton, got 'newton'"),
    "direct elsewhere": (2, ["procrustes", "S.npy", "T.npy", "--method", "direct", *OUT], "--method must be one of every-component, auto,"),
    "direct with a limit": (2, ["eigen", "A.npy", "--max-iterations", "0", *OUT], "--max-iterations needs another --method, got direct"),
    "direct with a start": (2, ["eigen", "A.npy", "--start", "A.npy", *OUT], "--start needs another --method, got direct"),
    "an unknown option": (2, ["quadratic", "A.npy", "--method", "riemannian-lbfgs", "--option", "side=left", *OUT], "--option side=left: riemannian-lbfgs has no option 'side'; it has preconditioner, memory"),
    "a bad value": (2, ["quadratic", "A.npy", "--method", "riemannian-lbfgs", "--option", "memory=-3", *OUT], "--option memory=-3: memory must be"),
    "no value": (2, ["quadratic", "A.npy", "--method", "auto", "--option", "memory", *OUT], "--option must be name=value, got 'memory'"),
    "a negative time": (2, ["quadratic", "A.npy", "--max-time", "-1", *OUT], "it must be a number of at least 0, got -1.0"),
    "no time": (2, ["quadratic", "A.npy", "--max-time", "nan", *OUT], "it must be a number of at least 0, got nan"),
    "a key for nothing": (2, ["eigen", "A.npy", "--key", "A", *OUT], "--key must be given once, or once for each .npz file (0 here), got A"),
    "too many keys": (2, ["eigen", "two.npz", "--key", "A", "--key", "B", *OUT], "--key must be given once, or once for each .npz file (1 here), got A, B"),
    "an input as output": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "A.npy"], "--output must not replace an input: A.npy is A.npy"),
    "through a link": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "link.npy"], "--output must not replace an input: link.npy is A.npy"),
    "signs as output": (2, ["eigen", "A.npy", "-s", "signs.npy", "-o", "signs.npy"], "--output must not replace an input"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input(bad_files, code, arguments, message):
    before = {path.name: path.read_bytes() for path in bad_files.iterdir()}
    result = solve(*arguments, code=code)
    assert message in " ".join(result.output.split())
    if code == 1:
        assert result.output.startswith("Error: ")
        assert result.output.count("\n") == 1
    assert {path.name: path.read_bytes() for path in bad_files.iterdir()} == before
