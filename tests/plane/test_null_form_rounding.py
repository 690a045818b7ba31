"""Where a null form of a 4x4 Q counts as zero: negative by no more than 2 eps ||Q||, as docs/plane.md says."""

from fractions import Fraction

import numpy as np
import pytest

from jorth.plane import solve_plane

EPS = 2.0**-52
OUT = np.array([1.0, 1.0, 1.0, 1.0]) / 2  # vec of N+
IN = np.array([1.0, -1.0, -1.0, 1.0]) / 2  # vec of N-


@pytest.mark.parametrize("down", [0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 40])
def test_a_null_form_that_is_negative_by_rounding_counts_as_zero(down):
    Q = 4 * np.outer(IN, IN) - down * EPS * np.outer(OUT, OUT)
    C = sum(Fraction(entry) for entry in Q.ravel()) / 8  # n+^T Q n+ / 2, of Q as it is rounded
    level = C / Fraction(EPS * np.abs(Q).max())
    # A = <P, N+> = 1 > 0: bounded over boosts, u > 0, where C counts as zero; falling like C u^2 where it does not
    found = solve_plane(np.eye(2), Q, np.array([1, -1]), components="identity")
    assert bool(found.unbounded) is bool(level < -2)
