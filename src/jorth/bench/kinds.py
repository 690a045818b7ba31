"""The kind of benchmark of each problem; a kind is imported when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from jorth.bench.core.cells import Cell
from jorth.bench.core.records import errors_naming, read_rows
from jorth.bench.core.runs import Kind, RunSummary, run_unfinished
from jorth.storage.atomic import make_folder

PACKAGES = {
    "race": "matrices",
    "trace": "matrices",
    "procrustes": "matrices",
    "probe": "matrices",
    "kge": "graphs",
    "speed": "speed",
}
"""The package of `jorth.bench` for each problem, in the order of the page."""


def kind_of(problem: Any) -> Kind:
    """The kind of a problem; rows with an unknown problem are shown as matrices."""
    package = PACKAGES.get(problem, "matrices")
    kind: Kind = import_module(f"jorth.bench.{package}.runner").KIND
    return kind


def run_cells(cells: Sequence[Cell], folder: Path, **options: Any) -> RunSummary:
    """Run the cells, all of one kind, that have no row yet; see `run_unfinished` for options."""
    return run_unfinished(kind_of(cells[0].problem if cells else None), cells, folder, **options)


def write_report(run: str | Path, folder: str | Path) -> Path:
    """Write the page of a run, a folder or file of `jorth bench`, and its figures into ``folder``.

    The page is one file with inline styles and embedded figures, and loads nothing from the
    network. It also lists unfinished runs, failed cells and missing data. The text of a row is
    always escaped.

    Raises:
        ValueError: There are no rows, or `jorth bench` cannot have written one of them; the
            message names ``run``.
    """
    from jorth.bench.core.page import write_page

    rows = read_rows(run)
    if not rows:
        raise ValueError(f"no rows in {run}: nothing to report yet")
    make_folder(Path(folder))
    with errors_naming(run):
        kinds = [kind_of(row["cell"].get("problem")) for row in rows]
        order = sorted(set(kinds), key=lambda kind: list(PACKAGES.values()).index(kind.name))
        return write_page(rows, kinds, order, Path(folder))
