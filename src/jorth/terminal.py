"""Text from files on a terminal: control characters are shown, not obeyed."""

from __future__ import annotations


def visible(text: str) -> str:
    r"""The text with escapes, as Python writes them, for what a terminal may obey or hide: \x1b.

    Letters, marks and symbols of all scripts stay, and so does the space; line ends do not.
    """
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
