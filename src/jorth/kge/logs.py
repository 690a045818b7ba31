"""What a run leaves behind while it goes on: callbacks of `train` that write CSV and TensorBoard files."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

from jorth.kge.training import COLUMNS, Row


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
        kept: list[dict[str, str]] = []
        if self._path.exists():
            with self._path.open(newline="") as stream:
                kept = [line for line in csv.DictReader(stream) if float(line["epoch"]) < before]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(COLUMNS)
            writer.writerows([line[name] for name in COLUMNS] for line in kept)


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
