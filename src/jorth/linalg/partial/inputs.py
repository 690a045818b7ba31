"""What A may be here: a dense or a sparse matrix, or a LinearOperator that only multiplies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from jorth.arrays import check_signature, describe, is_sparse, square_matrix
from jorth.linalg.batch import Floats
from jorth.linalg.partial.davidson import Map
from jorth.signature import Signature

SYMMETRIC = 64
"""How many units of rounding of the largest entry A and A^T may differ by."""


@dataclass(frozen=True)
class Matrix:
    """A / scale, with the scale a power of two.

    Attributes:
        apply: Products with rows (b, n).
        entries: (n, n), a dense array or a CSC matrix; None if A only multiplies.
        scale: A power of two of the size of A.
        unit: The relative rounding of a product.
        wrap: The answer in float64 as the caller wants it.
    """

    apply: Map
    entries: Any
    scale: float
    unit: float
    wrap: Callable[[Floats], Any]

    def negated(self) -> Matrix:
        """-A."""
        entries = None if self.entries is None else -self.entries
        return replace(self, apply=lambda W: -self.apply(W), entries=entries)


class Operator(Protocol):
    """A `scipy.sparse.linalg.LinearOperator`, as far as it is used here."""

    @property
    def shape(self) -> Any: ...

    def matvec(self, x: Any, /) -> Any: ...

    def matmat(self, X: Any, /) -> Any: ...


def is_operator(A: object) -> bool:
    """Whether A is a `scipy.sparse.linalg.LinearOperator`, or nearly one."""
    return hasattr(A, "matvec") and hasattr(A, "matmat") and hasattr(A, "shape")


def is_large(A: object) -> bool:
    """Whether A is sparse or an operator: a single matrix without an array of its entries."""
    return is_operator(A) or is_sparse(A) or (isinstance(A, Tensor) and A.layout != torch.strided)


def read_matrix(A: Any, signature: Signature) -> Matrix:
    """A as a `Matrix`, or an error."""
    n = check_signature(signature).n
    if getattr(A, "shape", None) != (n, n):
        expected = f"shape ({n}, {n}) for {signature} (p + q = {n})"
        found = f"{describe(A)} of shape {tuple(getattr(A, 'shape', ()))}"
        raise ValueError(f"A must have {expected}, got {found if is_operator(A) else describe(A)}")
    if is_operator(A):
        return _operator(A, n)
    if is_large(A):
        return _sparse(A)
    return dense_matrix(square_matrix(A, signature, "A").detach().to("cpu", torch.float64).numpy())


def dense_matrix(A: Floats) -> Matrix:
    """A finite dense matrix; A need not be exactly symmetric."""
    scale = _scale(float(np.abs(A).max()))
    entries = (0.5 * A + 0.5 * A.T) / scale
    return Matrix(lambda W: W @ entries, entries, scale, np.finfo(np.float64).eps, lambda x: x)


def _sparse(A: Any) -> Matrix:
    """A sparse matrix of scipy or torch, in float64."""
    single = A.dtype in (np.float32, np.float16, torch.float32, torch.float16, torch.bfloat16)
    entries = _to_csc(A)
    if entries.nnz and not np.isfinite(entries.data).all():
        bad = int((~np.isfinite(entries.data)).sum())
        raise ValueError(f"A must be finite, got {bad} NaN or infinite of {entries.nnz} entries")
    largest = float(np.abs(entries.data).max()) if entries.nnz else 0.0
    scale = _scale(largest)
    entries = entries / scale
    defect = abs(entries - entries.T)
    eps = np.finfo(np.float32 if single else np.float64).eps
    if defect.nnz and defect.data.max() > SYMMETRIC * eps * largest / scale:
        found = f"max |A - A^T| = {defect.data.max() * scale:.3g}"
        raise ValueError(f"A must be symmetric, got {found}")
    entries = (0.5 * (entries + entries.T)).tocsc()
    rows = entries.tocsr()

    def apply(W: Floats) -> Floats:
        return np.asarray((rows @ W.T).T)

    def wrap(x: Floats) -> Any:
        if isinstance(A, Tensor):
            return torch.from_numpy(np.ascontiguousarray(x)).to(A.device, A.dtype)
        return x.astype(np.float32) if single else x

    return Matrix(apply, entries, scale, np.finfo(np.float64).eps, wrap)


def _to_csc(A: Any) -> Any:
    from scipy.sparse import csc_array

    if isinstance(A, Tensor):
        if A.dtype.is_complex or A.dtype == torch.bool or A.is_meta:
            raise TypeError(f"A must hold real numbers, got {describe(A)}")
        plain: Any = A.detach().cpu().to(torch.float64)
        coordinates = plain.to_sparse_coo().coalesce()
        places = coordinates.indices().numpy()
        return csc_array((coordinates.values().numpy(), (places[0], places[1])), shape=A.shape)
    if A.dtype.kind not in "fiu":
        raise TypeError(f"A must hold real numbers, got {describe(A)}")
    return csc_array(A, dtype=np.float64)


def _operator(A: Any, n: int) -> Matrix:
    """A LinearOperator: two products tell its size, and whether it is symmetric."""
    dtype = np.dtype(np.float64 if getattr(A, "dtype", None) is None else A.dtype)
    if dtype.kind not in "fiu":
        raise TypeError(f"A must hold real numbers, got an operator of dtype {dtype}")
    single = dtype.kind == "f" and dtype.itemsize <= 4
    unit = float(np.finfo(np.float32 if single else np.float64).eps)

    def multiply(W: Floats) -> Floats:
        product = np.asarray(A.matmat(np.ascontiguousarray(W.T)))
        if product.shape != (n, len(W)) or product.dtype.kind not in "fiu":
            raise ValueError(f"A must give real products {(n, len(W))}, got {describe(product)}")
        if not np.isfinite(product).all():
            raise ValueError("A must give finite products, got NaN or infinity")
        return np.ascontiguousarray(product.T, dtype=np.float64)

    W = np.random.default_rng(0).standard_normal((2, n))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    AW = multiply(W)
    scale = _scale(float(np.abs(AW).max()))
    AW = AW / scale
    defect = abs(W[0] @ AW[1] - W[1] @ AW[0])
    if defect > n * SYMMETRIC * unit * np.linalg.norm(AW, axis=1).max():
        found = f"|x^T A y - y^T A x| = {defect * scale:.3g} for unit x and y"
        raise ValueError(f"A must be symmetric, got {found}")

    def wrap(x: Floats) -> Any:
        return x.astype(np.float32) if single else x

    return Matrix(lambda W: multiply(W) / scale, None, scale, unit, wrap)


def _scale(size: float) -> float:
    """The largest power of two up to ``size``, or 1 for 0."""
    return math.ldexp(1.0, math.frexp(size)[1] - 1) if size > 0 else 1.0
