"""The base class of the estimators, and checks as in scikit-learn whose errors show no data."""

from __future__ import annotations

import re
import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import Tensor

from jorth._inputs import (
    check_choice,
    check_signature,
    columns_not_of,
    describe,
    is_sparse,
    real_number,
    seed_number,
    to_floats,
)
from jorth.signature import Signature
from jorth.solvers import Result, Status

FLOATS = [np.float64, np.float32]
REPEATED_DATA = re.compile(r"array|tensor|\[\[|: '|<")
"""What a message of scikit-learn contains if it repeats its input."""
LONGEST_MESSAGE = 160


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer for float64 and float32 that names its output columns after its class."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """The number of columns that `transform` returns."""

    def _rows(self, X: Any, **options: Any) -> NDArray[Any]:
        """The rows (m, n) in float64 or float32; ``reset=False`` requires the n of the fit."""
        X = dense(X, "X")
        with naming(X=X):
            found: NDArray[Any] = validate_data(self, X, dtype=FLOATS, **options)
            return found

    def _transformed_rows(self, X: Any) -> NDArray[Any]:
        """The rows (m, k) of what `transform` returns."""
        found = numbers(X, "X", dtype=FLOATS)
        k = self._n_features_out
        if found.shape[1] != k:
            raise ValueError(f"X must have {k} columns, as transform gives, got {found.shape[1]}")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


def check_fitted(estimator: Transformer) -> None:
    """Raise scikit-learn's NotFittedError before the first fit."""
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise NotFittedError(str(error)) from None


def numbers(value: Any, name: str, **options: Any) -> NDArray[Any]:
    """An array of numbers, as scikit-learn's `check_array` returns it."""
    value = dense(value, name)
    with naming(**{name: value}):
        found: NDArray[Any] = check_array(value, input_name=name, **options)
        return found


def dense(value: Any, name: str) -> Any:
    """Return what scikit-learn's checks do not convert as a NumPy array, all else as it is.

    That are sparse matrices, float16, tensors, and arrays of other libraries, whatever scikit-learn
    is told by ``array_api_dispatch``: the estimators compute in NumPy.
    """
    if isinstance(value, Tensor):
        if value.requires_grad:
            found = f"{describe(value)} with one; pass {name}.detach()"
            raise TypeError(f"{name} must need no gradient, as estimators have none, got {found}")
        floats = to_floats(value, name)
        return floats.cpu().numpy() if isinstance(floats, Tensor) else floats
    if isinstance(value, np.ndarray):
        return to_floats(value, name) if value.dtype == np.float16 else value
    foreign = hasattr(value, "__array_namespace__")
    return to_floats(value, name) if foreign or (is_sparse(value) and value.shape[0]) else value


def seed_of(random_state: Any) -> int:
    """Return a seed: an integer itself, else drawn from a RandomState or, for None, NumPy's own."""
    if isinstance(random_state, Integral):
        return seed_number(random_state, "random_state")
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        expected, found = "an integer, a RandomState or None", describe(random_state)
        raise TypeError(f"random_state must be {expected}, got {found}") from None


def signature_for(columns: int, signature: Signature | None, time: Any) -> Signature:
    """The signature with one sign per column; None stands for Lorentz with the given time."""
    check_choice(time, "time", ("first", "last"))
    if signature is None:
        return Signature.lorentz(columns, time)
    signature = check_signature(signature)
    if signature.n != columns:
        expected = f"{columns} signs, one for each column of X"
        raise ValueError(f"signature must have {expected}, got {signature}")
    return signature


def at_least_zero(value: Any, name: str) -> Any:
    """A number of at least 0 as a float, or None."""
    if value is None:
        return None
    return real_number(value, name, "a number of at least 0", lambda number: number >= 0)


def warn_unless_converged(result: Result) -> None:
    """Warn on behalf of the caller of `fit`."""
    if result.status not in (Status.CONVERGED, Status.STALLED):
        message = f"the fit did not converge: {result.message}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)


@contextmanager
def naming(**given: Any) -> Iterator[None]:
    """Let an error name the arguments and describe them, without repeating any data."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        found = ", ".join(f"{name} {_described(value)}" for name, value in given.items())
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{_without_data(str(error))}; got {found}") from error


def _described(value: Any) -> str:
    """What a message says of an argument: of a frame also which columns hold no numbers."""
    frame = hasattr(value, "columns") and hasattr(value, "dtypes")
    unfit = columns_not_of(value, "iufb") if frame else ""
    return f"{describe(value)} with {unfit}" if unfit else describe(value)


def _without_data(message: str) -> str:
    """The message, or its first sentence if the rest is long or repeats data."""
    if len(message) <= LONGEST_MESSAGE and not REPEATED_DATA.search(message):
        return message.rstrip(".")
    first = re.split(r":|\n|\. | '|, but your input has", message)[0][:LONGEST_MESSAGE].rstrip(".")
    # scikit-learn's own checks of estimators look for this advice
    return first + (". Reshape your data" if "Reshape your data" in message else "")
