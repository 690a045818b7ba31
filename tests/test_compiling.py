"""Compiled functions: parts of others, beside a user's own, and with no folder to keep them."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.core.caching import FunctionCache

import jorth
from jorth import compiling
from jorth.compiling import compiler

NOWHERE = "/proc/nowhere"
MODULES = """
import jorth.linalg._jacobi_numba, jorth.objectives._probe_numba
import jorth.plane._numba, jorth.solvers.jobcd._sweeps_numba
from jorth.plane._numba import cosh_of
assert cosh_of(0.75) == 1.25
assert cosh_of._cache.cache_path is None, cosh_of._cache.cache_path
"""
CALLS = {
    "minimize": """
from jorth import HyperbolicEigenvalue, Signature, minimize
import numpy as np
objective = HyperbolicEigenvalue(np.diag([2.0, 1.0, 3.0]))
result = minimize(objective, signature=Signature(2, 1), method="gs-jobcd")
assert result.success
""",
    "eigh": """
from jorth import Signature, eigh
import numpy as np
values, X = eigh(np.diag([2.0, 1.0, 3.0]), Signature(2, 1))
assert np.allclose(sorted(values), [-3, 1, 2])
""",
    "JOBCD": """
from jorth import Signature
from jorth.optim import JOBCD
import torch
x = torch.nn.Parameter(torch.eye(4, dtype=torch.float64))
step = JOBCD([x], signature=Signature(2, 2), lr=0.01)
(x * torch.arange(16.0).reshape(4, 4)).sum().backward()
step.step()
assert not torch.equal(x, torch.eye(4, dtype=torch.float64))
""",
    "StructuralProbe": """
from jorth import StructuralProbe, Signature
import numpy as np, torch
points = np.random.default_rng(0).standard_normal((6, 4))
targets = np.linalg.norm(points[:, None] - points, axis=-1)
probe = StructuralProbe(points, targets, signature=Signature(3, 1))
value, gradient = probe.value_and_gradient(torch.eye(4, dtype=torch.float64))
assert torch.isfinite(gradient).all()
""",
}


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


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_the_front_doors_work(unwritable, name):
    run_there(unwritable, CALLS[name])


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


def test_what_compiled_code_calls_is_a_part_of_it(function, caplog):
    double, folder = function
    inner = compiler()(double)
    namespace = {"inner": inner}
    path = folder.parent / "calling.py"
    path.write_text("def twice(x):\n    return inner(inner(x))\n")
    exec(compile(path.read_text(), str(path), "exec"), namespace)
    with caplog.at_level("INFO", logger="jorth.compiling"):
        assert compiler()(namespace["twice"])(3.0) == 12.0
        assert [record.args for record in caplog.records] == [("twice",)]
        assert not inner.signatures
        assert inner(3.0) == 6.0
        assert [record.args for record in caplog.records] == [("twice",), ("double",)]


def test_another_numba_compiles_every_function_for_itself(function, monkeypatch):
    monkeypatch.setattr(compiling, "LINKS_PARTS", False)
    double, _ = function
    inner = compiler()(double)

    def twice(x):
        return inner(inner(x))

    assert compiler()(twice)(3.0) == 12.0
    assert len(inner.signatures) == 1  # compiled for itself too


USERS_CODE = """
import numba
import numpy as np

from jorth.compiling import compiler


@compiler()
def ours(a, b):
    return np.dot(a, b) + np.linalg.inv(a)


@numba.njit
def theirs(a, b):
    c = np.dot(a, b)
    if c[0, 0] > 1e9:
        raise ValueError("too large")
    return np.linalg.solve(a, c) + np.linalg.inv(a) + ours(a, b)


a = np.diag([1.0, 2.0, 4.0]) + 0.1
b = a.T.copy()
for order in ORDER:
    order(a, b)
np.testing.assert_allclose(theirs(a, b), b + 2 * np.linalg.inv(a) + a @ b)
for wrong, kind in ((np.zeros((3, 3)), np.linalg.LinAlgError), (np.full((3, 3), 1e9), ValueError)):
    try:
        theirs(wrong, wrong)
    except kind:
        continue
    raise AssertionError(f"no {kind}")
"""


@pytest.mark.parametrize("order", ["[ours, theirs]", "[theirs, ours]"])
def test_a_users_own_numba_code_is_left_alone(order, tmp_path):
    """Functions of numba itself that both call are compiled once, as parts of ours or whole."""
    path = tmp_path / "users.py"
    path.write_text(USERS_CODE.replace("ORDER", order))
    subprocess.run([sys.executable, str(path)], check=True)


def test_a_folder_that_has_gone_costs_time_only(function):
    double, folder = function
    compiled = compiler()(double)
    shutil.rmtree(folder)
    folder.touch()
    assert compiled(3.0) == 6.0


def test_numba_is_asked_in_one_place():
    root = Path(jorth.__file__).parent
    asking = [
        path.relative_to(root) for path in root.rglob("*.py") if "from numba" in path.read_text()
    ]
    assert asking == [Path("compiling.py")]


def test_what_was_kept_of_a_module_that_moved_is_compiled_again(function, monkeypatch):
    double, _ = function
    assert compiler()(double)(3.0) == 6.0

    def gone(self, signature, target):
        raise ModuleNotFoundError("No module named 'jorth.moved'")

    monkeypatch.setattr(FunctionCache, "load_overload", gone)
    assert compiler()(double)(3.0) == 6.0
