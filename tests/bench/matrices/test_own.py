"""Benchmarks on files of one's own, from the file to the page."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from jorth.bench import read_rows
from jorth.bench.matrices.cells import MatrixCell
from jorth.bench.matrices.own import open_own
from jorth.bench.matrices.problems import prepare
from jorth.bench.matrices.runner import tiny
from jorth.cli import main

SHORT = ("--max-evaluations", 2, "--solver", "UMCM")


@pytest.fixture
def D():
    return np.random.default_rng(0).standard_normal((9, 5))


@pytest.fixture
def folder(tmp_path, monkeypatch, D):
    """A working folder with the same rows in every format."""
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", D)
    np.savez("rows.npz", X=D, other=D[:2])
    scipy.io.savemat("rows.mat", {"X": D, "other": D[:2]})
    np.savetxt("rows.csv", D, delimiter=",", fmt="%.17g")
    np.savetxt("target.csv", D[:, ::-1], delimiter=",", fmt="%.17g")
    scipy.sparse.save_npz("sparse.npz", scipy.sparse.csr_array(D))
    return tmp_path


def bench(*arguments, code=0):
    result = CliRunner().invoke(main, ["bench", *map(str, arguments), "-o", "run"])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def problem_of(row):
    """The problem of a row, whose file is in the working folder."""
    cell = MatrixCell.from_json(row["cell"])
    return prepare(replace(cell, own=replace(cell.own, paths=(Path(cell.data),))))


@pytest.mark.parametrize(
    "arguments",
    [
        ["rows.npy"],
        ["rows.csv"],
        ["rows.npz", "--key", "X"],
        ["rows.mat", "--key", "X"],
        ["sparse.npz"],
    ],
)
def test_every_format_gives_the_same_problem(folder, D, arguments):
    output = bench("hevp", "--data", *arguments, "--problem", "race", *SHORT)
    assert f"{arguments[0]}: 9 x 5" in output
    (row,) = read_rows("run")
    content = (folder / arguments[0]).read_bytes()
    assert row["cell"]["data"] == arguments[0]
    assert row["cell"]["own"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert (row["cell"]["m"], row["cell"]["n"], row["cell"]["p"]) == (9, 5, 2)
    assert str(folder) not in json.dumps(row), "the folder of the data is in the row"
    assert row["notes"]["data_norm_squared"] == pytest.approx(np.sum(D * D), rel=1e-14)
    start = D @ problem_of(row).x0
    assert row["start_value"] == pytest.approx(-np.sum(start * start), rel=1e-12)


@pytest.mark.parametrize(("header", "rows"), [("auto", 9), ("yes", 9), ("no", 10)])
def test_a_header_of_numbers(folder, D, header, rows):
    """As pandas writes it: 0,1,2,..."""
    body = (folder / "rows.csv").read_text()
    (folder / "rows.csv").write_text("0,1,2,3,4\n" + body)
    bench("hevp", "--data", "rows.csv", "--header", header, "--problem", "race", *SHORT)
    (row,) = read_rows("run")
    assert row["cell"]["m"] == rows
    extra = 30 if header == "no" else 0  # 0^2 + 1^2 + ... + 4^2
    wanted = np.sum(D * D) + extra
    assert row["notes"]["data_norm_squared"] == pytest.approx(wanted, rel=1e-14)


def test_from_a_csv_to_a_page(folder):
    output = bench("hevp", "--data", "rows.csv", "--problem", "trace", *SHORT, "--report")
    assert "Report: run/report/index.html" in output
    page = (folder / "run" / "report" / "index.html").read_text()
    digest = hashlib.sha256((folder / "rows.csv").read_bytes()).hexdigest()
    assert f"all of rows.csv, sha256 {digest[:12]}" in page
    (row,) = read_rows("run")
    assert row["outcome"] == "done"
    assert row["gap"] is not None


def test_a_changed_file_is_another_problem(folder, D):
    arguments = ("hevp", "--data", "rows.npy", "--problem", "race", *SHORT)
    bench(*arguments)
    bench(*arguments)
    assert len(read_rows("run")) == 1
    np.save("rows.npy", 2 * D)
    bench(*arguments)
    first, second = read_rows("run")
    assert second["notes"]["data_norm_squared"] == 4 * first["notes"]["data_norm_squared"]


@pytest.mark.parametrize(
    ("signature", "signs", "p"),
    [("3,2", None, 3), ("lorentz", "-++++", 4), ("lorentz-last", None, 4), ("+-+-+", "+-+-+", 3)],
)
def test_signatures(folder, signature, signs, p):
    bench("hevp", "--data", "rows.npy", "-s", signature, "--problem", "race", *SHORT)
    (row,) = read_rows("run")
    assert (row["cell"]["p"], row["cell"]["own"]["signs"]) == (p, signs)
    cell = MatrixCell.from_json(row["cell"])
    wanted = signs or "+" * p + "-" * (5 - p)
    assert "".join("+" if sign > 0 else "-" for sign in cell.signature.signs) == wanted
    assert row["violation"] < 1e-10


def test_sizes_are_drawn_by_the_seed(folder, D):
    output = bench(
        *("probe", "--data", "rows.npy", "--size", "6x3", "--p-share", 0.4, *SHORT, "--seed", 1)
    )
    assert "6 of 9 rows and 3 of 5 columns" in output
    (row,) = read_rows("run")
    own, _ = open_own(folder / "rows.npy")
    part, targets, _ = own.load(6, 3, seed=0)
    assert targets is None
    assert row["notes"]["data_norm_squared"] == pytest.approx(np.sum(part * part), rel=1e-14)
    assert all(any(np.isin(line, whole).all() for whole in D) for line in part)
    assert row["notes"]["subset"].startswith("random rows and columns of rows.npy")


def test_large_files_are_cut_to_a_size_that_runs(folder):
    np.save("large.npy", np.random.default_rng(1).standard_normal((2100, 110)))
    output = bench("probe", "--data", "large.npy", "--max-evaluations", 1, "--solver", "UMCM")
    assert "2000 of 2100 rows and 100 of 110 columns" in output


def test_procrustes_with_targets(folder, D):
    """The targets have the columns of the rows in reverse, so f(I) is known."""
    bench("procrustes", "--data", "rows.npy", "--target", "target.csv", *SHORT)
    (row,) = read_rows("run")
    assert row["start_value"] == pytest.approx(np.sum((D - D[:, ::-1]) ** 2) / (2 * 9), rel=1e-12)
    assert row["optimum"] < row["start_value"]
    own = row["cell"]["own"]
    assert own["target"] == "target.csv"
    assert own["target_sha256"] == hashlib.sha256((folder / "target.csv").read_bytes()).hexdigest()


def test_procrustes_without_targets_plants_them(folder, D):
    bench("procrustes", "--data", "rows.npy", "-s", "lorentz", *SHORT)
    (row,) = read_rows("run")
    targets = problem_of(row).objective._target.numpy()
    assert row["start_value"] == pytest.approx(np.sum((D - targets) ** 2) / (2 * 9), rel=1e-12)
    # the noise is a tenth of the size of the targets, so the best value is near a hundredth
    size = np.mean(targets**2) * 5 / 2
    assert row["optimum"] < 0.1 * size
    assert row["notes"]["noise"] == pytest.approx(0.1 * np.sqrt(np.mean(targets**2)), rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["hevp", "--data", "no.csv"], "--data must name a file, and there is no no.csv", 2),
        (["hevp", "--data", "rows.npz"], "it holds X, other", 1),
        (["hevp", "--data", "one.csv"], "at least 2 rows and 2 columns, got 3 x 1", 1),
        (["hevp", "--data", "zero.csv"], "must have an entry that is not zero", 1),
        (["hevp", "--data", "rows.npy", "--size", "10x5"], "must fit rows.npy, which is 9 x 5", 2),
        (["hevp", "--data", "rows.npy", "-s", "2,2"], "must have 5 signs", 2),
        (["hevp", "--data", "rows.npy", "-s", "3,2", "--p-share", "0.5"], "exclude each other", 2),
        (["hevp", "--data", "randn", "-s", "3,2"], "--signature needs a file by --data", 2),
        (["hevp", "--data", "rows.npy", "--protocol", "paper"], "must not be a file", 2),
        (["hevp", "--data", "rows.npy", "--data", "../x/rows.npy"], "different names", 2),
        (["procrustes", "--data", "digits"], "--data must end in .npy", 2),
        (["procrustes", "--target", "target.csv"], "--target needs a file by --data", 2),
        (
            ["procrustes", "--data", "rows.npy", "--target", "one.csv"],
            "one.csv must have the shape of rows.npy, 9 x 5, got 3 x 1",
            1,
        ),
    ],
)
def test_what_cannot_be_used(folder, arguments, message, code):
    np.savetxt("one.csv", np.ones((3, 1)), delimiter=",")
    np.savetxt("zero.csv", np.zeros((3, 3)), delimiter=",")
    assert message in bench(*arguments, code=code)
    assert not (folder / "run").exists()


def test_rows_that_are_aligned_already(folder):
    output = bench("procrustes", "--data", "rows.npy", "--target", "rows.csv", *SHORT, code=1)
    assert "the rows must not be aligned already" in output


def test_keys_of_older_rows_hold():
    cell = MatrixCell(problem="race", method="UMCM", data="randn", m=9, n=4, p=2)
    assert "own" not in json.loads(cell.key)
    assert MatrixCell.from_json(json.loads(cell.key)) == cell


def test_the_warm_up_needs_no_file(folder):
    own, _ = open_own(folder / "rows.npy")
    cell = MatrixCell(problem="trace", method="UMCM", data="rows.npy", m=9, n=5, p=2, own=own)
    assert tiny(cell).own is None
    assert prepare(replace(tiny(cell), ridge=0.1)).signature.n == 6
