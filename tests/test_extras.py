"""Without the optional packages jorth works, and says what to install for the rest."""

import ast
import json
import re
import subprocess
import sys

import pytest

from jorth.extras import EXTRAS
from tests import rooms

PROJECT = rooms.tomllib.loads((rooms.ROOT / "pyproject.toml").read_text())["project"]
BLOCKED = [*EXTRAS, "markupsafe", "mpl_toolkits", "urllib3"]
# an action: what must be said if the packages are missing
ACTIONS = {
    "jorth.estimators.HyperbolicPCA": "jorth.estimators.HyperbolicPCA needs scikit-learn",
    "jorth.estimators.LorentzAligner": "jorth.estimators.LorentzAligner needs scikit-learn",
    "jorth.estimators.StructuralProbeEmbedding": (
        "jorth.estimators.StructuralProbeEmbedding needs scikit-learn"
    ),
    "from jorth.estimators import HyperbolicPCA": (
        "jorth.estimators.HyperbolicPCA needs scikit-learn"
    ),
    "jorth.datasets.digits()": "jorth.datasets.digits needs scikit-learn",
    "jorth.datasets.load('w1a', folder='.')": "the LIBSVM text w1a.txt needs scikit-learn",
    "jorth.datasets.load('w1a')": "the cache of data needs pooch",
    "jorth.datasets.fetch('w1a', folder='new')": "jorth.datasets.fetch needs pooch",
    "jorth.kge.load_triples('w1a.txt')": "the file w1a.txt needs pandas",
    "jorth.kge.draw_entities(None, 'a.png')": "jorth.kge.draw_entities needs matplotlib",
    "import jorth.adapters.pymanopt": "jorth.adapters.pymanopt needs pymanopt",
    "import jorth.adapters.geoopt": "jorth.adapters.geoopt needs geoopt",
    "import jorth.adapters.pykeen": "jorth.adapters.pykeen needs pykeen",
}
FIRST_LINES = """
import json, os, sys
for package in BLOCKED:
    sys.modules[package] = None
os.environ.pop("JORTH_DATA", None)
"""
ALL_ACTIONS = """
import jorth
with open("w1a.txt", "w") as stream:
    stream.write("1 1:0.5 2:1\\n-1 2:0.25\\n")
said = {}
for action in ACTIONS:
    try:
        exec(action)
    except ImportError as error:
        said[action] = str(error)
print(json.dumps(said))
"""
WORK = """
import numpy as np
import jorth
from jorth.cli import main

sig = jorth.Signature(3, 2)
source, target, planted = jorth.datasets.planted_procrustes(40, sig, seed=0)
assert jorth.minimize(jorth.Procrustes(source, target), signature=sig).value < 1e-8
assert jorth.procrustes(source, target, sig).value < 1e-8
help(jorth)
np.save("a.npy", np.eye(5) + source.T @ source)
main(["solve", "eigen", "a.npy", "--signature", "3,2", "-o", "x.npy"], standalone_mode=False)
main(["demo"], standalone_mode=False)
main(["kge", "train", "--epochs", "1"], standalone_mode=False)
"""


def without_optional_packages(code, folder):
    lines = [f"BLOCKED = {BLOCKED}", f"ACTIONS = {list(ACTIONS)}", FIRST_LINES, code]
    command = [sys.executable, "-c", "\n".join(lines)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert run.returncode == 0, run.stderr
    return run


def test_the_core_works_without_optional_packages(tmp_path):
    run = without_optional_packages(WORK, tmp_path)
    shown = run.stdout
    assert "planted Procrustes" in shown
    assert "digits, trace" not in shown
    assert 'jorth.datasets.digits needs scikit-learn; install it with: pip install "jorth' in shown
    assert 'the picture needs matplotlib; install it with: pip install "jorth[plots]"' in shown
    assert "model, history.csv and test.json are in" in shown
    assert not (tmp_path / "out" / "convergence.png").exists()


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    run = without_optional_packages(ALL_ACTIONS, tmp_path_factory.mktemp("without"))
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("action", ACTIONS)
def test_what_needs_an_extra_says_which(action, said):
    extra = re.fullmatch(
        rf'{re.escape(ACTIONS[action])}; install it with: pip install "jorth\[(\w+)\]"(; or .*)?',
        said[action],
    )
    assert extra, said[action]
    package = ACTIONS[action].rpartition(" ")[2]
    assert package in packages_of(extra[1])


def packages_of(extra):
    """The distributions that an extra installs, those of the extras in it included."""
    found = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        name = re.match(r"[\w-]+", requirement)[0]
        inner = re.search(r"^jorth\[(.*)\]", requirement)
        found |= set().union(*map(packages_of, inner[1].split(","))) if inner else {name}
    return found


def test_every_import_is_declared():
    """The packages that the source imports are those of the core and of the extras."""
    imported = {
        name.partition(".")[0]
        for path in rooms.modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        for name in names_imported(node)
    }
    core = {re.match(r"[\w-]+", requirement)[0] for requirement in PROJECT["dependencies"]}
    # with torch (of which the second is for type checkers alone), requests and numba
    comes_along = {"triton", "typing_extensions", "urllib3", "llvmlite"}
    ours = {"__future__", "jorth", *sys.stdlib_module_names}
    assert imported - ours - comes_along == core | set(EXTRAS)


def names_imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []


def test_all_has_every_package_and_dev_what_the_tests_need():
    extras = set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"}
    assert packages_of("all") == set().union(*map(packages_of, extras))
    assert set().union(*map(packages_of, extras)) - packages_of("dev") == {"benchopt", "cdopt"}
