"""Compiled functions: kept on the disk, and run where no folder can keep them."""

import importlib.util
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import jorth
from jorth._numba import _Report, compiler

NOWHERE = "/proc/nowhere"
MODULES = """
import jorth.linalg._jacobi_numba
import jorth.plane._numba, jorth.solvers.jobcd._sweeps_numba
from jorth.plane._numba import cosh_of
assert cosh_of(0.75) == 1.25
assert cosh_of._cache.cache_path is None, cosh_of._cache.cache_path
"""


@pytest.fixture(scope="module")
def unwritable(tmp_path_factory):
    """The package with files in place of numba's folders: not even root can write there."""
    root = tmp_path_factory.mktemp("installed")
    copy = shutil.copytree(
        Path(jorth.__file__).parent, root / "jorth", ignore=shutil.ignore_patterns("__pycache__")
    )
    for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
        (folder / "__pycache__").touch()
    return root


def run_there(root, code):
    nowhere = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), NOWHERE)
    environment = os.environ | nowhere | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    code = f"import jorth\nassert jorth.__file__.startswith({str(root)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_everything_compiled_loads_and_runs(unwritable):
    run_there(unwritable, MODULES)


@pytest.fixture
def function(tmp_path, monkeypatch):
    """A function in a file of its own, and the folder that its compiled form is kept in."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "made.py"
    path.write_text("def double(x):\n    return 2 * x\n")
    specification = importlib.util.spec_from_file_location("made", path)
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "made", module)
    specification.loader.exec_module(module)
    return module.double, tmp_path / "cache"


def test_what_is_compiled_is_kept(function):
    double, folder = function
    assert compiler()(double)(3.0) == 6.0
    assert list(folder.rglob("*.nbc"))
    again = compiler()(double)
    assert again(3.0) == 6.0
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("kind", ["terminal", "notebook", "file"])
def test_a_person_is_told_once_of_compilation(monkeypatch, tmp_path, kind):
    class Stream(io.StringIO):
        def isatty(self):
            return kind == "terminal"

    Stream.__module__ = "ipykernel.iostream" if kind == "notebook" else "io"
    stream = Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(_Report, "told", False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    for number in range(2):
        made = compiler()(lambda x: x + number)  # noqa: B023
        made(1.0)
    assert stream.getvalue().count("jorth compiles") == (kind != "file")


def test_numba_is_asked_in_one_place():
    root = Path(jorth.__file__).parent
    asking = [
        path.relative_to(root) for path in root.rglob("*.py") if "from numba" in path.read_text()
    ]
    assert asking == [Path("_numba.py")]
