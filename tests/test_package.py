"""The package: its metadata, what is in wheel and sdist, and the files of CI."""

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser

import pytest

import jorth
from tests import fresh_install
from tests.rooms import ROOT, tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?\s*(?:>=\s*([\d.]+))?")
HEADING = re.compile(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


# -- metadata


def test_the_version_is_in_one_place():
    assert PROJECT["dynamic"] == ["version", "readme"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", jorth.__version__)
    version, released = HEADING.search((ROOT / "CHANGELOG.md").read_text()).groups()
    citation = read_yaml("CITATION.cff")
    assert citation["version"] == version == jorth.__version__
    assert str(citation["date-released"]) == released


# -- wheel and sdist


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with wheel and sdist, made without an environment of its own."""
    pytest.importorskip("hatch_fancy_pypi_readme")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    """The names in the wheel, and its metadata."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith("/METADATA"))
        return names, Parser().parsestr(archive.read(metadata).decode())


def test_the_wheel_has_the_package_and_nothing_else(wheel, built):
    names, metadata = wheel
    source = ROOT / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.suffix in {".py", ".pyi", ".typed", ".css", ".html"} or path.name == "py.typed"
    }
    own = {name for name in names if not name.startswith("jorth-")}
    assert own == expected
    assert {"jorth/py.typed", "jorth/__init__.pyi"} <= own
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert next(built.glob("*.whl")).stat().st_size < 2e6
    assert metadata["Version"] == jorth.__version__
    assert metadata["License-Expression"] == "BSD-3-Clause"
    assert set(PROJECT["optional-dependencies"]) == set(metadata.get_all("Provides-Extra"))


def test_the_sdist_has_source_and_tests(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = "pyproject.toml README.md LICENSE CITATION.cff CHANGELOG.md constraints-oldest.txt"
    assert {*expected.split(), "src/jorth/py.typed", "tests/test_package.py"} <= names
    assert not {name for name in names if name.endswith((".png", ".jsonl", ".gz", ".nbc", ".pyc"))}
    assert sdist.stat().st_size < 4e6


def test_the_readme_renders_without_links_into_the_repository(wheel):
    readme, description = (ROOT / "README.md").read_text(), wheel[1].get_payload()
    targets = re.findall(r"\]\(([^)]*)\)", description)
    assert all(target.startswith(("https://", "http://", "#")) for target in targets)
    assert set(re.findall(r"\]\((https?:[^)]*)\)", readme)) <= set(targets)
    assert readme.count("```") == description.count("```")
    markdown = pytest.importorskip("readme_renderer.markdown")
    rendered = markdown.render(description)
    assert rendered is not None
    assert re.search(r"<h1.*jorth.*</h1>", rendered, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["*.whl", "*.tar.gz"])
def test_it_works_in_an_empty_environment(kind, built):
    (package,) = built.glob(kind)
    fresh_install.try_package(package, ROOT / "constraints.txt")


# -- the oldest packages, and CI


def floors():
    """The lowest version of every package, those of the extras for users included."""
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"]]
    for extra in sorted(set(extras) - {"all", "dev", "docs"}):
        needed += extras[extra]
    found = {}
    for requirement in needed:
        name, version = REQUIREMENT.match(requirement).groups()
        if name != "jorth":
            assert found.setdefault(name, version) == version, f"two floors of {name}"
    return found


def test_the_oldest_packages_are_those_of_the_floors():
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    lowest = floors()
    assert set(pinned) <= set(lowest)
    for package, version in pinned.items():
        assert padded(version) == padded(lowest[package]), package
    named = {re.match(r"[\w.-]+", requirement)[0] for requirement in PROJECT["dependencies"]}
    assert named <= set(pinned)


def padded(version):
    return [*map(int, version.split(".")), 0, 0][:3]


def read_yaml(name):
    return pytest.importorskip("yaml").safe_load((ROOT / name).read_text())
