"""What `tests.typed_user` tells the type checker is what happens."""

import numpy as np
import pytest
import torch

from tests import typed_user


@pytest.mark.parametrize("part", ["decompositions", "the_group", "points", "runs"])
def test_a_typed_script_runs(part):
    results = getattr(typed_user, part)()
    assert results


def test_kinds_are_those_that_the_hints_promise():
    kinds = [type(one[0] if isinstance(one, tuple) else one) for one in typed_user.decompositions()]
    array, tensor = np.ndarray, torch.Tensor
    assert kinds == [array, tensor, *[array] * 6, tensor, *[array] * 4, tensor, array, tensor]
    kinds = [type(one) for one in typed_user.the_group()]
    assert kinds[:6] == [array, tensor, array, array, tensor, tensor]
    kinds = [type(one) for one in typed_user.points()]
    assert kinds[:4] == [array, array, tensor, array]
