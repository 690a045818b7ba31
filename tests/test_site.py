"""The site: its navigation has every page, and its reference every public name once.

`make docs` builds it and checks its links.
"""

import ast
import doctest
import functools
import importlib
import inspect
import re
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
import yaml

import jorth
from tests.public import public_names

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SITE = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
FROM_THE_ROOT = {"changelog.md", "contributing.md", "license.md"}
"""Pages that docs/site/links.py makes of files outside docs."""
ADAPTERS = ("geoopt", "pykeen", "pymanopt")
BEYOND = {
    "jorth.objectives": (
        "AbstractObjective",
        "AutogradObjective",
        "QuadraticForm",
        "check_objective",
    ),
    "jorth.solvers": ("AbstractSolver", "Problem", "State", "BlockStationarity", "HessianCheck"),
    "jorth.plane": ("PlaneSolution",),
    "jorth.linalg": ("CS", "HSVD"),
    "jorth.datasets": ("DataSet", "PlantedProcrustes"),
    "jorth.kge": (
        *("Answer", "Disc", "Explanation", "Fact", "Link", "Neighbour", "Ranking", "Training"),
    ),
    "jorth.optim": ("Split",),
}
"""What the reference also has: what objectives and solvers of one's own need, and records."""


def entries(nav):
    """The pages of a navigation, in order."""
    for entry in nav:
        for item in entry.values() if isinstance(entry, dict) else [entry]:
            yield from entries(item) if isinstance(item, list) else [item]


def test_the_navigation_has_every_page_once():
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert Counter(entries(SITE["nav"])) == Counter([*pages, *FROM_THE_ROOT])


def test_pages_made_of_other_files_are_known():
    hook = (DOCS / "site" / "links.py").read_text()
    places = re.search(r"IN_NAVIGATION = \{(.*?)\}", hook, re.DOTALL)[1]
    assert set(re.findall(r': "(\S+)"', places)) == FROM_THE_ROOT


def described():
    """The names that the reference describes, as its pages write them."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return re.findall(r"^::: (jorth\S+)", "\n".join(page.read_text() for page in pages), re.M)


def thing(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def classes_of(adapter):
    """The classes of an adapter, read from its source, as its library may be missing."""
    tree = ast.parse((ROOT / "src" / "jorth" / "adapters" / f"{adapter}.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield f"jorth.adapters.{adapter}.{node.name}"


def public_things():
    """Every public function, class and constant with its names; some have two."""
    things = {}
    for name in public_names():
        value = thing(name)
        is_module = isinstance(value, ModuleType)  # jorth.nn.init
        for part in [f"{name}.{each}" for each in value.__all__] if is_module else [name]:
            things.setdefault(id(thing(part)), []).append(part)
    return list(things.values())


def test_the_reference_has_every_public_name_once():
    names = described()
    assert Counter(names).most_common(1)[0][1] == 1
    of_adapters = [name for adapter in ADAPTERS for name in classes_of(adapter)]
    beyond = [f"{module}.{name}" for module, names in BEYOND.items() for name in names]
    wanted = [*public_things(), *([name] for name in (*of_adapters, *beyond))]
    counts = {aliases[0]: sum(alias in names for alias in aliases) for aliases in wanted}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    assert set(names) <= {alias for aliases in wanted for alias in aliases}


def arguments_of(docstring):
    """The names under Args."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", docstring, re.M)
    return set(re.findall(r"^    \*{0,2}(\w+):", section[1], re.M)) if section else set()


def test_public_functions_describe_their_arguments():
    functions = [thing(aliases[0]) for aliases in public_things()]
    functions = [function for function in functions if inspect.isfunction(function)]
    missing = {
        function.__qualname__: set(inspect.signature(function).parameters)
        - arguments_of(inspect.getdoc(function))
        for function in functions
    }
    assert len(functions) > 40
    assert {name: names for name, names in missing.items() if names} == {}


def examples():
    """The names whose docstrings must have an example: functions and classes, each once."""
    things = [aliases[0] for aliases in public_things() if callable(thing(aliases[0]))]
    return [*things, *(name for adapter in ADAPTERS for name in classes_of(adapter))]


@pytest.mark.parametrize("name", examples())
def test_every_docstring_has_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if ".adapters." in name:
        pytest.importorskip(name.split(".")[2])
    shown = dict(jorth=jorth, np=np, torch=torch, functools=functools, warnings=warnings)
    docstring = inspect.getdoc(thing(name))
    example = doctest.DocTestParser().get_doctest(docstring, shown, name, None, 0)
    assert example.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    report = []
    runner.run(example, out=report.append)
    assert not report
