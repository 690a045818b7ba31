"""The base class of the estimators, and what scikit-learn's checks do not convert or check."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor

from jorth._inputs import (
    check_choice,
    check_signature,
    describe,
    is_sparse,
    to_floats,
    whole_number,
)
from jorth.signature import Signature
from jorth.solvers import Result, Status

FLOATS = [np.float64, np.float32]


class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer for float64 and float32 that names its output columns after its class."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Return the number of columns that `transform` returns."""

    def _rows(self, X: Any, **options: Any) -> NDArray[Any]:
        """Return rows (m, n) in float64 or float32; ``reset=False`` requires the n of the fit."""
        found: NDArray[Any] = validate_data(self, dense(X, "X"), dtype=FLOATS, **options)
        return found

    def _transformed_rows(self, X: Any) -> NDArray[Any]:
        """Return the rows (m, k) of what `transform` returns."""
        found: NDArray[Any] = check_array(dense(X, "X"), input_name="X", dtype=FLOATS)
        k = self._n_features_out
        if found.shape[1] != k:
            raise ValueError(f"X must have {k} columns, as transform gives, got {found.shape[1]}")
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


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
        return whole_number(random_state, "random_state", 0)
    return int(check_random_state(random_state).randint(2**31 - 1))


def signature_for(columns: int, signature: Signature | None, time: Any) -> Signature:
    """Return the signature, one sign per column; None stands for Lorentz with the given time."""
    check_choice(time, "time", ("first", "last"))
    if signature is None:
        return Signature.lorentz(columns, time)
    signature = check_signature(signature)
    if signature.n != columns:
        expected = f"{columns} signs, one for each column of X"
        raise ValueError(f"signature must have {expected}, got {signature}")
    return signature


def warn_unless_converged(result: Result) -> None:
    """Warn on behalf of the caller of `fit`."""
    if result.status not in (Status.CONVERGED, Status.STALLED):
        message = f"the fit did not converge: {result.message}"
        warnings.warn(message, ConvergenceWarning, stacklevel=3)
