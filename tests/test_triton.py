"""Triton's compiler takes every kernel, on any machine that has Triton."""

import subprocess
import sys

import pytest

from jorth._triton import has_triton


@pytest.mark.skipif(not has_triton(), reason="needs Triton 3.2 or later")
def test_every_kernel_compiles():
    command = [sys.executable, "-m", "tests.compiled_kernels"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    kernels = "apply_steps pair_coefficients row_sums row_weights solve_pairs square_and_slope"
    assert done.stdout.split() == ["compiled", *kernels.split(), "whole_steps"]
