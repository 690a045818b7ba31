"""What `rotate_rounds` runs on a device, here on the CPU: the steps of `sweep_trace`,
and nothing read back."""

from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
import torch

from jorth.solvers.jobcd import diagonalisation
from jorth.solvers.jobcd._sweeps_numba import sweep_trace
from jorth.solvers.jobcd.diagonalisation import Trace, _rotations, _rotations_of_rows, rotate_rounds

UNIT = 2.0**-53
OPPOSITE = torch.tensor([[1.0, -1.0]])


def boost(a, b, c):
    """sinh mu for tanh 2 mu = -2 c / (a + b), in 50 digits."""
    with mp.workdps(50):
        return float(mp.sinh(mp.atanh(-2 * mp.mpf(c) / (mp.mpf(a) + mp.mpf(b))) / 2))


@pytest.mark.parametrize("c", [1e-20, 1e-9, -1e-5, 1e-2, 0.4])
@pytest.mark.parametrize("a", [1.0, 3.7, 1e8])
def test_small_boosts_are_relatively_accurate(a, c):
    """w_ii + w_jj + 2 w_ij less w_ii + w_jj - 2 w_ij is zero where w_ij is below their rounding:
    4 w_ij is not."""
    V, unbounded = _rotations(
        torch.tensor([[[a, c], [c, 1.0]]], dtype=torch.float64), OPPOSITE.double()
    )
    assert not unbounded.any()
    # a + b +- 2 c is rounded thrice and loses a factor (a + b) / (a + b - 2 |c|) <= 2 / 1.2;
    # some ten roundings follow
    assert V[0, 1, 0].item() == pytest.approx(boost(a, 1.0, c), rel=32 * UNIT, abs=0.0)
    assert V[0, 0, 1] == V[0, 1, 0]
    W, rows = np.array([[a, c], [c, 1.0]]), np.eye(2)
    sweep_trace(
        W, np.zeros((2, 0)), rows, np.array([1, -1], np.int8), np.array([[0, 1]]), 0.0, True
    )
    np.testing.assert_allclose(V[0].numpy(), rows, rtol=32 * UNIT, atol=0.0)


@pytest.mark.parametrize("c", [1e-20, 1e-9, -1e-5])
@pytest.mark.parametrize("a", [1.0, 1e4])
def test_small_boosts_from_rows_are_relatively_accurate(a, c):
    Z = torch.tensor([[[a, 0.0], [c, 1.0]]], dtype=torch.float64)
    found = _rotations_of_rows(Z, OPPOSITE.double(), 0.0)[0, 1, 0].item()
    # the proximal weight shortens the boost by 2e-12 of itself
    assert found == pytest.approx(boost(a * a, 1.0 + c * c, a * c), rel=1e-11, abs=0.0)


def test_nothing_is_read_back_from_the_device(monkeypatch):
    """A tensor on "meta" has no data: a number asked of it is an error."""
    monkeypatch.setattr(diagonalisation, "apply_rows", lambda X, pairs, V: None)
    monkeypatch.setattr(diagonalisation, "_score", lambda problem, state: None)
    matrix = torch.empty(4, 4, dtype=torch.float64, device="meta")
    state, trace = SimpleNamespace(X=matrix.clone()), Trace(matrix, matrix, 1e-16)
    count = SimpleNamespace(pair_updates=0)
    problem = SimpleNamespace(
        signs=torch.empty(4, device="meta"),
        objective=SimpleNamespace(count=count),
        ends_unbounded=True,
    )
    rotate_rounds(problem, state, trace, np.array([[[0, 1], [2, 3]], [[0, 2], [1, 3]]]))
    assert count.pair_updates == 4
