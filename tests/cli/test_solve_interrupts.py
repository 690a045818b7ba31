"""Ctrl-C when `jorth solve` has something to lose: what was reached is written."""

import json
import os
import signal

import numpy as np
import pytest
from click.testing import CliRunner

from jorth.cli import main, solving
from jorth.signature import Signature


def then_interrupt(function, times=1):
    """The function, and Ctrl-C while it has not yet given its result to anybody."""

    def interrupted(*arguments, **options):
        result = function(*arguments, **options)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
        return result

    return interrupted


@pytest.fixture(autouse=True)
def ctrl_c_is_heard():
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def solve(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    G = rng.standard_normal((8, 6))
    np.save(tmp_path / "A.npy", G.T @ G + np.eye(6))

    def run(options):
        monkeypatch.chdir(tmp_path)
        line = f"solve quadratic A.npy -s 4,2 -o X.npy {options}"
        result = CliRunner().invoke(main, line)
        X, J = np.load(tmp_path / "X.npy"), Signature(4, 2).signs
        record = json.loads((tmp_path / "X.json").read_text())
        # n u ||X||^2, with a margin
        assert np.abs(X.T @ (J[:, None] * X) - np.diag(J)).max() <= 1e-10
        assert not list(tmp_path.glob(".*")), "left over"
        return result, record

    return run


@pytest.mark.parametrize("method", ["gs-jobcd", "riemannian-lbfgs"])
def test_after_the_last_iteration(solve, monkeypatch, method):
    monkeypatch.setattr(solving, "minimize", then_interrupt(solving.minimize))
    result, record = solve(f"--method {method}")
    assert result.exit_code == 0, result.output
    assert record["status"] == "CONVERGED"


def test_while_files_are_written(solve, monkeypatch):
    monkeypatch.setattr(solving, "write", then_interrupt(solving.write, times=3))
    result, _ = solve("--method gs-jobcd")
    assert result.exit_code == 0, result.output
