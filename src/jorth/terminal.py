"""Text from files on a terminal: control characters are shown, not obeyed."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""The text with what a terminal may obey or hide, as escapes, written as Python does: \x1b, \u202e.

    Letters, marks and symbols of all scripts stay, and so does the space; line ends do not.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
