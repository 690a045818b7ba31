"""The forms in which people have an array, and whether a call gives the same answer for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from torch import Tensor

from tests.fuzz.calls import Call
from tests.fuzz.mutations import As, kind_of

Form = Callable[[np.ndarray], Any]
UNLIKE = ("time", "history", "stages", "gradient_norm", "residual")
"""Parts of an answer that differ from run to run, or are small by cancellation."""


def _frame(array: np.ndarray) -> Any:
    return pd.DataFrame(array) if array.ndim == 2 else pd.Series(array) if array.ndim == 1 else None


def _sparse(array: np.ndarray) -> Any:
    return scipy.sparse.coo_array(array) if array.ndim in (1, 2) else None


FORMS: dict[str, Form] = {
    "list": np.ndarray.tolist,
    "tuples": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else tuple(a) if a.ndim == 1 else None,
    "frame": _frame,
    "frame of float32": lambda a: _frame(a.astype(np.float32)) if a.dtype.kind == "f" else None,
    "nullable frame": lambda a: None if (f := _frame(a)) is None else f.convert_dtypes(),
    "sparse": _sparse,
    "masked, none of it": np.ma.masked_array,
    "float16": lambda a: a.astype(np.float16) if a.dtype.kind == "f" else None,
    "integers": lambda a: np.rint(3 * a).astype(np.int32) if a.dtype.kind == "f" else None,
    "identity of integers": lambda a: (
        np.eye(*a.shape, dtype=np.int64) if a.ndim == 2 and a.dtype.kind == "f" else None
    ),
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder(">")),
}


class Change(NamedTuple):
    """An array among the arguments of a call, and the form that it is given in."""

    call: Call
    argument: str
    form: str

    def __str__(self) -> str:
        return f"{self.call.name}({self.argument}: {self.form})"


def array_arguments(call: Call, seed: int) -> dict[str, np.ndarray]:
    """The arrays among the right arguments of a call, as NumPy has them."""
    found = {}
    for name, value in call.arguments(np.random.default_rng(seed)).items():
        plain = value.value if isinstance(value, As) else value
        if kind_of(name, value) == "array" and isinstance(plain, (np.ndarray, Tensor)):
            found[name] = plain.detach().numpy() if isinstance(plain, Tensor) else np.asarray(plain)
    return found


def both_answers(change: Change, seed: int) -> tuple[Any, Any] | None:
    """What a call gives for the form and for the plain array of the same numbers.

    Other arrays are NumPy's as well. None where the array cannot have that form. Numbers of lower
    precision are float32, or float64 beside other arrays of float64.
    """
    own = array_arguments(change.call, seed)
    form = FORMS[change.form](own[change.argument])
    if form is None:
        return None
    plain = plain_of(form, whole=own[change.argument].dtype.kind in "iu")
    found, wanted = answer(change, form, seed), answer(change, plain, seed)
    if plain.dtype == np.float32 and is_error(wanted) and not is_error(found):
        wanted = answer(change, plain.astype(np.float64), seed)
    return found, wanted


def plain_of(form: Any, *, whole: bool) -> np.ndarray:
    """The array of float64 or float32, or of whole numbers, that a form stands for."""
    array = form.toarray() if scipy.sparse.issparse(form) else np.asarray(form)
    if whole:
        return array.astype(np.int64)
    single = array.dtype.kind == "f" and array.dtype.itemsize < 8
    return array.astype(np.float32 if single else np.float64)


def is_error(found: Any) -> bool:
    return isinstance(found, Exception)


def answer(change: Change, value: Any, seed: int) -> Any:
    """The answer of a call with one of its arrays replaced, or the error that it raised."""
    given = change.call.arguments(np.random.default_rng(seed))
    given = {key: v.value if isinstance(v, As) else v for key, v in given.items()}
    given |= array_arguments(change.call, seed)
    try:
        return change.call.function(**given | {change.argument: value})
    except (ValueError, TypeError) as error:
        return error


def numbers_in(value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Every array and number in an answer, with the kind and dtype that it has."""
    if isinstance(value, (np.ndarray, Tensor)):
        kind = f"{type(value).__name__} {value.dtype}"
        yield kind, value.detach().numpy() if isinstance(value, Tensor) else value
    elif isinstance(value, (int, float)):
        yield type(value).__name__, np.asarray(float(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for part in dataclasses.fields(value):
            if part.name not in UNLIKE:
                yield from numbers_in(getattr(value, part.name))
    elif isinstance(value, dict):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from numbers_in(part)
