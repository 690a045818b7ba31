"""What an array may be: the kind and dtype of the answer, and errors that name columns."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import jorth
from jorth import Signature
from jorth._inputs import MOST_DENSE, describe

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
        (FRAME.astype("Int64"), np.ndarray, np.float64),
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
        (FRAME.assign(b="x"), TypeError, "with (str|object) in column 'b'"),
        (FRAME > 0, TypeError, "with bool in column 'a', 'b', 'c'"),
        (FRAME.assign(b=[1, None, 2], c=np.nan), ValueError, "no missing values, .*'b', 'c'"),
        (np.ma.masked_array(EYE, EYE > 0), ValueError, "no masked entries, got .* with 3 of them"),
        (scipy.sparse.csr_array((10**6, 10**6)), ValueError, "must be smaller, .*7,451 GiB"),
        ([[1.0], [1.0, 2.0]], ValueError, "must be an array of one shape"),
        ([[None, 1.0]], TypeError, "among them NoneType"),
        ([torch.eye(3)], TypeError, "torch.stack"),
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


def test_a_list_that_holds_itself_is_refused():
    own: list = []
    own.append(own)
    with pytest.raises((TypeError, ValueError), match=r"^X must") as caught:
        jorth.inverse(own, SIG)
    assert len(str(caught.value)) < 500


def test_the_limit_of_sparse_matrices_is_two_gigabytes():
    assert MOST_DENSE * 8 == 2 << 30


def test_descriptions():
    assert describe(FRAME) == "a DataFrame of shape (3, 3)"
    assert describe(FRAME["a"]) == "a float64 Series of shape (3,)"
    assert describe([[1, 2]] * 4) == "list of length 4 of lists of length 2"
    assert describe(np.eye(2, dtype=int)) == "an int64 array of shape (2, 2)"


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: jorth.procrustes(X, y, jorth.Signature(2, 1)),
        lambda X, y: jorth.estimators.LorentzAligner(jorth.Signature(2, 1)).fit(X, y),
    ],
)
def test_frames_with_the_same_labels_in_another_order_give_a_warning(fit):
    names = [f"row {i}" for i in range(12)]
    rows = np.random.default_rng(0).standard_normal((12, 3))
    frame = pd.DataFrame(rows, index=names, columns=["x", "y", "t"])
    with pytest.warns(
        UserWarning, match=r"have the same index .*, pass \w+\.loc\[\w+\.index\]"
    ) as told:
        fit(frame, frame[::-1])
    assert [one.filename for one in told] == [__file__]
    with pytest.warns(UserWarning, match="have the same columns in another order"):
        fit(frame, frame[["t", "x", "y"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(frame, frame)
        fit(frame, frame.reset_index(drop=True))
        fit(frame, rows[::-1])
        fit(frame, frame.rename(columns={"x": "a"}))
