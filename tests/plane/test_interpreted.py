"""The Triton kernels on the CPU, by Triton's interpreter: one process for all,
as it must be asked for beforehand."""

import pytest

from jorth._triton import has_triton
from tests.interpreted import run_interpreted

SCRIPT = """
import numpy as np
import torch
from jorth.plane.pairs import partners, tournament_rounds
from jorth.plane.rounds import Majoriser
from jorth.plane import random_matching, tournament
from tests.plane.problems import after, check_edges, check_pairs, quadratic
from tests.plane.problems import check_nearly_null_rows
import jorth

check_nearly_null_rows("cpu")
for all_components in (False, True):
    check_pairs("cpu", all_components)
    check_edges("cpu", all_components)
for n, k, options in [(10, 10, {}), (7, 7, dict(with_c=False)), (8, 5, dict(with_d=True)),
                      (8, 8, dict(dtype=torch.float32, with_c=False)), (6, 6, dict(cond=1e9))]:
    problem = quadratic(n, k, **options)
    matching = partners(n, random_matching(n, seed=1)[None])
    rounds = np.concatenate([tournament_rounds(n, np.array([2, 0])), matching])
    X, Y, decrease, unbounded = after(problem, rounds, device="cpu", factor=2.0)
    X_, Y_, decrease_, _ = after(problem, rounds, device="cpu", factor=2.0, compiled=False)
    unit = torch.finfo(X.dtype).eps / 2
    atol = 1e3 * n * unit * float(X_.abs().max()) ** (1 if k == n else 2)
    torch.testing.assert_close(X, X_, rtol=0, atol=atol)
    assert abs(decrease - decrease_) <= 1e4 * unit * abs(decrease_)
sig = jorth.Signature.of([1, -1, 1, 1, -1, 1, -1])
X = torch.from_numpy(jorth.random_point(sig, cond=9.0, batch=(2,)))
G = torch.randn(2, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
for all_components in (False, True):
    rounds = tournament(7, seed=1)[:3]
    for theta in (0.0, -1e-12, 0.3):
        engine = Majoriser(sig, all_components, theta)
        moved, decrease = engine.fused_rounds(X, G, 3.7, rounds)
        expected, decrease_ = engine.torch_rounds(X, G, 3.7, rounds)
        torch.testing.assert_close(moved, expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(decrease, decrease_, rtol=1e-11, atol=0)
        assert (moved - X).abs().max() > 0.1
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_kernels_equal_plain_torch():
    run_interpreted(SCRIPT)
