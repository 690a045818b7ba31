"""The Triton kernels of the optimisers by Triton's interpreter, in a process of their own."""

import pytest

from jorth._triton import has_triton
from tests.interpreted import run_interpreted

SCRIPT = """
import torch
from jorth.optim.rotations import triton_turned
from tests.optim.device_steps import check_one_launch, check_options
from tests.optim.rotations import check_turns

for n, k, dtype in [(4, 4, torch.float64), (7, 7, torch.float32), (8, 3, torch.float64)]:
    check_turns(triton_turned, "cpu", n, k, b=2, dtype=dtype, largest=1.5)
for dtype in (torch.float64, torch.float32):
    check_options("cpu", dtype)
    check_one_launch("cpu", 17, 2, dtype)
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_kernels_equal_plain_torch():
    run_interpreted(SCRIPT)
