"""One page of a benchmark: tables, curves, and what they mean in plain words."""

from jorth.bench.report.page import write_report

__all__ = ["write_report"]
