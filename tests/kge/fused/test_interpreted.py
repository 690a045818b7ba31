"""The Triton kernels of knowledge graphs by Triton's interpreter, in a process of their own."""

import pytest

from jorth._triton import has_triton
from tests.interpreted import run_interpreted

SCRIPT = """
from jorth.kge import _loss_triton
from tests.kge.fused.backend_checks import check_edges, check_shapes
from tests.kge.device_checks import check_arcs

check_shapes(_loss_triton.loss_and_gradients, "cpu")
check_edges(_loss_triton.loss_and_gradients, "cpu")
check_arcs("cpu")
_loss_triton.MOST_BYTES = 100  # rows in chunks
check_edges(_loss_triton.loss_and_gradients, "cpu")
"""


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_kernels_equal_the_reference():
    run_interpreted(SCRIPT)
