"""The Triton kernels of knowledge graphs by Triton's interpreter, in a process of their own."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

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


@pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")
def test_kernels_equal_the_reference():
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("this interpreter of Triton does not know this NumPy")
    assert done.returncode == 0, done.stderr[-3000:]
