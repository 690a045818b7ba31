"""Every block of Python and every `jorth` line of README and docs runs; examples run; docs name
what exists."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import jorth
from tests.pages import pictures, run_page

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
SHORT = {"lorentz_digits.py": ["25"]}
"""Arguments with which an example takes a few seconds."""


@pytest.mark.parametrize("page", sorted({*PAGES} - {*TUTORIALS}), ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of a page run in order in one namespace; their assert lines are the check.

    `tests/test_tutorials.py` runs the tutorials.
    """
    monkeypatch.chdir(tmp_path)
    try:
        run_page(page)
    finally:
        pyplot.close("all")


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
