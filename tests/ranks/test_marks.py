"""The mark by which processes notice that they are at different points."""

import struct

import numpy as np
import pytest
import torch

from jorth._distributed import MARKS, _mark

KINDS = {torch.float64: ("<d", "<q", 64), torch.float32: ("<f", "<i", 32)}


def bits_of(tensor):
    """The bits of every entry as a whole number with a sign, one by one."""
    real, whole, _ = KINDS[tensor.dtype]
    return [
        struct.unpack(whole, struct.pack(real, entry))[0] for entry in tensor.flatten().tolist()
    ]


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 2), (3, 5), (7, 1, 3)], ids=str)
def test_the_mark_is_the_sum_of_the_bits(dtype, shape):
    """Of entries of all sizes and signs; the sum is one of 64 bits, which goes round."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-30, 30, shape)
    tensor = torch.tensor(values).to(dtype)
    total = (sum(bits_of(tensor)) + 2**63) % 2**64 - 2**63
    assert _mark(tensor).tolist() == [total % MARKS]


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_every_bit_counts(dtype):
    """Of an entry alone 2^k is no multiple of the prime MARKS: a flipped bit is always seen."""
    _, _, width = KINDS[dtype]
    integers = {64: torch.int64, 32: torch.int32}[width]
    tensor = torch.tensor([0.1, 0.2, 0.3], dtype=dtype)  # an odd number of entries
    before = _mark(tensor)
    for entry in range(3):
        for bit in range(width):
            flipped = tensor.clone().view(integers)
            flipped[entry] ^= (1 << bit) - (1 << width if bit == width - 1 else 0)
            assert _mark(flipped.view(dtype)) != before, (entry, bit)


def test_signs_of_zero_and_last_digits_count():
    assert _mark(torch.tensor([0.0])) != _mark(torch.tensor([-0.0]))
    above = np.nextafter(1.0, 2.0)
    assert _mark(torch.tensor([1.0], dtype=torch.float64)) != _mark(
        torch.tensor([above], dtype=torch.float64)
    )


def test_the_layout_does_not_count():
    tensor = torch.arange(6.0).reshape(2, 3)
    assert _mark(tensor.T.contiguous().T) == _mark(tensor)
    assert _mark(tensor[:, ::2]) == _mark(tensor[:, ::2].clone())
