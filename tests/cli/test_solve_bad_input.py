"""Bad input to `jorth solve`: one line that names what is wrong, and no file touched."""

import os

import numpy as np
import pytest

from tests.cli.conftest import N, solve


@pytest.fixture
def bad_files(folder):
    np.save("complex.npy", np.eye(N) * 1j)
    np.save("tilted.npy", np.load("A.npy") + np.triu(np.ones((N, N)), 1))
    np.save("indefinite.npy", np.diag([-1.0] * 4 + [1.0, -2.0, -2.0, 3.0]))
    np.save("short.npy", np.load("T.npy")[:-1])
    np.save("nan.npy", np.load("T.npy") * np.nan)
    np.save("far.npy", 2 * np.eye(N))
    np.savez("two.npz", A=np.eye(N), B=np.eye(N))
    (folder / "words.csv").write_text("1,2\n3,four\n")
    (folder / "A.xls").write_text("1")
    os.link("A.npy", "link.npy")
    np.save("X.npy", np.eye(N))
    return folder


OUT = ["-s", "5,3", "-o", "out.npy"]
BAD = {
    # exit code 1: a file or the matrices
    "complex": (1, ["eigen", "complex.npy", *OUT], "complex.npy must hold a real matrix"),
    "NaN": (1, ["procrustes", "S.npy", "nan.npy", *OUT], "nan.npy must be finite"),
    "a word": (1, ["eigen", "words.csv", *OUT], "words.csv cannot be read"),
    "an unknown ending": (1, ["eigen", "A.xls", *OUT], "A.xls must end in"),
    "several variables": (1, ["eigen", "two.npz", *OUT], "--key must name one; it holds A, B"),
    "not square": (1, ["eigen", "D.npy", *OUT], "A must be square, got 30 rows and 8 columns; if it holds data D, pass --data"),
    "not symmetric": (1, ["eigen", "tilted.npy", *OUT], "A must be symmetric"),
    "no definite pencil": (1, ["eigen", "indefinite.npy", *OUT], "A must form a definite pencil"),
    "rows differ": (1, ["procrustes", "S.npy", "short.npy", *OUT], "target must have shape"),
    "an infeasible start": (1, ["procrustes", "S.npy", "T.npy", "--start", "far.npy", *OUT], "x0 must be J-orthogonal"),
    # exit code 2: the options
    "no file": (2, ["eigen", "none.npy", *OUT], "File 'none.npy' does not exist"),
    "an unknown output": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "X.xls"], "--output must end in"),
    "no signature": (2, ["eigen", "A.npy", "-o", "out.npy"], "Missing option '--signature'"),
    "too few signs": (2, ["eigen", "A.npy", "-s", "5,2", "-o", "out.npy"], "--signature must have 8 signs"),
    "too many signs": (2, ["eigen", "A.npy", "-s", "+" * 300, "-o", "out.npy"], "--signature must have 8 signs"),
    "a signature of nothing": (2, ["eigen", "A.npy", "-s", "1," * 300, "-o", "out.npy"], "--signature must be p,q"),
    "an unknown method": (2, ["procrustes", "S.npy", "T.npy", "--method", "newton", *OUT], "--method and --option: method must be one of auto"),
    "direct with a limit": (2, ["eigen", "A.npy", "--max-iterations", "0", *OUT], "No such option"),
    "an unknown option": (2, ["quadratic", "A.npy", "--method", "riemannian-lbfgs", "--option", "side=left", *OUT], "--method and --option: method 'riemannian-lbfgs' has no option 'side'"),
    "a bad value": (2, ["quadratic", "A.npy", "--method", "gs-jobcd", "--option", "theta=abc", *OUT], "theta must be"),
    "no value": (2, ["quadratic", "A.npy", "--option", "memory", *OUT], "--option must be name=value"),
    "no time": (2, ["quadratic", "A.npy", "--max-time", "-1", *OUT], "not in the range x>=0"),
    "an input as output": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "A.npy"], "--output must not replace an input"),
    "through a link": (2, ["eigen", "A.npy", "-s", "5,3", "-o", "link.npy"], "--output must not replace an input"),
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
