"""What the estimators check: as scikit-learn does, in words that name the argument and show no data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, validate_data

from jorth.arrays import describe, real_number

FLOATS = [np.float64, np.float32]
DATA = re.compile(r"array|tensor|\[\[|: '|<")
"""What scikit-learn's messages have where they repeat what they were given."""
LONGEST = 160


def rows(estimator: Any, X: Any, **options: Any) -> NDArray[Any]:
    """The rows (m, n) in float64 or float32, as `validate_data` of scikit-learn gives them."""
    with naming(X=X):
        found: NDArray[Any] = validate_data(estimator, X, dtype=FLOATS, **options)
        return found


def rows_and_targets(estimator: Any, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same together with numbers (m, ...) that belong to the rows."""
    with naming(X=X, y=y):
        if issparse(y):
            raise TypeError("Sparse data was passed for y, but dense data is required")
        found: tuple[NDArray[Any], NDArray[Any]] = validate_data(
            estimator, X, y, dtype=FLOATS, multi_output=True, y_numeric=True
        )
        return found


def numbers(value: Any, name: str, **options: Any) -> NDArray[Any]:
    """An array of numbers, as `check_array` of scikit-learn gives it."""
    with naming(**{name: value}):
        found: NDArray[Any] = check_array(value, input_name=name, **options)
        return found


@contextmanager
def naming(**given: Any) -> Iterator[None]:
    """An error inside becomes one that names the arguments and says what they were; no line of data is left in it."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        was = ", ".join(f"{name} {describe(value)}" for name, value in given.items())
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{_sentence(str(error))}; got {was}") from error


def _sentence(message: str) -> str:
    """The message, or its first sentence where the rest is long or repeats data."""
    if len(message) <= LONGEST and not DATA.search(message):
        return message.rstrip(".")
    first = re.split(r":|\n|\. |'", message)[0][:LONGEST]
    advice = (
        ". Reshape your data" if "Reshape your data" in message else ""
    )  # which scikit-learn's own checks ask for
    return first + advice


def at_least_zero(value: Any, name: str) -> Any:
    """A number of at least 0 as a float, or None."""
    return (
        None
        if value is None
        else real_number(value, name, "a number of at least 0", lambda x: x >= 0)
    )
