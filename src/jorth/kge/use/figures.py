"""What the pictures of a model share: colours, and files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from jorth._files import make_folder, replacing
from jorth.arrays import file_path, shown
from jorth.terminal import visible

SUFFIXES = (".png", ".pdf", ".svg")
GREY, INK, BLUE, ORANGE = "#b5b5b5", "#222222", "#0072B2", "#D55E00"


def short(text: str, most: int = 30) -> str:
    """A name from a file, printable and not too long."""
    shown = visible(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def picture_path(path: str | os.PathLike[str]) -> Path:
    """A path of a picture, or an error."""
    found = file_path(path, "path")
    if found.suffix.lower() not in SUFFIXES:
        raise ValueError(f"path must end in .png, .pdf or .svg, got {shown(found.name)}")
    return found


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib, in the format of the suffix."""
    make_folder(path.parent, "path")
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format=path.suffix[1:].lower())
