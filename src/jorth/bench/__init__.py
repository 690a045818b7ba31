"""Benchmarks: cells crossed from data, sizes, methods and seeds; one row a run, re-scored through the objective."""

from jorth.bench.cells import Cell
from jorth.bench.grids import hevp_cells, paper_cells, probe_cells, procrustes_cells, quick_cells
from jorth.bench.loop import Outcome
from jorth.bench.records import read_rows
from jorth.bench.runner import run_cells

__all__ = [
    "Cell",
    "Outcome",
    "hevp_cells",
    "paper_cells",
    "probe_cells",
    "procrustes_cells",
    "quick_cells",
    "read_rows",
    "run_cells",
]
