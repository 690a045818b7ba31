"""Text from files on a terminal: control characters are escaped."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""The text with escapes such as \x1b for all that is not printable, line ends included."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
