"""`apply_rows` to an X on a device: pairs that are on the host are checked there,
and nothing is read back.

A tensor on "meta" stands for the device: it has no data to read.
"""

from functools import partial

import numpy as np
import pytest
import torch

from jorth._inputs import tensor_alike, to_tensor
from jorth.plane import apply, apply_columns, apply_rows


@pytest.fixture(autouse=True)
def meta_is_a_device(monkeypatch):
    monkeypatch.setattr(apply, "to_tensor", partial(to_tensor, meta=True))
    monkeypatch.setattr(apply, "tensor_alike", partial(tensor_alike, meta=True))


KINDS = [np.array, torch.tensor, list]
X = torch.empty(4, 4, device="meta")
V = torch.empty(2, 2, 2, device="meta")


@pytest.mark.parametrize("function", [apply_rows, apply_columns])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_on_the_host_are_checked(function, kind):
    with pytest.raises(ValueError, match=r"pairs must index 0 \.\. 3, got values from 0 to 4"):
        function(X, kind([[0, 1], [2, 4]]), V)
    with pytest.raises(ValueError, match="pairs must be disjoint, got an index twice"):
        function(X, kind([[0, 1], [2, 1]]), V)


@pytest.mark.parametrize("function", [apply_rows, apply_columns])
@pytest.mark.parametrize("kind", [*KINDS, partial(torch.tensor, device="meta")])
def test_nothing_is_read_from_the_device(function, kind):
    function(X, kind([[0, 1], [2, 3]]), V)
