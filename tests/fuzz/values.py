"""What may stand in the place of a right argument: the same in another form, or something wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from torch import Tensor

from jorth import Signature

LONG = "a long text " * 10_000


class As:
    """A right value whose kind cannot be seen in it, such as None for a number."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind = kind
        self.value = value


def plain(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as they are passed."""
    return {name: v.value if isinstance(v, As) else v for name, v in arguments.items()}


def kind_of(name: str, value: object) -> str:
    """The kind of an argument, by its right value."""
    if isinstance(value, As):
        return value.kind
    if name in ("seed", "random_state"):
        return "seed"
    kinds: dict[str, Any] = {
        "array": (np.ndarray, Tensor),
        "signature": Signature,
        "flag": bool,
        "count": (int, np.integer),
        "number": float,
        "choice": str,
        "sizes": tuple,
        "path": Path,
    }
    return next((kind for kind, types in kinds.items() if isinstance(value, types)), "other")


def as_numpy(value: Any) -> Any:
    """A copy of an array or a tensor as NumPy's."""
    return value.detach().numpy().copy() if isinstance(value, Tensor) else np.array(value)


# -- the same numbers in another form


def _frame(array: np.ndarray) -> Any:
    return pd.DataFrame(array) if array.ndim == 2 else pd.Series(array) if array.ndim == 1 else None


def _spread(array: np.ndarray) -> np.ndarray:
    """The same entries with gaps between them in memory."""
    wide = np.zeros(tuple(2 * size for size in array.shape), dtype=array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def _frozen(array: np.ndarray) -> np.ndarray:
    frozen = array.copy()
    frozen.flags.writeable = False
    return frozen


def _backwards(array: np.ndarray) -> np.ndarray:
    """The same entries, stored from the end."""
    turn = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[turn])[turn]


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tuples": lambda a: tuple(map(tuple, a)) if a.ndim == 2 else None,
    "frame": _frame,
    "sparse": lambda a: scipy.sparse.coo_array(a) if a.ndim == 2 else None,
    "masked, none of it": np.ma.masked_array,
    "np.matrix": lambda a: np.asmatrix(a) if a.ndim == 2 else None,
    "fortran": np.asfortranarray,
    "gaps": _spread,
    "backwards": _backwards,
    "read-only": _frozen,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "tensor": torch.from_numpy,
    "tensor, turned": lambda a: torch.from_numpy(a).mT.contiguous().mT if a.ndim > 1 else None,
    "tensor, sparse": lambda a: torch.from_numpy(a).to_sparse() if a.ndim == 2 else None,
    "float32": lambda a: a.astype(np.float32) if a.dtype.kind == "f" else None,
    "tensor of float32": lambda a: torch.from_numpy(a).float() if a.dtype.kind == "f" else None,
}


# -- wrong values

