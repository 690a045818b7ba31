"""Cells, their runs, and rows that were never run, for the tests of this folder."""

from jorth.bench.core import runs
from jorth.bench.speed import runner
from jorth.bench.speed.cells import SpeedCell
from jorth.bench.speed.methods import CDOPT


def run_cell(of, rows=()):
    return runs.run_cell(runner.KIND, of, None, rows)


def cell(method="GS-JOBCD", **fields):
    given = dict(
        n=10,
        p=5,
        condition=3.0,
        threads=1,
        seed=0,
        max_time=5.0,
        beta=10.0 if method == CDOPT else None,
    )
    return SpeedCell(method=method, **given | fields)


def made(of, outcome="done", gap=1.0, calls=None, **times):
    """The row of a cell with these times to the gaps; the arguments are named as the gaps are."""
    fields = {"key": of.key, "cell": of.__dict__, "outcome": outcome}
    if outcome != "done":
        return fields | {"error": "why"}
    reached = {name: times[name] for name in ("0.01", "0.0001", "1e-08") if name in times}
    return fields | {"reached": reached, "calls": calls or {}, "gap": gap, "time": of.max_time}
