"""Triton kernels run by its interpreter, in a process of their own."""

import os
import subprocess
import sys

import pytest


def run_interpreted(script):
    """Run a script that checks kernels on the CPU; skip where the interpreter itself fails."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    if "only 0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("this interpreter of Triton does not know this NumPy")
    assert done.returncode == 0, done.stderr[-3000:]
