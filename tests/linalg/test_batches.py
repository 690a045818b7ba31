"""Batches, tensors and float32: every decomposition of a batch is that of each matrix."""

import numpy as np
import pytest
import torch

import jorth
from jorth import Signature
from tests.linalg.reference import positive_definite, tall

SIG = Signature.of([1, -1, 1, 1, -1, 1, -1, 1, 1])
rng = np.random.default_rng(6)


def batch(make):
    return np.stack([[make(3 * i + j) for j in range(3)] for i in range(2)])


DEFINITE = batch(lambda seed: positive_definite(9, 30.0, seed))
POINTS = jorth.random_point(SIG, cond=3.0, batch=(2, 3), seed=5)
TALL = batch(lambda seed: tall(SIG, 4, 3.0, 3.0, seed))
FACTORS = np.linalg.cholesky(DEFINITE).swapaxes(-1, -2).copy()
ROWS = 0.1 * rng.standard_normal((2, 3, 2, 9))

CALLS = {
    "eigh": (lambda A: jorth.eigh(A, SIG), [DEFINITE]),
    "hsvd": (lambda G: tuple(jorth.hsvd(G, SIG)), [rng.standard_normal((2, 3, 10, 9))]),
    "cs": (lambda X: tuple(jorth.cs_decomposition(X, SIG)), [POINTS]),
    "polar": (lambda A: jorth.polar(A, SIG), [POINTS * np.linspace(1, 2, 9)]),
    "qr": (lambda A: jorth.hyperbolic_qr(A, SIG)[1:], [TALL]),
    "lstsq": (
        lambda A, b: (jorth.indefinite_lstsq(A, b, SIG),),
        [TALL, rng.standard_normal((2, 3, 9))],
    ),
    "lstsq, columns": (
        lambda A, b: (jorth.indefinite_lstsq(A, b, SIG),),
        [TALL, rng.standard_normal((2, 3, 9, 5))],
    ),
    "update": (
        lambda R, rows: (jorth.cholesky_update(R, add=rows, drop=0.1 * rows[..., 0, :]),),
        [FACTORS, ROWS],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_batches(name):
    call, arrays = CALLS[name]
    for dtype, atol in ((np.float32, 1e-4), (np.float64, 1e-12)):
        given = [array.astype(dtype) for array in arrays]
        found = call(*map(torch.from_numpy, given))
        single = call(*(array[1, 2] for array in given))
        for part, one in zip(found, single, strict=True):
            assert isinstance(part, torch.Tensor)
            assert part.numpy().dtype == one.dtype == dtype
            assert part.shape == (2, 3, *one.shape)
            size = np.abs(one).max()
            np.testing.assert_allclose(part[1, 2].numpy(), one, rtol=0, atol=atol * size)


DEGREES = {
    "eigh": (1, 0),
    "hsvd": (0, 1, 0),
    "polar": (0, 1),
    "qr": (1,),
    "lstsq": (0,),
    "update": (1,),
}
"""With what power of the size of the data each part grows."""


@pytest.mark.parametrize("name", DEGREES)
@pytest.mark.parametrize("exponent", [-960, -500, 500, 960])
def test_no_size_over_or_underflows(name, exponent):
    call, arrays = CALLS[name]
    found = call(*(np.ldexp(array[1, 2], exponent) for array in arrays))
    expected = call(*(array[1, 2] for array in arrays))
    for part, one, degree in zip(found, expected, DEGREES[name], strict=True):
        part = np.ldexp(part, -degree * exponent)
        np.testing.assert_allclose(part, one, rtol=0, atol=1e-12 * np.abs(one).max())
