"""A script as users write it, for the type checker: `make types` reads it, and a test runs it.

NumPy in, NumPy out; torch in, torch out; lists, frames and sparse matrices give NumPy arrays.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor
from typing_extensions import assert_type

import jorth

Floats = NDArray[np.floating[Any]]
SIGNATURE = jorth.Signature(2, 1)
ARRAY = np.diag([1.0, 2.0, 3.0])
TENSOR = torch.eye(3, dtype=torch.float64)
NESTED: list[list[float]] = ARRAY.tolist()
INTEGERS = np.eye(3, dtype=np.int64)


class Frame(Protocol):
    """What pandas' own stubs say of a frame, as far as it matters here."""

    def to_numpy(self, dtype: Any = None, copy: bool = False) -> NDArray[Any]: ...


class Sparse(Protocol):
    """What the stubs of scipy say of a sparse matrix, as far as it matters here."""

    def toarray(self) -> NDArray[Any]: ...


FRAME: Frame = pd.DataFrame(ARRAY)
SPARSE: Sparse = scipy.sparse.csr_array(ARRAY)


def decompositions() -> list[object]:
    sig = SIGNATURE
    return [
        assert_type(jorth.eigh(ARRAY, sig), tuple[Floats, Floats]),
        assert_type(jorth.eigh(TENSOR, sig), tuple[Tensor, Tensor]),
        assert_type(jorth.eigh(NESTED, sig), tuple[Floats, Floats]),
        assert_type(jorth.eigh(FRAME, sig), tuple[Floats, Floats]),
        assert_type(jorth.eigh(SPARSE, sig), tuple[Floats, Floats]),
        assert_type(jorth.eigh(INTEGERS, sig), tuple[Floats, Floats]),
        assert_type(jorth.eigh(SPARSE, sig, subset=(1, 1)), tuple[Floats, Floats]),
        assert_type(jorth.hsvd(NESTED, sig).S, Floats),
        assert_type(jorth.hsvd(TENSOR, sig).S, Tensor),
        assert_type(jorth.polar(NESTED, sig), tuple[Floats, Floats]),
        assert_type(jorth.cs_decomposition(NESTED_IDENTITY, sig).mu, Floats),
        assert_type(jorth.hyperbolic_qr(FRAME_TALL, sig), tuple[Floats, Floats]),
        assert_type(jorth.indefinite_lstsq(FRAME_TALL, [1, 2, 3], sig), Floats),
        assert_type(jorth.indefinite_lstsq(TENSOR[:, :2], [1, 2, 3], sig), Tensor),
        assert_type(jorth.cholesky_update(NESTED_IDENTITY, add=[1, 2, 3]), Floats),
        assert_type(jorth.cholesky_update(torch.eye(3), add=[1, 2, 3]), Tensor),
    ]


NESTED_IDENTITY: list[list[int]] = INTEGERS.tolist()
FRAME_TALL: Frame = pd.DataFrame(ARRAY[:, :2])
ZEROS = [[0.0] * 3] * 3
POINTS: list[list[float]] = [[0.0, 0.0, 1.0]]


def the_group() -> list[object]:
    sig = SIGNATURE
    return [
        assert_type(jorth.inverse(NESTED_IDENTITY, sig), Floats),
        assert_type(jorth.exchange(TENSOR, sig), Tensor),
        assert_type(jorth.polish(FRAME, sig), Floats),
        assert_type(jorth.exp(ZEROS, sig), Floats),
        assert_type(jorth.cayley(TENSOR * 0, sig), Tensor),
        assert_type(jorth.riemannian_gradient(TENSOR, NESTED, sig), Tensor),
        jorth.residual(NESTED, sig, gram=FRAME),
        jorth.component(SPARSE, sig),
    ]


def points() -> list[object]:
    sig, u = SIGNATURE, jorth.ultrahyperbolic
    lifted = assert_type(u.lift(POINTS, sig), Floats)
    return [
        lifted,
        assert_type(u.log(lifted, POINTS, sig), Floats),
        assert_type(u.exp(TENSOR[2], ZEROS[0], sig), Tensor),
        assert_type(u.centroid(POINTS, sig), Floats),
        u.distance(lifted, POINTS, sig),
        u.inner(FRAME, NESTED, sig),
        u.membership(NESTED, sig),
    ]


def runs() -> list[object]:
    sig = SIGNATURE
    return [
        assert_type(jorth.procrustes(NESTED, FRAME, sig), jorth.Result | jorth.BatchResult),
        jorth.procrustes(SPARSE, ARRAY, sig, x0=NESTED_IDENTITY),
        jorth.minimize(jorth.Procrustes(FRAME, NESTED), NESTED_IDENTITY, signature=sig),
        jorth.minimize(jorth.Quadratic(NESTED, FRAME), signature=sig),
        jorth.minimize(jorth.HyperbolicEigenvalue(NESTED), signature=sig),
        jorth.minimize(lambda X: X.square().sum(), TENSOR, signature=sig),
    ]
