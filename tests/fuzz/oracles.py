"""Right answers, recomputed in NumPy's long double where the range of float64 does not suffice.

The fuzz asks whether an answer is right at all; how accurate it is, the tests of each room say.
So tolerances are sqrt(u) of the dtype, relative to the sizes of what is added up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

Exact = np.longdouble


def exact(value: Any) -> np.ndarray:
    """A number, an array or a tensor in long double."""
    if isinstance(value, Tensor):
        value = value.detach().double().numpy()
    return np.asarray(value).astype(Exact)


def rough(*arrays: Any) -> float:
    """sqrt(u) of the coarsest dtype among arrays; Python's numbers do not count."""
    tensors = [a.dtype for a in arrays if isinstance(a, Tensor) and a.is_floating_point()]
    others = [np.dtype(getattr(a, "dtype", float)) for a in arrays if not isinstance(a, Tensor)]
    units = [torch.finfo(dtype).eps for dtype in tensors]
    units += [float(np.finfo(dtype).eps) for dtype in others if dtype.kind == "f"]
    return float(np.sqrt(max(units, default=2.3e-16) / 2))


def size(array: Any) -> Any:
    """The largest entry by absolute value."""
    return np.abs(exact(array)).max(initial=0)


def turned(array: np.ndarray) -> np.ndarray:
    """The transpose of the last two dimensions."""
    return np.swapaxes(array, -1, -2)


def signs(signature: Any) -> np.ndarray:
    """The signs in long double."""
    return signature.signs.astype(Exact)


def same_kind(result: Any, value: Any) -> None:
    """Assert that the answer is an array of the kind and dtype of what was given."""
    assert isinstance(result, Tensor) == isinstance(value, Tensor), (
        f"{type(result)} for {type(value)}"
    )
    assert result.dtype == value.dtype, f"{result.dtype} for {value.dtype}"


def close(found: Any, wanted: Any, scale: Any, tolerance: float) -> None:
    """Assert that two arrays are equal to ``tolerance`` times ``scale``."""
    found, wanted = exact(found), exact(wanted)
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    error = np.abs(found - wanted)
    smallest = Exact(np.finfo(np.float64).smallest_normal)  # below it there are no relative errors
    bad = ~(error <= tolerance * np.maximum(exact(scale), smallest))
    assert not bad.any(), f"off by {np.max(error):.3g} at scale {np.max(scale, initial=0):.3g}"


def feasible(X: Any, signature: Any, gram: Any = None) -> None:
    """Assert that X^T J X is J, or ``gram``, relative to max(1, ||X||^2)."""
    x, s = exact(X), signs(signature)
    target = np.diag(s) if gram is None else exact(gram)
    norm = np.sqrt((x * x).sum(axis=(-2, -1), keepdims=True))
    product = turned(x) @ (s[:, None] * x)
    assert np.isfinite(x).all(), "not finite"
    close(product, np.broadcast_to(target, product.shape), np.maximum(1, norm * norm), rough(X))


def orthonormal(Q: Any) -> None:
    """Assert that the columns of Q are orthonormal."""
    q = exact(Q)
    product = turned(q) @ q
    close(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape), 1, rough(Q))


def as_tensor(array: np.ndarray, rng: np.random.Generator) -> Any:
    """The array itself, or half of the time the same as a tensor."""
    return torch.from_numpy(array) if rng.integers(2) else array
