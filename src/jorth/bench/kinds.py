"""The kinds of benchmarks by the problems of their cells; a kind is loaded when one is met."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from jorth.bench.core.cells import Cell
from jorth.bench.core.records import errors_naming, read_rows
from jorth.bench.core.runs import Kind, RunSummary, run_unfinished

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
    """The kind of a problem; rows with a problem that is not known are shown as matrices."""
    package = PACKAGES.get(problem, "matrices")
    kind: Kind = import_module(f"jorth.bench.{package}.runner").KIND
    return kind


def run_cells(cells: Sequence[Cell], folder: Path, **options: Any) -> RunSummary:
    """Run the cells, all of one kind, that have no row yet: `run_unfinished` has the options."""
    return run_unfinished(kind_of(cells[0].problem if cells else None), cells, folder, **options)


def write_report(run: str | Path, folder: str | Path) -> Path:
    """Write the page of a run, a folder or file of `jorth bench`, and its figures into ``folder``.

    The page is one file: styles inline, figures as data, nothing from the network. Runs that are
    not complete, cells that failed and data that are missing are shown as they are. Whatever stands
    in a row is shown as text.

    Raises:
        ValueError: There is no row, or one that `jorth bench` cannot have written; the message
            names ``run``.
    """
    from jorth.bench.core.page import write_page

    rows = read_rows(run)
    if not rows:
        raise ValueError(f"no rows in {run}: nothing to report yet")
    with errors_naming(run):
        kinds = [kind_of(row["cell"].get("problem")) for row in rows]
        order = sorted(set(kinds), key=lambda kind: list(PACKAGES.values()).index(kind.name))
        return write_page(rows, kinds, order, Path(folder))
