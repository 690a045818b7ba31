"""Inputs converted to floats: lists, integers, float16, data frames and sparse matrices.

pandas is not imported: a frame is what has columns and turns into a NumPy array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.messages import cut, describe, listed, warn_user

MOST_DENSE = 2**28
"""The most entries of a sparse matrix that is made dense: 2 GiB in float64."""
KINDS = "NumPy, torch, nested lists, pandas or scipy.sparse"
NATIVE = frozenset((np.dtype(np.float64), np.dtype(np.float32)))
FLOATS = (torch.float64, torch.float32)
HALF = (torch.bfloat16, torch.float16)
"""The dtypes of weights that are rounded from float32 ones; nothing is computed in them."""
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


class _Frame(Protocol):
    """A frame or a series, of pandas or of another library."""

    def to_numpy(self) -> NDArray[Any]: ...


class _Sparse(Protocol):
    """A matrix or an array of scipy.sparse."""

    def toarray(self) -> NDArray[Any]: ...


Convertible: TypeAlias = Sequence[Any] | NDArray[np.integer] | _Frame | _Sparse
"""What is turned into an array: `ArrayT | Convertible` is how a function says that it takes both.

An object with nothing but ``__array__`` is taken as well, but not told to type checkers: tensors
have that method, too, and a checker would no longer see that a tensor gives a tensor.
"""
ArrayLike: TypeAlias = NDArray[Any] | Tensor | Convertible
"""What is accepted wherever an array is taken.

Arrays and tensors of float64 and float32 are used as they are. Whole numbers and lists become
float64, float16 and bfloat16 become float32, and a frame keeps float32 if all of its columns have
it. The answer is a tensor for a tensor, on its device, and a NumPy array for anything else.
"""


def is_sparse(value: object) -> bool:
    """Whether the value is a matrix or an array of scipy.sparse."""
    return hasattr(value, "tocsr")


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is dense: neither sparse nor nested."""
    return tensor.layout is torch.strided and not tensor.is_nested


def carries_floats(value: object) -> bool:
    """Whether a value is an array or a tensor that is used as it is, not converted."""
    if isinstance(value, np.ndarray):
        return value.dtype in NATIVE and not isinstance(value, np.ma.MaskedArray)
    return isinstance(value, Tensor) and value.dtype in FLOATS and is_plain(value)


def to_floats(value: object, name: str) -> NDArray[Any] | Tensor:
    """An array or a tensor of float64 or float32, see `ArrayLike`, or an error."""
    if isinstance(value, Tensor):
        return _tensor_of_floats(value, name)
    array = to_array(value, name)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in "iuf" or (kind == "f" and size > 8):
        raise _not_numbers(value, array, name)
    without_dtype = isinstance(value, Sequence)
    single = kind == "f" and size <= 4 and not without_dtype
    return array.astype(np.float32 if single else np.float64, copy=False)


def as_array(value: Any, name: str) -> Any:
    """An array, a tensor or a sparse matrix as it is; anything else as an array of floats."""
    known = isinstance(value, (np.ndarray, Tensor)) or is_sparse(value)
    return value if known else to_floats(value, name)


def to_array(value: object, name: str) -> NDArray[Any]:
    """A NumPy array of any dtype from anything but a tensor, or an error."""
    if isinstance(value, np.ma.MaskedArray):
        masked = int(np.ma.count_masked(value))  # type: ignore[no-untyped-call]
        if masked:
            found = f"{describe(value)} with {masked} of them"
            raise ValueError(f"{name} must have no masked entries, got {found}")
        return np.asarray(value.data)
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # without the ways of a subclass
    if isinstance(value, (type, str, bytes, bytearray, np.generic)):
        raise _not_an_array(value, name)
    if is_sparse(value):
        return _dense(value, name)
    if hasattr(value, "to_numpy"):
        return _from_frame(value, name)
    if isinstance(value, Sequence) or hasattr(value, "__array__"):
        return _from_sequence(value, name)
    raise _not_an_array(value, name)


def _not_an_array(value: object, name: str) -> TypeError:
    return TypeError(f"{name} must be an array ({KINDS}), got {describe(value)}")


def _not_numbers(value: object, array: NDArray[Any], name: str) -> TypeError:
    """The error for entries that are not real numbers, or have more digits than float64."""
    found = describe(value)
    if not isinstance(value, np.ndarray):
        found += f" with entries of type {cut(array.dtype)}"
    if array.dtype == object:
        entries = array.reshape(-1)[:1000].tolist()
        kinds = {type(entry).__name__ for entry in entries} - {"float", "int"}
        found += f", among them {cut(', '.join(sorted(kinds)))}" if kinds else ""
    return TypeError(
        f"{name} must hold real numbers (float64, float32, float16 or integers), got {found}"
    )


