import math

import pytest
import torch

from jorth.group.norms import power_of_two


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_power_of_two(dtype):
    limits = torch.finfo(dtype)
    sizes = torch.tensor(
        [0.0, 0.75, 1.0, 1.999, 3.0, 1e30, 1e-30, limits.max, limits.tiny], dtype=dtype
    )
    found = power_of_two(sizes)
    assert found.dtype == dtype
    assert found[0] == 1.0
    assert all(math.frexp(power)[0] == 0.5 for power in found.tolist())
    assert ((found <= sizes) & (sizes / found < 2))[1:].all()
