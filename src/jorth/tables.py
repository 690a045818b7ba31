"""Tables on a terminal that shorten names, but never numbers, if there is too little room."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from jorth.terminal import visible

ELLIPSIS = "…"
GAP = 2
"""The columns of the terminal between two columns of a table."""
LEAST = 6
"""How much room a name has at least. A table that is wider then is wrapped by the terminal."""


@dataclass
class NumberTable:
    """A table of names and numbers for rich, as wide as the terminal at most.

    Args:
        headings: One per column. Those of numbers are broken at spaces where that saves room.
        names: Which columns have names; they are shortened in the middle to fit.
        title: What is written above the table.
        caption: What is written below the table.
    """

    headings: Sequence[str]
    names: Collection[int] = (0,)
    title: str = ""
    caption: str = ""
    _rows: list[list[str]] = field(default_factory=list)
    _sections: set[int] = field(default_factory=set)

    def add(self, *cells: str) -> None:
        """Add a row; what is not printable in it is escaped."""
        self._rows.append([visible(cell) for cell in cells])

    def end_section(self) -> None:
        """Leave a gap after the rows so far."""
        self._sections.add(len(self._rows) - 1)

    def widths(self, room: int) -> list[int]:
        """The width of every column if the table has the given room."""
        room -= GAP * (len(self.headings) - 1)
        whole = [
            max(map(cell_len, [heading, *column]))
            for heading, column in zip(self.headings, self._columns(), strict=True)
        ]
        if sum(whole) <= room:
            return whole
        found = [
            max(map(cell_len, [*heading.split(), *column]), default=0)
            for heading, column in zip(self.headings, self._columns(), strict=True)
        ]
        left = room - sum(width for place, width in enumerate(found) if place not in self.names)
        for place, width in zip(
            self.names, _shared(left, [whole[place] for place in self.names]), strict=True
        ):
            found[place] = width
        return found

    def _columns(self) -> Iterator[list[str]]:
        for place in range(len(self.headings)):
            yield [row[place] for row in self._rows]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = sum(self.widths(options.max_width)) + GAP * (len(self.headings) - 1)
        return Measurement(width, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self.widths(options.max_width)
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for place, (heading, width) in enumerate(zip(self.headings, widths, strict=True)):
            is_name = place in self.names
            table.add_column(
                Text(shortened(heading, width) if is_name else heading),
                justify="left" if is_name else "right",
                width=width,
            )
        for number, row in enumerate(self._rows):
            cells = (shortened(cell, width) for cell, width in zip(row, widths, strict=True))
            table.add_row(*map(Text, cells), end_section=number in self._sections)
        total = sum(widths) + GAP * (len(widths) - 1)
        if self.title:
            yield Text(visible(self.title), style="italic")
            yield Text()
        yield from console.render(table, options.update(width=total))
        if self.caption:
            yield Text()
            yield Text(visible(self.caption), style="dim")


def _shared(room: int, wanted: Sequence[int]) -> list[int]:
    """Room for names: what they want, or else the same for all that want more."""
    found = [min(width, LEAST) for width in wanted]
    for _ in range(max(0, room - sum(found))):
        hungry = [place for place, width in enumerate(found) if width < wanted[place]]
        if not hungry:
            break
        found[min(hungry, key=found.__getitem__)] += 1
    return found


def shortened(name: str, width: int) -> str:
    """A name in at most ``width`` columns of a terminal, with an ellipsis in its middle."""
    if cell_len(name) <= width:
        return name
    start = _fitting(name, (width - 1) // 2)
    end = _fitting(name[::-1], width - 1 - cell_len(start))[::-1]
    return start + ELLIPSIS + end


def _fitting(name: str, width: int) -> str:
    """The beginning of a name that fits."""
    taken = 0
    for place, sign in enumerate(name):
        taken += cell_len(sign)
        if taken > width:
            return name[:place]
    return name


def show(*parts: RenderableType) -> None:
    """Print on the terminal; what is wider is wrapped there, and not cut off."""
    console = Console(highlight=False)
    for part in parts:
        console.print(part, crop=False)
