"""Tables on a terminal: names are broken if there is too little room, numbers are not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from jorth.terminal import visible

WIDTH = 80
"""A narrower terminal breaks the lines, so that no figure is cut off."""


class NumberTable(Table):
    """A table of names and numbers.

    Args:
        headings: One per column.
        names: Which columns have names, which may be broken; numbers are on one line.
        title: What is written above the table.
        caption: What is written below the table.
    """

    def __init__(
        self,
        headings: Sequence[str],
        names: Collection[int] = (0,),
        title: str = "",
        caption: str = "",
    ) -> None:
        super().__init__(
            title=Text(visible(title)) if title else None,
            caption=Text(visible(caption)) if caption else None,
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
        )
        for place, heading in enumerate(headings):
            name = place in names
            self.add_column(
                Text(heading),
                justify="left" if name else "right",
                no_wrap=not name,
                overflow="fold",
            )

    def add(self, *cells: str) -> None:
        """Add a row; what is not printable in it is escaped."""
        self.add_row(*(Text(visible(cell)) for cell in cells))


def show(*parts: RenderableType) -> None:
    """Print on the terminal."""
    console = Console(highlight=False)
    console.width = max(WIDTH, console.width)
    for part in parts:
        console.print(part)
