"""The history of a training run in files: callbacks for `train`, and a figure."""

from __future__ import annotations

import csv
import math
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jorth._files import make_folder, reading, replacing
from jorth._inputs import describe, file_path
from jorth.extras import needs
from jorth.kge.training import COLUMNS, Row


class CSVLog:
    """Write a table with one line per epoch, which a resumed run continues.

    Lines that cannot be written, as on a full disk, give one warning and are written with the
    next ones that can.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = file_path(path, "path")
        self._unwritten: list[str] | None = None  # until there is a table

    def __call__(self, row: Row) -> None:
        if not isinstance(row, Mapping) or not set(COLUMNS) <= set(row):
            expected = f"a mapping with the numbers {', '.join(COLUMNS)}, as train gives it"
            raise TypeError(f"row must be {expected}; got {describe(row)}")
        if self._unwritten is None:
            self._start(before=row["epoch"])
            self._unwritten = []
        cells = ("" if math.isnan(row[name]) else f"{row[name]:.17g}" for name in COLUMNS)
        self._unwritten.append(",".join(cells) + "\r\n")
        try:
            _append(self._path, "".join(self._unwritten))
            self._unwritten.clear()
        except OSError as error:
            if len(self._unwritten) == 1:
                reason = error.strerror or str(error)
                warnings.warn(f"{self._path} could not be written: {reason}", stacklevel=2)

    def _start(self, before: float) -> None:
        """Drop the lines that an interrupted run has written after its last checkpoint."""
        text = StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore")
        writer.writeheader()
        if self._path.is_file():
            advice = "; remove it to begin a new one"
            with reading(str(self._path), advice), self._path.open(newline="") as stream:
                for line in csv.DictReader(stream):
                    torn = None in line.values()  # the run was killed while writing it
                    if not torn and float(line["epoch"]) < before:
                        writer.writerow({name: line[name] for name in COLUMNS})
        make_folder(self._path.parent, "path")
        with replacing(self._path) as stream:
            stream.write(text.getvalue().encode())


def _append(path: Path, text: str) -> None:
    """Add a text to a file, all of it or nothing."""
    size = path.stat().st_size if path.is_file() else None
    try:
        with path.open("ab") as stream:
            stream.write(text.encode())
    except OSError:
        if size is not None:
            with suppress(OSError):
                os.truncate(path, size)
        raise


class TensorBoardLog:
    """The numbers of every epoch for TensorBoard, which must be installed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        place = file_path(folder, "folder")
        with needs("jorth.kge.TensorBoardLog", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        writer: Any = SummaryWriter
        self._writer = writer(os.fspath(place))

    def __call__(self, row: Row) -> None:
        for name, value in row.items():
            if name != "epoch" and not math.isnan(value):
                self._writer.add_scalar(name, value, int(row["epoch"]))
        self._writer.flush()


def draw_history(history: dict[str, NDArray[np.float64]], path: Path, *, title: str = "") -> None:
    """Draw the loss on the left, and the validation MRR and Hits on the right."""
    with needs(f"the picture {path.name}", "matplotlib"):
        from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(history["epoch"], history["loss"])
    left.set_title(title, parse_math=False)
    left.set(xlabel="epoch", ylabel="loss")
    evaluated = np.isfinite(history["mrr"])
    for name, label in (("mrr", "MRR"), ("hits@1", "Hits@1"), ("hits@10", "Hits@10")):
        right.plot(history["epoch"][evaluated], history[name][evaluated], marker=".", label=label)
    right.set(title="validation, filtered", xlabel="epoch", ylim=(0, 1))
    right.legend()
    for axes in (left, right):
        axes.grid(alpha=0.3)
    with replacing(path) as stream:
        figure.savefig(stream, dpi=150, format=path.suffix[1:] or "png")
