"""`solve_rows` names its own arguments."""

import numpy as np
import pytest

from jorth.plane import solve_plane, solve_rows


def test_signs_go_with_the_rows():
    rows = np.ones((3, 2, 5))
    with pytest.raises(ValueError, match=r"signs must have shape \(3, 2\) to go with Z, got"):
        solve_rows(rows, rows, 1.0, np.ones(2))
    with pytest.raises(ValueError, match=r"signs must have shape \(3, 2\) to go with P, got"):
        solve_plane(np.ones((3, 2, 2)), 1.0, np.ones(2))
