"""What an array may be: the kind and dtype of the answer, and errors that name the argument."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import jorth
from jorth import Signature
from jorth._inputs import check_overflow, describe, finite_result

SIG = Signature(2, 1)
EYE = np.eye(3)
FRAME = pd.DataFrame(EYE, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("value", "kind", "dtype"),
    [
        (EYE.astype(np.float32), np.ndarray, np.float32),
        (EYE.astype(np.float16), np.ndarray, np.float32),
        (EYE.astype(np.uint8), np.ndarray, np.float64),
        (EYE.tolist(), np.ndarray, np.float64),
        (list(EYE.astype(np.float32)), np.ndarray, np.float64),
        (FRAME, np.ndarray, np.float64),
        (FRAME.astype(np.float32), np.ndarray, np.float32),
        (FRAME.astype({"a": np.float32}), np.ndarray, np.float64),
        (scipy.sparse.csr_matrix(EYE), np.ndarray, np.float64),
        (torch.eye(3), torch.Tensor, torch.float32),
        (torch.eye(3).bfloat16(), torch.Tensor, torch.float32),
        (torch.eye(3).int(), torch.Tensor, torch.float64),
        (torch.eye(3).double().to_sparse(), torch.Tensor, torch.float64),
    ],
)
def test_kind_and_dtype_of_the_answer(value, kind, dtype):
    found = jorth.exchange(value, SIG)
    assert type(found) is kind
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("value", "error", "said"),
    [
        (FRAME.assign(b="x"), TypeError, "X must hold real numbers, got a DataFrame"),
        (FRAME > 0, TypeError, "X must hold real numbers, got a DataFrame"),
        (np.ma.masked_array(EYE, EYE > 0), ValueError, "no masked entries"),
        ([[1.0], [1.0, 2.0]], ValueError, "must be an array of one shape"),
        ([[None, 1.0]], TypeError, "X must hold real numbers, .* type object"),
        ("eye", TypeError, "X must be an array"),
    ],
)  # fmt: skip
def test_what_is_refused_is_described(value, error, said):
    with pytest.raises(error, match=said):
        jorth.inverse(value, SIG)


def test_a_second_argument_takes_the_dtype_of_the_first():
    X = EYE.astype(np.float32)
    for G in (EYE.tolist(), EYE.astype(int), FRAME, scipy.sparse.coo_array(EYE)):
        assert jorth.riemannian_gradient(X, G, SIG).dtype == np.float32
    with pytest.raises(TypeError, match=r"G must have the dtype and device of X .*float64"):
        jorth.riemannian_gradient(X, EYE, SIG)
    tensor = torch.from_numpy(EYE)
    assert isinstance(jorth.riemannian_gradient(tensor, EYE, SIG), torch.Tensor)
    assert isinstance(jorth.riemannian_gradient(EYE, tensor, SIG), torch.Tensor)


def test_floats_are_not_copied():
    X = EYE.copy()
    assert jorth._inputs.to_tensor(X, "X").data_ptr() == X.ctypes.data


def test_descriptions():
    assert describe(FRAME) == "a DataFrame of shape (3, 3)"
    assert describe(FRAME["a"]) == "a float64 Series of shape (3,)"
    assert describe([[1, 2]] * 40) == "list of length 40"
    assert describe(1.5) == "1.5"
    assert len(describe("x" * 1000)) < 100
    assert describe(np.eye(2, dtype=int)) == "an int64 array of shape (2, 2)"


@pytest.mark.parametrize("kind", [np.float32, torch.FloatTensor])
def test_a_result_of_finite_arguments_that_is_not_finite(kind):
    found = np.array([1.0, np.inf], dtype=np.float32)
    result = found if kind is np.float32 else torch.from_numpy(found)
    with pytest.raises(ValueError, match=r"^x must be of a size at which z is finite in .*float32"):
        check_overflow(result, "x", "z")
    check_overflow(result[:1], "x", "z")
    with pytest.raises(ValueError, match="got overflow"):
        finite_result(float("inf"), "x")
