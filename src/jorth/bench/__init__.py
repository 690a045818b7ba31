"""Benchmarks on equal budgets: every run becomes one row, scored again through the objective.

`core` runs cells, stores rows and writes the page for any kind of benchmark. The kinds are packages
beside it: `matrices` (hevp, probe, procrustes), `graphs` (kge) and `speed`.
"""

from jorth.bench.core.records import read_rows
from jorth.bench.kinds import run_cells, write_report

__all__ = ["read_rows", "run_cells", "write_report"]
