"""Compiled kernels run as Python on numbers that count their arithmetic and cells that note who
touches them.

Run by itself with NUMBA_DISABLE_JIT=1; prints what was counted as JSON.
"""

import json
import math
from collections import Counter

import numpy as np

from jorth import Signature
from jorth.plane import random_matching
from jorth.plane.compiled.majoriser import PairCurvature, propose_round, sweep_majoriser
from jorth.plane.compiled.quadratic import sweep_quadratic
from jorth.plane.proximal import StepRule

done: Counter[str] = Counter()


class Number:
    """A float; arithmetic on it counts."""

    def __init__(self, value):
        self.value = float(value)

    def __array_ufunc__(self, ufunc, method, *inputs):
        return ufunc(*(float(part) for part in inputs))  # np.sign, which is no arithmetic

    def __float__(self):
        return self.value

    def __neg__(self):
        return Number(-self.value)

    def __abs__(self):
        return Number(abs(self.value))


def _arithmetic(name):
    def counted(self, other):
        done["flops"] += 1
        return Number(getattr(np.float64(self.value), name)(float(other)))

    return counted


def _function(function, cost):
    def counted(*inputs):
        found = function(*(float(part) for part in inputs))
        if not any(isinstance(part, Number) for part in inputs):
            return found
        done["flops"] += cost
        return Number(found)

    return counted


def _comparison(name):
    return lambda self, other: bool(getattr(np.float64(self.value), name)(float(other)))


for name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow"):
    setattr(Number, f"__{name}__", _arithmetic(f"__{name}__"))
for name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Number, f"__{name}__", _comparison(f"__{name}__"))
math.sqrt, math.hypot, math.copysign = (
    _function(math.sqrt, 1),
    _function(math.hypot, 1),
    _function(math.copysign, 0),
)


class Cells:
    """A matrix of such numbers that notes which of its cells are read and written."""

    def __init__(self, matrix):
        self.numbers, self.shape = (
            [[Number(entry) for entry in row] for row in matrix],
            matrix.shape,
        )
        self.read, self.written = set(), set()

    def __getitem__(self, at):
        self.read.add(at)
        return self.numbers[at[0]][at[1]]

    def __setitem__(self, at, value):
        self.written.add(at)
        self.numbers[at[0]][at[1]] = value if isinstance(value, Number) else Number(value)


def point(n, seed=0):
    """A symmetric positive definite A, a C, the identity, a random matching and signs."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 2 * n))
    matching = random_matching(n, seed=seed)
    return (
        A @ A.T / n,
        rng.standard_normal((n, n)),
        np.eye(n),
        matching,
        Signature(n // 2, n - n // 2).signs,
    )


def exact_step(n, seed):
    """One step of `sweep_quadratic`."""
    A, C, identity, matching, signs = point(n, seed)
    cells = [Cells(matrix) for matrix in (A, C, identity, identity)]
    a, c, x, y = cells
    sweep_quadratic(a, c, x, y, signs, matching[:1], StepRule(-1e-12, False, True))
    return cells


def round_of_pairs(n, seed):
    """`propose_round` over a matching: X and the gradient are read, the trial is written."""
    A, C, identity, matching, signs = point(n, seed)
    trial, X, G, weights = (Cells(matrix) for matrix in (identity, identity, A + C, A))
    curvature = PairCurvature(1.0, X, weights, has_d=False, scalar=False)
    propose_round(trial, X, G, curvature, signs, matching, -1e-12, False)
    trial.read.clear()  # a copy of X
    weights.read.clear()  # three numbers a pair
    return trial, X, G


def majorised_steps(n, seed):
    """`sweep_majoriser` over a matching."""
    A, C, identity, matching, signs = point(n, seed)
    X, centre = Cells(identity), Cells(identity - (A + C) / 10)
    sweep_majoriser(X, centre, 10.0, signs, matching, -1e-12, False)
    return X, centre


def count(kernel, n, seeds):
    """Mean operations, and cells read plus cells written."""
    done.clear()
    cells = [part for seed in range(seeds) for part in kernel(n, seed)]
    words = sum(len(part.read) + len(part.written) for part in cells)
    return {"flops": done["flops"] / seeds, "words": words / seeds}


if __name__ == "__main__":
    found = {
        "step": {str(n): count(exact_step, n, 24) for n in (2, 10, 40)},
        "round": count(round_of_pairs, 40, 2),
        "majorised": count(majorised_steps, 40, 2),
    }
    print(json.dumps(found))
