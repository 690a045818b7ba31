"""What the program tells on a terminal: text from files in safe form, and long waits."""

from __future__ import annotations

from collections.abc import Callable

before_compiling: list[Callable[[], object]] = []
"""Called before a function is compiled whose code is not on the disk."""


def visible(text: str) -> str:
    r"""Return the text with escapes such as \x1b for all that is not printable."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
