"""What the program shows on a terminal: text from files in safe form, and tables of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

WIDTH = 80
"""A narrower terminal breaks the lines, so that no figure is cut off."""


def visible(text: str) -> str:
    r"""Return the text with escapes such as \x1b for all that is not printable."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def number_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: Collection[int] = (0,),
    title: str = "",
    caption: str = "",
) -> Table:
    """Return a table whose columns ``names`` may be broken, while numbers are on one line."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    above, below = (Text(visible(text)) if text else None for text in (title, caption))
    table = Table(title=above, caption=below, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.padding = (0, 1, 0, 0)
    for place, heading in enumerate(headings):
        name = place in names
        side: Literal["left", "right"] = "left" if name else "right"
        table.add_column(Text(heading), justify=side, no_wrap=not name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def show(*parts: RenderableType) -> None:
    """Print on the terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    console.width = max(WIDTH, console.width)
    console.print(*parts, sep="\n")
