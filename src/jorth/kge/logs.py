"""What a run leaves behind while it goes on: callbacks of `train` that write CSV and TensorBoard files."""

from __future__ import annotations

import csv
import os
from io import StringIO
from pathlib import Path
from typing import Any

from jorth.kge.training import COLUMNS, Row
from jorth.storage.atomic import replacing
from jorth.storage.matrices import reading


class CSVLog:
    """A table with one line an epoch, written as it comes; a run that goes on continues its table."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._started = False

    def __call__(self, row: Row) -> None:
        """Add the line of an epoch."""
        if not self._started:
            self._start(before=row["epoch"])
            self._started = True
        with self._path.open("a", newline="") as stream:
            csv.writer(stream).writerow(_cells(row))

    def _start(self, before: float) -> None:
        """Keep the lines of earlier epochs, drop what an interrupted run wrote beyond its checkpoint."""
        text = StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        if self._path.exists():
            writer.writerows(self._lines(before))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self._path) as stream:
            stream.write(text.getvalue().encode())

    def _lines(self, before: float) -> list[list[str]]:
        """The cells of earlier epochs; a line that a killed run has torn is left out."""
        with (
            reading(str(self._path), "; remove it to begin a new one"),
            self._path.open(newline="") as stream,
        ):
            whole = [line for line in csv.DictReader(stream) if None not in line.values()]
            return [
                [line[name] for name in COLUMNS] for line in whole if float(line["epoch"]) < before
            ]


class TensorBoardLog:
    """The same for TensorBoard, which must be installed: ``pip install tensorboard``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ModuleNotFoundError:
            raise ImportError("TensorBoardLog needs tensorboard: pip install tensorboard") from None
        writer: Any = SummaryWriter
        self._writer = writer(os.fspath(folder))

    def __call__(self, row: Row) -> None:
        """Add the figures of an epoch."""
        for name, value in row.items():
            if name != "epoch" and value == value:
                self._writer.add_scalar(name, value, int(row["epoch"]))
        self._writer.flush()


def _cells(row: Row) -> list[str]:
    """Numbers as they read back exactly; nothing where there was no evaluation."""
    return ["" if row[name] != row[name] else f"{row[name]:.17g}" for name in COLUMNS]
