"""Data of whole numbers, as an array or a tensor, become float64 before anything is computed."""

import numpy as np
import pytest
import torch

from jorth import HyperbolicEigenvalue

DATA = [[200, 0], [100, 3]]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64"])
def test_tensors_and_arrays_of_integers_agree(dtype):
    tensor = HyperbolicEigenvalue(data=torch.tensor(DATA, dtype=getattr(torch, dtype)))
    array = HyperbolicEigenvalue(data=np.array(DATA, dtype=dtype))
    wanted = 2 * torch.tensor(
        [[50000.0, 300.0], [300.0, 9.0]], dtype=torch.float64
    )  # beyond a byte
    for objective in (tensor, array):
        torch.testing.assert_close(objective.quadratic().A, wanted, rtol=0, atol=0)
    assert tensor.speaks_torch
    assert not array.speaks_torch


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex128])
def test_flags_and_complex_numbers_are_refused(dtype):
    with pytest.raises(TypeError, match="data must hold real numbers"):
        HyperbolicEigenvalue(data=torch.ones(2, 2, dtype=dtype))
