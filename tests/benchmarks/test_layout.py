"""`benchmarks/README.md`, `make bench` and the docs name the scripts that there are."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "benchmarks" / "README.md").read_text()
PARTS = {"training_tasks.py"}


def test_every_script_is_listed():
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - PARTS
    assert set(re.findall(r"^\| `(\w+\.py)`", README, re.M)) == scripts
    assert all(name in README for name in PARTS)


def test_make_bench_runs_the_scripts_that_are_marked():
    run = re.findall(r"python benchmarks/(\w+\.py)", (ROOT / "Makefile").read_text())
    assert run == re.findall(r"^\| `(\w+\.py)` \\\*", README, re.M)


def test_every_picture_has_its_source_and_its_page():
    pictures = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert pictures == set(re.findall(r"`(\w+\.png)`", README))
    docs = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    assert not {name for name in pictures if name not in docs}


def test_the_docs_name_no_script_that_is_gone():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(r"benchmarks/([\w/]+\.(?:py|yml))", page.read_text()):
            assert (ROOT / "benchmarks" / name).exists(), f"{page.name}: {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_every_script_finds_what_it_imports(path):
    importlib.import_module(f"benchmarks.{path.stem}")
