"""Pages of the docs as programs: blocks of Python and lines of `jorth`, run in their order."""

from __future__ import annotations

import re
import shlex
import warnings
from pathlib import Path

from jorth.cli import main
from jorth.group.time_column import OtherTimeWarning

BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"\]\(\.\./images/tutorials/([^)]+)\)")
ELSEWHERE = {"jorth demo"}
"""Lines that take long; tests/cli runs them."""


def run_page(page: Path) -> dict[str, object]:
    """Run the blocks of a page in the present folder; return their namespace. A failure raises."""
    namespace: dict[str, object] = {}
    for number, (language, block) in enumerate(BLOCK.findall(page.read_text())):
        if language == "python":
            exec(compile(block, f"{page.name} block {number}", "exec"), namespace)
        else:
            run_lines(block)
    return namespace


def run_lines(block: str) -> None:
    """Run the lines of a shell that call `jorth`; a line that fails raises."""
    for line in block.splitlines():
        if line.startswith("jorth ") and line not in ELSEWHERE:
            with warnings.catch_warnings():  # which a page may show
                warnings.simplefilter("default", OtherTimeWarning)
                assert not main(shlex.split(line, comments=True)[1:], standalone_mode=False)


def pictures(page: Path) -> list[str]:
    """The names of the pictures that a tutorial shows, which it draws when it runs."""
    return PICTURE.findall(page.read_text())