def _from_sequence(value: Any, name: str) -> NDArray[Any]:
    """Nested lists, or an object that turns into an array."""
    if isinstance(value, Sequence) and any(isinstance(part, Tensor) for part in value):
        found = f"{describe(value)} with tensors in it; torch.stack makes one of them"
        raise TypeError(f"{name} must be one tensor or have none in it, got {found}")
    try:
        return np.asarray(value)
    except Exception as error:  # whatever a class of someone else raises
        found = f"{describe(value)} whose parts differ in shape"
        if not isinstance(value, Sequence):
            found = f"{describe(value)}, which does not turn into one"
        raise ValueError(f"{name} must be an array of one shape, got {found}") from error


def _from_frame(frame: Any, name: str) -> NDArray[Any]:
    """The values of a data frame or a series; errors name the columns."""
    labels, dtypes = _columns(frame)
    unfit = columns_not_of(frame, "iuf")
    if unfit:
        raise TypeError(
            f"{name} must have columns of real numbers, got {describe(frame)} with {unfit}"
        )
    complete = ~_missing(frame)
    if not complete.all():
        columns = listed([label for label, full in zip(labels, complete, strict=True) if not full])
        found = f"{describe(frame)} with some in column {columns}"
        raise ValueError(f"{name} must have no missing values, got {found}")
    kinds = [f"{dtype.kind}{dtype.itemsize}" for dtype in dtypes if hasattr(dtype, "itemsize")]
    return np.asarray(frame, dtype=np.result_type(*kinds) if kinds else None)


def columns_not_of(frame: Any, kinds: str) -> str:
    """Which columns have dtypes of other kinds (letters of NumPy), for a message; "" for none."""
    unfit = [one for one in zip(*_columns(frame), strict=True) if _kind(one[1]) not in kinds]
    if not unfit:
        return ""
    return f"{cut(unfit[0][1])} in column {listed([label for label, _ in unfit])}"


def warn_of_other_order(first: Any, second: Any, name: str, other: str) -> None:
    """Warn of two frames with the same labels in another order: they are paired by position."""
    labels = _other_order(first, second)
    if labels:
        how = {"index": f"{other}.loc[{name}.index]", "columns": f"{other}[{name}.columns]"}
        warn_user(
            f"{name} and {other} have the same {labels} in another order, but are matched by "
            f"position, not by labels; if that is not meant, pass {how[labels]}",
            UserWarning,
        )


def _other_order(first: Any, second: Any) -> str:
    """Which labels two frames have in common, but in another order: "index", "columns" or ""."""
    for labels in ("index", "columns"):
        ours: Any = getattr(first, labels, None)
        theirs: Any = getattr(second, labels, None)
        if not (hasattr(ours, "isin") and hasattr(theirs, "isin")):  # not both are of pandas
            continue
        if len(ours) == len(theirs) and not ours.equals(theirs) and ours.isin(theirs).all():
            return labels
    return ""


def _columns(frame: Any) -> tuple[list[Any], list[Any]]:
    """The labels and the dtypes of the columns of a frame, or of a series."""
    if hasattr(frame, "columns"):
        return list(frame.columns), list(frame.dtypes)
    return [getattr(frame, "name", None)], [frame.dtype]


def _kind(dtype: Any) -> str:
    return getattr(dtype, "kind", "f")


def _missing(frame: Any) -> NDArray[np.bool_]:
    """Which columns have missing values, where the library has a notion of them."""
    columns = np.atleast_2d(np.asarray(frame.isna() if hasattr(frame, "isna") else []).T)
    return np.asarray(columns.any(axis=1))


def _dense(value: Any, name: str) -> NDArray[Any]:
    _check_size(value, name)
    return np.asarray(value.toarray())


def _check_size(value: Any, name: str) -> None:
    """Raise a ValueError for a sparse matrix that would fill the memory."""
    entries = math.prod(value.shape)
    if entries > MOST_DENSE:
        needed = f"{entries * 8 / 2**30:,.0f} GiB as the dense matrix that is needed here"
        raise ValueError(
            f"{name} must be smaller, got {describe(value)}, which takes {needed}; "
            "convert it yourself if there is room"
        )


def _tensor_of_floats(value: Tensor, name: str) -> Tensor:
    if value.is_meta or value.is_nested or value.is_quantized:
        raise TypeError(f"{name} must be a dense tensor with data, got {describe(value)}")
    if value.layout is not torch.strided:
        _check_size(value, name)
        value = value.to_dense()
    if value.dtype in FLOATS:
        return value
    if value.dtype in HALF:
        return value.float()
    if value.dtype in INTEGERS:
        return value.double()
    expected = "real numbers (float64, float32, half precision or integers)"
    raise TypeError(f"{name} must hold {expected}, got {describe(value)}")