ANYTHING: list[Any] = [
    None, "3", "", LONG, b"3", True, math.nan, 1 + 1j, [1, 2], list(range(50_000)), {1: 2},
    np.ones((3, 2)), torch.tensor([1.0]), object(), int,
]  # fmt: skip
NUMBERS: list[Any] = [
    np.float32(1.5), np.int64(2), np.array(1.5), torch.tensor(1.5), np.bool_(True), math.inf,
    -math.inf, 0.0, -0.0, -1.0, 1e300, 1e30, 1e-300, 5e-324, 2**63,
]  # fmt: skip
COUNTS: list[Any] = [
    -1, 0, 1, 3.0, 2.5, math.inf, np.int64(3), np.uint8(3), np.bool_(True), np.array(3),
    2**31, 2**63, 10**30, -(2**63), np.uint64(2**63),
]  # fmt: skip
SIZES: list[Any] = [
    (), (2.0, 2.0), (-1, -1), (math.nan, 1), (None, 1), (True, 1), (2**63, 1), (0, 0),
    (np.int64(2),), np.array([2]),
]  # fmt: skip
NO_NUMBERS: dict[str, Callable[[np.ndarray], Any]] = {
    "complex": lambda a: a + 1j,
    "strings": lambda a: a.astype(str),
    "objects": lambda a: np.full(a.shape, None),
    "dates": lambda a: np.zeros(a.shape, dtype="datetime64[s]"),
    "frame of strings": lambda a: None if (f := _frame(a)) is None else f.astype(str),
    "all masked": lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, bool)),
    "NaN": lambda a: np.full(a.shape, np.nan),
    "tensor, complex": lambda a: torch.from_numpy(a) + 1j,
    "list of None": lambda a: [[None, 1.0]],
    "a text": lambda a: LONG,
    "nothing": lambda a: object(),
}
"""Arrays that are never right, whatever is asked for."""
ODD_ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "an infinity": lambda a: np.where(np.arange(a.size).reshape(a.shape) == 0, np.inf, a),
    "zeros": np.zeros_like,
    "huge": lambda a: a * 1e300,
    "large": lambda a: a * 1e150,
    "tiny": lambda a: a * 1e-300,
    "subnormal": lambda a: a * 1e-320,
    "equal": np.ones_like,
    "flags": lambda a: a > 0,
    "float16": lambda a: a.astype(np.float16),
    "integers": lambda a: a.astype(np.int64),
    "batch of two": lambda a: np.stack([a, a]),
    "batch of none": lambda a: np.stack([a, a])[:0],
    "empty": lambda a: a[:0] if a.ndim else a,
    "no columns": lambda a: a[..., :0] if a.ndim else a,
    "flat": np.ravel,
    "a row less": lambda a: a[1:] if a.ndim else a,
    "a column less": lambda a: a[..., 1:] if a.ndim else a,
    "turned": np.transpose,
    "more dimensions": lambda a: a[..., None, None],
    "a number": lambda a: 1.0,
    "None": lambda a: None,
    "ragged": lambda a: [[1.0], [1.0, 2.0]],
}


def _signatures(value: Signature) -> list[Any]:
    signs = value.signs
    return [
        (2, 1), signs.tolist(), Signature, np.diag(signs.astype(float)),
        Signature.of([*signs, 1]), Signature.of(signs[:-1]), Signature.of(-signs),
        Signature(value.n, 0), Signature(0, value.n), Signature(1, 0),
    ]  # fmt: skip


def _returning(answer: Any) -> Callable[..., Any]:
    return lambda *arguments: answer


FUNCTIONS = [
    _returning(answer)
    for answer in (
        None, "text", math.nan, 1.5, 1 + 1j, [0.0] * 50_000, object(), np.ones((2, 5)),
        torch.ones(2, 5), torch.tensor(1.5), torch.tensor(math.nan), torch.tensor(1 + 1j),
    )
]  # fmt: skip


def wrong_values(kind: str, value: Any) -> dict[str, Any]:
    """What to try in the place of a right value of some kind, by what a message calls it."""
    if kind == "array":
        return {name: _in_kind(change, value) for name, change in (NO_NUMBERS | ODD_ARRAYS).items()}
    own: dict[str, list[Any]] = {
        "number": NUMBERS,
        "count": COUNTS,
        "seed": [*COUNTS, np.random.RandomState(3), torch.Generator(), 2**200],
        "choice": ["nonsense", f"{value} ", str(value).upper(), [value]],
        "flag": [not value, np.bool_(True), 0.5],
        "sizes": SIZES,
        "signature": _signatures(value) if kind == "signature" else [],
        "function": FUNCTIONS,
    }
    callable_too = kind == "function"  # what a function of someone else raises is its own affair
    anything = [value for value in ANYTHING if not (callable_too and value is int)]
    return {f"{wrong!r:.40}": wrong for wrong in [*anything, *own.get(kind, [])]}


def _in_kind(change: Callable[[np.ndarray], Any], value: Any) -> Any:
    """A changed array, as a tensor where the right value is one."""
    changed = change(np.eye(4) if value is None else as_numpy(value))
    numeric = type(changed) is np.ndarray and changed.dtype.char in "?dfelbBih"
    both = isinstance(value, Tensor) and numeric
    return torch.from_numpy(np.ascontiguousarray(changed)) if both else changed
