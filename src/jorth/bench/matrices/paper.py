"""The paper's Table 1, and how the order of its methods compares with another.

He, Yuan, Wang and Xu, *Block Coordinate Descent Methods for Optimization under J-Orthogonality
Constraints with Applications*, Table 1: values of -tr(X^T D^T D X) after 90 seconds and
sum |X^T J X - J|.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

PAPER_METHODS = ("UMCM", "ADMM", "CSDM", "GS-JOBCD", "J-JOBCD", "CSDM+GS-JOBCD")
"""The columns of the table."""
CITATION = (
    "He, Yuan, Wang and Xu, Block Coordinate Descent Methods for Optimization under "
    "J-Orthogonality Constraints with Applications, Table 1"
)
Size = tuple[str, int, int, int]  # the data, m, n and p

# data, m, n, p and the values in the order of PAPER_METHODS; the violations are on the next line
_TABLE = """
cifar      1000  100  50 -1.05e+04 -1.05e+04 -5.28e+04 -1.03e+05 -1.11e+05 -1.24e+05
                           3.0e-09   3.0e-09   5.4e-09   2.6e-08   1.4e-07   2.6e-08
cnncaltech 2000 1000 500 -5.89e+02 -5.89e+02 -1.11e+03 -1.07e+03 -9.16e+03 -1.15e+03
                           2.9e-08   3.1e-10   5.2e-10   1.3e-09   6.9e-08   6.9e-10
gisette    3000 1000 500 -3.22e+06 -3.22e+06 -8.53e+06 -9.49e+06 -1.36e+07 -9.65e+06
                           3.1e-10   3.1e-10   4.9e-10   1.2e-09   2.6e-08   7.9e-10
mnist      1000  780 390 -8.65e+04 -8.65e+04 -2.56e+05 -3.14e+05 -1.20e+06 -3.06e+05
                           4.1e-10   4.1e-10   5.6e-10   1.2e-09   4.1e-08   7.6e-10
randn        10   10   5  1.29e+02  1.29e+02  2.45e+02 -3.96e+01 -3.97e+02  1.55e+01
                           9.7e-02   9.7e-02   2.3e-01   9.7e-02   9.7e-02   2.3e-01
randn       100  100  50 -1.03e+04 -1.03e+04 -1.98e+04 -2.28e+04 -4.37e+04 -2.41e+04
                           3.0e-09   2.5e-07   4.4e-09   5.6e-08   2.6e-07   4.2e-08
randn      1000 1000 500 -1.16e+06 -1.16e+06 -1.93e+06 -1.22e+06 -1.04e+07 -1.95e+06
                           3.1e-10   3.1e-10   5.0e-10   6.9e-10   2.3e-07   6.7e-10
sector      500 1000 500 -3.61e+03 -3.61e+03 -7.90e+03 -9.24e+03 -1.06e+04 -8.51e+03
                           3.1e-10   3.1e-10   4.9e-10   1.3e-09   2.0e-08   6.4e-10
tdt2       1000 1000 500 -4.25e+06 -4.25e+06 -9.39e+06 -1.05e+07 -1.42e+07 -1.04e+07
                           3.1e-10   3.1e-10   4.8e-10   1.1e-09   2.1e-08   6.5e-10
w1a        2470  290 145 -3.02e+04 -3.02e+04 -5.72e+04 -9.21e+04 -9.32e+06 -7.94e+04
                           1.1e-04   1.1e-04   2.7e-05   1.1e-04   1.1e-04   2.7e-05
"""


@dataclass(frozen=True)
class Printed:
    """A value of the table and its violation."""

    value: float
    violation: float


def _parse(text: str) -> dict[Size, dict[str, Printed]]:
    lines = [line.split() for line in text.strip().splitlines()]
    table = {}
    for (data, m, n, p, *values), violations in zip(lines[::2], lines[1::2], strict=True):
        results = map(Printed, map(float, values), map(float, violations))
        table[data, int(m), int(n), int(p)] = dict(zip(PAPER_METHODS, results, strict=True))
    return table


PRINTED = _parse(_TABLE)  # the table by size and method
APPENDIX_P = {"mnist": (500, 650), "w1a": (200, 250)}
"""The larger p of the appendix where they are not 0.7n and 0.9n; its table was not published."""
PROBES: tuple[Size, ...] = (
    ("20news", 9423, 50, 45),
    ("cifar", 10000, 50, 45),
    ("cnncaltech", 3000, 96, 85),
    ("e2006", 5000, 100, 90),
    ("gisette", 6000, 50, 45),
    ("mnist", 6000, 92, 85),
    ("news20", 7967, 50, 45),
    ("randn", 5000, 100, 85),
    ("randn", 10000, 50, 45),
    ("w1a", 2477, 100, 90),
)
"""The structural probes of the paper's figures; the table of values was not published."""


def impossible(size: Size) -> bool:
    """Whether a row of the paper has positive values, which -||D X||^2 cannot take."""
    return any(printed.value > 0 for printed in PRINTED[size].values())


@dataclass(frozen=True)
class OrderComparison:
    """Two orders of the same methods, best first, and how many pairs of methods they rank alike.

    Pairs that are equal on one side, in the paper to its printed digits, are not counted.
    """

    ours: tuple[str, ...]
    papers: tuple[str, ...]
    alike: int
    reversed: int


def compare_orders(scores: Mapping[str, float], size: Size) -> OrderComparison:
    """Compare scores by method, lower is better, with the paper's row; its methods alone count."""
    printed = PRINTED[size]
    shared = [name for name in PAPER_METHODS if name in scores]
    signs = [
        _sign(scores[first], scores[second]) * _sign(printed[first].value, printed[second].value)
        for first, second in combinations(shared, 2)
    ]
    return OrderComparison(
        tuple(sorted(shared, key=lambda name: scores[name])),
        tuple(sorted(shared, key=lambda name: printed[name].value)),
        alike=signs.count(1),
        reversed=signs.count(-1),
    )


def _sign(first: float, second: float) -> int:
    return (first > second) - (first < second)
