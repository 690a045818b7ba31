"""Every block of Python and every `jorth` line of README and docs runs; examples run; docs name
what exists."""

import ast
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import jorth
from jorth.extras import DISTRIBUTIONS, EXTRAS
from tests.pages import BLOCK, pictures, run_page
from tests.test_extras import names_imported, packages_of

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHORT = {"lorentz_digits.py": ["25"]}
"""Arguments with which an example takes a few seconds."""
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of a page run in order in one namespace; their assert lines are the check."""
    monkeypatch.chdir(tmp_path)
    try:
        run_page(page)
    finally:
        pyplot.close("all")
    drawn = {path.name for path in tmp_path.glob("*.png")}
    assert drawn >= set(pictures(page)), "a tutorial draws the pictures that it shows"


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/quickstart.md"])
def test_front_pages_show_runs_that_move(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = run_page(ROOT / name)
    runs = {key: value for key, value in shown.items() if isinstance(value, jorth.Result)}
    assert set(runs) == {"fit", "result"}
    assert min(run.iterations for run in runs.values()) >= 1
    assert all(run.success for run in runs.values())
    planted = shown["planted" if "planted" in shown else "X"]
    assert np.abs(shown["fit"].x - planted).max() < 0.02
    if "planted" in shown:  # by a robust function, although ten points are wrong
        assert np.abs(shown["result"].x - planted).max() < 0.02
        misled = jorth.procrustes(shown["source"], shown["target"], shown["sig"])
        assert np.abs(misled.x - planted).max() > 0.05


@pytest.mark.parametrize(
    "page", [page for page in TUTORIALS if "pip install" in page.read_text()], ids=lambda p: p.stem
)
def test_a_tutorial_installs_what_it_imports(page):
    """The extras in its install line have every package that its code and its commands need."""
    text = page.read_text()
    code = "\n".join(block for language, block in BLOCK.findall(text) if language == "python")
    needed = {
        DISTRIBUTIONS.get(package, package)
        for node in ast.walk(ast.parse(code))
        for package in {name.partition(".")[0] for name in names_imported(node)} & set(EXTRAS)
    }
    if "jorth.estimators" in code or "jorth.datasets.digits" in code:
        needed.add("scikit-learn")
    if re.search(r"\]\(\.\./images/tutorials/|^jorth kge (draw|train)", text, re.M):
        needed.add("matplotlib")
    extras = re.findall(r'pip install "?jorth(?:\[([\w,]+)\])?', text)
    installed = set().union(*(packages_of(name) for name in ",".join(extras).split(",") if name))
    assert needed <= installed


def test_every_picture_of_the_tutorials_is_shown_by_one():
    committed = {path.name for path in (ROOT / "docs" / "images" / "tutorials").iterdir()}
    assert committed == {name for page in TUTORIALS for name in pictures(page)}


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name
)
def test_examples_run(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(example), *SHORT.get(example.name, [])])
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
