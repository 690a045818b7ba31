"""`benchmarks/README.md` and `make bench` name the scripts and pictures that there are."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "benchmarks" / "README.md").read_text()
SHARED = {"kernels.py", "work.py", "kge_page.py", "kge_defaults_page.py"} | {
    f"training_{part}.py" for part in ("tasks", "methods", "runs", "results", "page", "picture")
}
"""Modules that the scripts import."""


def test_every_script_is_listed_with_its_command():
    scripts = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - SHARED
    assert set(re.findall(r"^\| `(\w+\.py)`", README, re.M)) == scripts
    assert set(re.findall(r"python benchmarks/(\w+\.py)", README)) == scripts
    assert all(name in README for name in SHARED)


def test_make_bench_runs_the_scripts_that_are_marked():
    makefile = (ROOT / "Makefile").read_text()
    run = re.findall(r"python benchmarks/(\w+\.py)", makefile)
    assert run == re.findall(r"^\| `(\w+\.py)` \\\*", README, re.M)
    page = (ROOT / "docs" / "results" / "performance.md").read_text()
    assert all(f"benchmarks/{name}" in page for name in run)


def test_every_picture_has_its_source():
    pictures = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert pictures == set(re.findall(r"`(\w+\.png)`", README))


def test_the_docs_name_no_script_that_is_gone():
    for page in (ROOT / "docs").rglob("*.md"):
        for name in re.findall(r"benchmarks/(\w+\.py)", page.read_text()):
            assert (ROOT / "benchmarks" / name).exists(), f"{page.name}: {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_every_script_finds_what_it_imports(path):
    importlib.import_module(f"benchmarks.{path.stem}")
