"""Run the tutorials of the docs, and put the pictures they draw into docs/images/tutorials.

python -m tests.tutorials             # all of them
python -m tests.tutorials torch_user  # one
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.pages import pictures, run_page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "tutorials"
PICTURES = ROOT / "docs" / "images" / "tutorials"


def draw(page: Path) -> None:
    """Run a page in an empty folder and keep its pictures."""
    with TemporaryDirectory(prefix="jorth-tutorial-") as folder:
        os.chdir(folder)
        run_page(page)
        for name in pictures(page):
            shutil.copyfile(name, PICTURES / name)
            print(f"docs/images/tutorials/{name}")
        os.chdir(ROOT)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(path.stem for path in PAGES.glob("*.md")):
        draw(PAGES / f"{name}.md")
