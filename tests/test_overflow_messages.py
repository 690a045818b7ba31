"""One sentence, wherever a result of finite arguments overflows."""

import numpy as np
import pytest
import torch

from jorth._inputs import check_overflow, finite_result

INFINITE = {
    "torch": (torch.tensor([1.0, torch.inf], dtype=torch.float64), "torch.float64"),
    "NumPy": (np.array([1.0, np.nan], dtype=np.float32), "float32"),
}


@pytest.mark.parametrize("kind", INFINITE)
def test_arrays_of_both_kinds(kind):
    result, dtype = INFINITE[kind]
    with pytest.raises(
        ValueError,
        match=f"^x and y must be of a size at which z is finite in {dtype}, got overflow$",
    ):
        check_overflow(result, "x and y", "z")
    check_overflow(result[:1], "x and y", "z")


@pytest.mark.parametrize("result", [float("inf"), np.array([[np.inf]])])
def test_results_of_numpy(result):
    with pytest.raises(
        ValueError,
        match=r"^x must be of a size at which the result is finite in float64, got overflow$",
    ):
        finite_result(result, "x")
    kept = 1.0 if isinstance(result, float) else np.ones((1, 1))
    assert finite_result(kept, "x") is kept
