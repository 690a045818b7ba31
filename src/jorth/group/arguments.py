"""Several matrices (..., n, n) as arguments of one function: checks, and what they must share."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from jorth import _inputs
from jorth._inputs import describe, square_matrix, tensor_alike
from jorth.group.elements import check_feasible, finite_square
from jorth.signature import Signature


def elements(signature: Signature, **values: object) -> list[Tensor]:
    """J-orthogonal tensors of one dtype and device that broadcast against the first of them."""
    (first_name, first), *others = values.items()
    point = finite_square(first, signature, first_name)
    found = [point]
    found += [beside(value, name, point, first_name, signature) for name, value in others]
    for name, tensor in zip(values, found, strict=True):
        check_feasible(tensor, signature, name)
    return found


def beside(
    value: object, name: str, first: Tensor, first_name: str, signature: Signature
) -> Tensor:
    """A finite tensor (..., n, n) with the dtype and device of the first, and a batch that fits."""
    tensor = square_matrix(tensor_alike(value, name, first, first_name), signature, name)
    _inputs.check_finite(tensor, name)
    try:
        np.broadcast_shapes(tensor.shape, first.shape)
    except ValueError:
        found = f"{describe(value)} and {describe(first)}"
        raise ValueError(f"{name} must broadcast against {first_name}, got {found}") from None
    return tensor
