"""The Triton kernels on the CPU, by Triton's interpreter: one process for all,
as it must be asked for beforehand."""

import pytest

from jorth._triton import has_triton
from tests.interpreted import run_interpreted

SCRIPT = """
import numpy as np
import torch
from jorth.plane.pairs import tournament_rounds
from jorth.plane import random_matching
from functools import partial
from tests.plane.problems import after, check_edges, check_steps, quadratic, step_by_triton
from tests.plane.problems import check_nearly_null_rows

check_nearly_null_rows("cpu")
check_steps(partial(step_by_triton, "cpu"), "identity")
check_edges(partial(step_by_triton, "cpu"), "identity")
for n, k, options in [(10, 10, {}), (7, 7, dict(with_c=False)), (8, 5, dict(with_d=True)),
                      (8, 8, dict(dtype=torch.float32, with_c=False)), (6, 6, dict(cond=1e9))]:
    problem = quadratic(n, k, **options)
    matching = random_matching(n, seed=1)[None]
    rounds = np.concatenate([tournament_rounds(n, np.array([2, 0])), matching])
    X, Y, decrease, unbounded = after(problem, rounds, device="cpu", factor=2.0)
    X_, Y_, decrease_, _ = after(problem, rounds, device="cpu", factor=2.0, compiled=False)
    unit = torch.finfo(X.dtype).eps / 2
    atol = 1e3 * n * unit * float(X_.abs().max()) ** (1 if k == n else 2)
    torch.testing.assert_close(X, X_, rtol=0, atol=atol)
    assert abs(decrease - decrease_) <= 1e4 * unit * abs(decrease_)
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_kernels_equal_plain_torch():
    run_interpreted(SCRIPT)
