"""Every block of Python and every `jorth` line of README and docs runs; examples run; docs name
what exists."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from jorth.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHORT = {"lorentz_digits.py": ["25"]}
"""Arguments with which an example takes a few seconds."""
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
ELSEWHERE = {"jorth demo"}
"""Lines that take long; tests/cli runs them."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """The blocks of a page run in order in one namespace; their assert lines are the check."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for number, (language, block) in enumerate(BLOCK.findall(page.read_text())):
        if language == "python":
            exec(compile(block, f"{page.name} block {number}", "exec"), namespace)
        else:
            run_lines(block)


def run_lines(block):
    """The lines of a shell that call `jorth`; a line that fails raises."""
    for line in block.splitlines():
        if line.startswith("jorth ") and line not in ELSEWHERE:
            assert not main(shlex.split(line, comments=True)[1:], standalone_mode=False)


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
