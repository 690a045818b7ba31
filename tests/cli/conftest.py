"""A folder with the matrices of all problems, and the command line on it."""

import signal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import jorth
from jorth.cli import main

PACKAGE = Path(jorth.__file__).parent.parent
SIGNS = np.array([1.0] * 5 + [-1.0] * 3)
N = len(SIGNS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the matrices of all problems."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((30, N))
    source, target, planted = jorth.datasets.planted_procrustes(40, jorth.Signature(5, 3), seed=1)
    C = rng.standard_normal((N, N))
    for name, matrix in dict(D=D, A=D.T @ D, S=source, T=target, planted=planted, C=C).items():
        np.save(tmp_path / f"{name}.npy", matrix)
    np.save(tmp_path / "weights.npy", np.diag(np.arange(1.0, N + 1)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ctrl_c_is_heard():
    """A shell starts what runs in its background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def solve(first, *others, code=0):
    """Run `jorth solve`; the first argument may be several words."""
    result = CliRunner().invoke(main, ["solve", *first.split(), *map(str, others)])
    assert code is None or result.exit_code == code, result.output
    return result
