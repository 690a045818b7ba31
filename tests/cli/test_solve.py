"""`jorth solve`: results are checked against SciPy and by NumPy alone."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.linalg

import jorth
from jorth.cli import solving
from jorth.cli.files import read
from tests.cli.conftest import SIGNS, N, solve
from tests.linalg.reference import positive_definite

U = 2.0**-53


def record(name="X.json"):
    with open(name) as stream:
        return json.load(stream)


def assert_feasible(X, signs=SIGNS):
    J = np.diag(signs)
    assert np.abs(X.T @ J @ X - J).max() <= 100 * N * U * np.linalg.norm(X, 2) ** 2


def sorted_pencil(A, signs=SIGNS):
    """The eigenvalues of A x = lambda J x from J x = (1 / lambda) A x."""
    return np.sort(1 / scipy.linalg.eigh(np.diag(signs), A, eigvals_only=True))


# -- eigen


@pytest.mark.parametrize("ending", [".npy", ".csv"])
def test_eigen_against_scipy(folder, ending):
    output = solve("eigen", "A.npy", "-s", "5,3", "-o", f"X{ending}").output
    A, X = np.load("A.npy"), read(folder / f"X{ending}").values
    values = (np.load if ending == ".npy" else np.loadtxt)(f"X_eigenvalues{ending}")
    wanted = sorted_pencil(A)
    assert_feasible(X)
    assert np.sort(values) == pytest.approx(wanted, rel=1e-11)
    assert np.abs(X.T @ A @ X - np.diag(SIGNS * values)).max() < 1e-12 * np.abs(values).max()
    about = record()
    assert about["status"] == "CONVERGED"
    assert about["value"] == pytest.approx(np.abs(wanted).sum(), rel=1e-12)
    assert about["norm"] == pytest.approx(np.linalg.norm(X, 2))
    assert "solved directly" in output
    assert f"{about['value']:.8g}" in output
    assert f"written: X{ending}, X_eigenvalues{ending}, X.json" in output


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("5,3", SIGNS),
        ("--+-++++", [-1, -1, 1, -1, 1, 1, 1, 1]),
        ("lorentz", [-1] + [1] * 7),
        ("lorentz-last", [1] * 7 + [-1]),
        ("8,0", [1] * 8),
    ],
)
def test_signatures(folder, text, signs):
    solve("eigen", "A.npy", "--signature", text, "-o", "X.npy", "--quiet")
    assert_feasible(np.load("X.npy"), np.array(signs, dtype=float))
    about = record()
    assert about["signature"] == "".join("+" if sign > 0 else "-" for sign in signs)


# -- procrustes and quadratic


def test_procrustes_finds_the_planted_point(folder):
    solve("procrustes", "S.npy", "T.npy", "-s", "5,3", "-o", "X.npy", "--tolerance", 1e-10)
    X = np.load("X.npy")
    assert_feasible(X)
    assert np.abs(X - np.load("planted.npy")).max() < 1e-7
    about = record()
    assert about["gradient_norm"] <= 1e-9  # the tolerance is relative


def test_a_target_with_fewer_columns(folder):
    """X is thin, X^T J X = diag(s_1, s_2); the first columns of the planted one are found."""
    np.save("two.npy", np.load("T.npy")[:, :2])
    line = "procrustes S.npy two.npy -s 5,3 -o X.npy --tolerance 1e-9 --plot fit.svg"
    output = solve(line).output
    X = np.load("X.npy")
    assert np.abs(X - np.load("planted.npy")[:, :2]).max() < 1e-6
    assert np.abs(X.T * SIGNS @ X - np.eye(2)).max() < 1e-12 * np.linalg.norm(X) ** 2
    assert "there was one start, and others may end lower" in output
    assert record()["component"] is None
    assert "<svg" in (folder / "fit.svg").read_text()


def test_a_variable_of_each_file(folder):
    arrays = {"source": np.load("S.npy"), "target": np.load("T.npy") + 0.1}
    np.savez("both.npz", target=arrays["target"], X=0 * arrays["target"])
    np.savez("S.npz", target=arrays["source"])
    solve("procrustes", "S.npz", "both.npz", "--key", "target", "-s", "5,3", "-o", "X.npy")
    X = np.load("X.npy")
    misfit = np.linalg.norm(np.load("S.npy") @ X - arrays["target"]) ** 2 / (2 * 40)
    assert misfit > 1e-3
    assert record()["value"] == pytest.approx(misfit, rel=1e-9)


def test_quadratic_value_and_stationarity(folder):
    solve("quadratic A.npy C.npy weights.npy -s 5,3 -o X.npy --tolerance 1e-8")
    A, C, D, X = (np.load(f"{name}.npy") for name in ("A", "C", "weights", "X"))
    about = record()
    assert_feasible(X)
    assert about["value"] == pytest.approx(np.trace(X.T @ A @ X @ D) / 2 + (C * X).sum(), rel=1e-12)
    M = np.diag(SIGNS) @ (A @ X @ D + C) @ X.T
    assert np.linalg.norm(M - M.T) / 2 == pytest.approx(about["gradient_norm"], abs=1e-10)
    scale = np.linalg.norm(A) * np.linalg.norm(D) / np.sqrt(len(D)) + np.linalg.norm(C)
    assert about["gradient_norm"] <= 1e-8 * scale


def test_quadratic_says_whether_it_is_a_minimum(folder):
    """By differences of f along the group, from NumPy alone."""
    line = "quadratic A.npy C.npy weights.npy -s 5,3 -o X.npy --tolerance 1e-8"
    assert "minimum, smallest eigenvalue" in solve(line).output
    assert record()["hessian"] == "minimum"
    A, C, D, X = (np.load(f"{name}.npy") for name in ("A", "C", "weights", "X"))
    smallest, rng = record()["smallest"], np.random.default_rng(0)
    for _ in range(20):
        S = rng.standard_normal((N, N))
        S = (S - S.T) / np.linalg.norm(S - S.T)
        curve = [scipy.linalg.expm(t * SIGNS[:, None] * S) @ X for t in (-1e-3, 0.0, 1e-3)]
        f = [np.trace(Y.T @ A @ Y @ D) / 2 + (C * Y).sum() for Y in curve]
        assert (f[0] - 2 * f[1] + f[2]) / 1e-6 > 0.9 * smallest
    solve("quadratic A.npy -s 5,3 -o Y.npy --start X.npy --max-iterations 0", code=3)
    assert "hessian" not in record("Y.json")


# -- svd, qr and lstsq


def test_svd_qr_and_lstsq(folder):
    """The factors that are written give the matrix back, and the gradient is zero."""
    D = np.load("D.npy")
    solve("svd D.npy -s 5,3 -o X.npy")
    X, S, U = (np.load(f"X{end}.npy") for end in ("", "_singular_values", "_U"))
    assert_feasible(X)
    assert np.abs(D @ X - U * S).max() < 1e-12 * np.linalg.norm(D @ X)
    signs = np.sign(np.linspace(1, -0.3, 30))
    D[signs < 0] *= 0.1
    np.save("G.npy", D)
    p = int((signs > 0).sum())
    solve(f"qr G.npy -s {p},{30 - p} -o Q.npy")
    Q, R = np.load("Q.npy"), np.load("Q_R.npy")
    assert np.abs(Q.T * signs @ Q - np.diag(signs)).max() < 1e-12 * np.linalg.norm(Q) ** 2
    assert np.abs(D - Q[:, :N] @ R).max() < 1e-12 * np.linalg.norm(Q) * np.linalg.norm(R)
    np.savetxt("G.csv", D, header="a,b,c,d,e,f,g,h", delimiter=",", comments="")
    b = D @ np.arange(1.0, N + 1) + 0.1
    np.savetxt("b.csv", b)
    output = solve(f"lstsq G.csv b.csv -s {p},{30 - p} -o x.csv").output
    x = np.loadtxt("x.csv")
    normal = np.linalg.solve(D.T * signs @ D, D.T * signs @ b)
    assert x == pytest.approx(normal, rel=1e-9)
    assert f"a = {x[0]:.6g}, b = {x[1]:.6g}" in output
    assert record("x.json")["value"] == pytest.approx(signs @ (b - D @ x) ** 2, rel=1e-9)


# -- methods, options, records


def test_the_record_says_all(folder):
    solve("quadratic A.npy -s 5,3 --method j-jobcd --max-time 60", "-o", "a b.npy")
    about = record("a b.json")
    assert about["inputs"]["A"]["file"] == "A.npy"
    digest = hashlib.sha256((folder / "A.npy").read_bytes()).hexdigest()
    assert about["inputs"]["A"]["sha256"] == digest
    assert about["versions"]["jorth"] == jorth.__version__
    assert about["evaluations"]["gradient"] > 0
    assert about["residual"] < 1e-14


# -- how it ends


def test_limits_end_with_3_and_write_x(folder):
    arguments = ["procrustes", "S.npy", "T.npy", "-s", "5,3", "-o", "X.npy", "--method", "gs-jobcd"]
    result = solve(*arguments, "--max-iterations", 2, code=3)
    assert "max iterations" in result.output
    assert record()["status"] == "MAX_ITERATIONS"
    assert record()["iterations"] == 2
    assert_feasible(np.load("X.npy"))


def test_unbounded_ends_with_3(folder):
    np.save("concave.npy", -np.load("A.npy"))
    solve("quadratic", "concave.npy", "-s", "5,3", "-o", "X.npy", "--method", "gs-jobcd", code=3)
    assert record()["status"] == "UNBOUNDED"
    assert np.load("X.npy").shape == (N, N)


def test_resume_from_a_checkpoint(folder):
    """Two halves are bit for bit the whole."""
    line = "procrustes S.npy T.npy -s 5,3 --method gs-jobcd --tolerance 0"
    solve(line, "-o", "whole.npy", "--max-iterations", 20, code=3)
    solve(line, "-o", "X.npy", "--max-iterations", 8, "--checkpoint", "saved", code=3)
    assert not np.array_equal(np.load("X.npy"), np.load("whole.npy"))
    solve(line, "-o", "X.npy", "--max-iterations", 20, "--checkpoint", "saved", code=3)
    assert record()["iterations"] == 20
    assert np.load("X.npy").tobytes() == np.load("whole.npy").tobytes()
    result = solve(line, "-o", "X.npy", "--seed", 1, "--checkpoint", "saved", code=1)
    assert result.output.startswith(
        "Error: checkpoint saved belongs to another run: seed is 0 there and 1 here"
    )


@pytest.mark.parametrize("name", ["minimize", "write"])
def test_ctrl_c_after_the_last_iteration_waits_until_files_are_written(
    folder, monkeypatch, ctrl_c_is_heard, name
):
    """A function ends, and Ctrl-C comes before it has given its result to anybody."""
    function = getattr(solving, name)

    def interrupted(*arguments, **options):
        result = function(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(solving, name, interrupted)
    solve("quadratic A.npy -s 5,3 -o X.npy --method riemannian-lbfgs")
    assert_feasible(np.load("X.npy"))
    assert record()["status"] == "CONVERGED"
    assert not list(folder.glob(".*")), "left over"


def test_ctrl_c_writes_what_there_is(folder):
    """A run without end, interrupted once it has begun: X is there."""
    arguments = "quadratic big.npy -s 150,150 -o X.npy --method gs-jobcd --tolerance 0"
    arguments += " --checkpoint c"
    np.save("big.npy", positive_definite(300, 1e12, 0))
    command = [sys.executable, "-m", "jorth", "solve", *arguments.split()]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process = subprocess.Popen(command, text=True, **pipes)
    while not (folder / "c").exists() and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, output + errors
    assert record()["status"] == "INTERRUPTED"
    assert jorth.residual(np.load("X.npy"), jorth.Signature(150, 150)) < 1e3 * 300 * U
