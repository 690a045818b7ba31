"""The Triton kernels of knowledge graphs by Triton's interpreter, in a process of their own."""

import pytest

from jorth.kernels.available import has_triton
from tests.interpreted import run_interpreted

SCRIPT = """
from jorth.kge.fused import on_device
from tests.kge.fused.backend_checks import check_edges, check_shapes
from tests.kge.device_checks import check_arcs, check_moving

check_shapes(on_device.by_triton, "cpu")
check_edges(on_device.by_triton, "cpu")
check_moving("cpu")
check_arcs("cpu")
on_device.MOST_BYTES = 100  # rows in chunks
check_edges(on_device.by_triton, "cpu")
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_kernels_equal_the_reference():
    run_interpreted(SCRIPT)
