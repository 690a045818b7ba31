import re

import numpy as np
import pytest
import scipy.sparse
from click.testing import CliRunner
from PIL import Image

import jorth
from jorth.cli import COMMANDS, main
from jorth.datasets import REGISTRY


def test_help_lists_the_commands():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.output for name in COMMANDS)


def test_version():
    assert jorth.__version__ in CliRunner().invoke(main, ["--version"]).output


def test_demo_prints_and_draws(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "pictures")])
    assert result.exit_code == 0, result.output
    # six rows: value, relative gap, gradient norm, ...; a slow machine may reach a time limit
    rows = re.findall(
        r"^ *(?:gs|j|vr-j)-jobcd +\S+ +(\S+) .* (\w+) *$", result.output, re.MULTILINE
    )
    assert len(rows) == 6
    assert all(float(gap) < (1e-9 if ended == "converged" else 1) for gap, ended in rows)
    assert "converged" in [ended for _, ended in rows]
    with Image.open(tmp_path / "pictures" / "convergence.png") as picture:
        assert min(picture.size) >= 500


def test_unknown_option():
    result = CliRunner().invoke(main, ["demo", "--sed", "1"])
    assert result.exit_code == 2
    assert "--seed" in result.output


def test_every_command_has_its_help():
    for name in COMMANDS:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, result.output
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2


@pytest.fixture
def folder(tmp_path):
    """A folder with eight images of mnist."""
    X = np.zeros((8, 5), dtype=np.uint8)
    X[0, :3] = 255, 51, 102
    np.savez(tmp_path / "mnist.npz", X=X)
    return tmp_path


def data(*arguments):
    return CliRunner().invoke(main, ["data", *map(str, arguments)])


def test_data_list(folder):
    lines = data("list", "--folder", folder).output.splitlines()
    for entry in REGISTRY.values():
        (row,) = (line.split() for line in lines if line.strip().startswith(f"{entry.name} "))
        assert ("x" in row) == (entry.shape is not None)
        assert ("mnist.npz" in row) == (entry.name == "mnist")
        assert ("fetch" in row) == (entry.url is not None and entry.name != "mnist")


def test_data_show(folder, monkeypatch):
    monkeypatch.setenv("JORTH_DATA", str(folder))
    output = data("show", "mnist").output
    assert re.search(r"^shape +8 x 5$", output, re.MULTILINE)
    assert re.search(r"^non-zero +3 of 40 \(7.50%\)$", output, re.MULTILINE)
    assert re.search(r"^range +0 to 1 \(divided by 255\)$", output, re.MULTILINE)
    assert re.search(r"^\|\|D\|\|_F\^2 +1.2$", output, re.MULTILINE)  # 1 + 0.2^2 + 0.4^2
    assert re.search(r"^paper +HEVP 1000 x 780, HSPP 6000 x 92$", output, re.MULTILINE)


def test_data_show_of_a_sparse_file(tmp_path):
    """A sparse matrix with only positive entries still has zeros; a full one does not."""
    X = np.full((2, 3), 2.5)
    X[1, 1] = 0
    scipy.sparse.save_npz(tmp_path / "sector_csr.npz", scipy.sparse.csr_array(X))
    np.savez(tmp_path / "sector.npz", X=X + 1)
    assert "range       0 to 2.5" in data("show", "sector", "--sparse", "--folder", tmp_path).output
    assert "range       1 to 3.5" in data("show", "sector", "--folder", tmp_path).output


def test_data_fetch_of_what_is_there(folder):
    result = data("fetch", "mnist", "--folder", folder)
    assert result.exit_code == 0
    assert str(folder / "mnist.npz") in result.output.replace("\n", "")
    assert "no checksum is recorded" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "w1a"], "Error: data set w1a: no checksum is known"),
        (["fetch", "tdt2"], "Error: data set tdt2 has no public address"),
        (
            ["fetch", "w1a", "--url", "http://127.0.0.1:9/w1a", "--sha256", "0" * 64],
            "Error: data set w1a: the download",
        ),
        (["show", "w1a"], "Error: data set w1a is not in"),
        (["show", "fashion"], "Error: name must be one of"),
    ],
)
def test_data_errors_are_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    result = data(*arguments, "--folder", tmp_path / "empty")
    assert result.exit_code == 1
    assert result.output.startswith(message)
    assert result.output.count("\n") == 1
