"""What can be wrong, or odd but right, with an argument, by its kind.

A mutation takes the right value and a generator, and gives another value.
It never changes the one it was given.
"""

from __future__ import annotations

import decimal
import fractions
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

Mutation = Callable[[Any, np.random.Generator], Any]
LONG = "a long text " * 10_000
HUGE_COUNTS = (2**31, 2**40, 2**63, 2**64, 10**30)
"""All above the cap on counts; what is just below it would be allocated."""


def kind_of(name: str, value: object) -> str:
    """The kind of an argument, by its right value."""
    if isinstance(value, As):
        return value.kind
    if name in ("seed", "random_state"):
        return "seed"
    for kind, types in KINDS.items():
        if isinstance(value, types):
            return kind
    return "function" if callable(value) else "other"


KINDS: dict[str, Any] = {
    "array": (np.ndarray, Tensor),
    "signature": Signature,
    "flag": bool,
    "count": (int, np.integer),
    "number": float,
    "choice": str,
    "sizes": tuple,
    "path": Path,
}


class As:
    """A right value whose kind cannot be seen in it, such as None for a number."""

    def __init__(self, kind: str, value: Any) -> None:
        self.kind = kind
        self.value = value


# -- arrays


def _array(value: Any) -> np.ndarray:
    """A copy as NumPy's; where none was given, a small matrix."""
    if value is None:
        return np.eye(4)
    return value.detach().numpy().copy() if isinstance(value, Tensor) else np.array(value)


def _back(array: Any, value: Any) -> Any:
    """NumPy's array as the kind of array that ``value`` is."""
    return torch.from_numpy(np.ascontiguousarray(array)) if isinstance(value, Tensor) else array


def _with_entry(entry: float) -> Mutation:
    def mutation(value: Any, rng: np.random.Generator) -> Any:
        array = _array(value)
        if array.size:
            array = array.astype(np.result_type(array.dtype, np.float32))
            array.flat[rng.integers(array.size)] = entry
        return _back(array, value)

    return mutation


def _as_numpy(change: Callable[[np.ndarray], Any]) -> Mutation:
    """The change of a NumPy array, whatever the right value is."""
    return lambda value, rng: change(_array(value))


def _reshaped(change: Callable[[np.ndarray], Any]) -> Mutation:
    """The change of a NumPy array, given back as the kind that the right value is."""
    return lambda value, rng: _back(change(_array(value)), value)


def _as_torch(change: Callable[[Tensor], Any]) -> Mutation:
    return lambda value, rng: change(torch.from_numpy(np.ascontiguousarray(_array(value))))


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _spread(array: np.ndarray) -> np.ndarray:
    """The same entries with gaps between them in memory."""
    wide = np.zeros(tuple(2 * size for size in array.shape), dtype=array.dtype)
    view = wide[(slice(None, None, 2),) * array.ndim]
    view[...] = array
    return view


def _backwards(array: np.ndarray) -> np.ndarray:
    """The same entries, stored from the end."""
    turn = (slice(None, None, -1),) * array.ndim
    return np.ascontiguousarray(array[turn])[turn]


def _frame(array: np.ndarray) -> Any:
    """A series of a vector, a frame of a matrix, and of anything else the first matrix of it."""
    if array.ndim < 2:
        return pd.Series(np.atleast_1d(array), name="x")
    matrix = array.reshape(-1, *array.shape[-2:])[0] if array.size else array.reshape(-1, 1)
    names = [f"c{k}" for k in range(matrix.shape[1])]
    return pd.DataFrame(matrix, columns=names, index=np.arange(len(matrix)) + 5)


def _framed(change: Callable[[np.ndarray], Any]) -> Mutation:
    return lambda value, rng: _frame(change(_array(value)))


def _without_row(array: np.ndarray) -> np.ndarray:
    return array[1:] if array.ndim else array.reshape(1)


def _without_column(array: np.ndarray) -> np.ndarray:
    return array[..., 1:] if array.ndim else array.reshape(1)


ODD_ARRAYS: dict[str, Mutation] = {
    "float32": _reshaped(lambda a: a.astype(np.float32)),
    "fortran": _as_numpy(np.asfortranarray),
    "gaps": _as_numpy(_spread),
    "backwards": _as_numpy(_backwards),
    "read-only": _as_numpy(_frozen),
    "tensor": _as_torch(lambda t: t),
    "tensor, requires grad": _as_torch(lambda t: t.clone().requires_grad_(t.is_floating_point())),
    "tensor, parameter": _as_torch(
        lambda t: torch.nn.Parameter(t, requires_grad=t.is_floating_point())
    ),
    "tensor, turned": _as_torch(lambda t: t.mT.contiguous().mT if t.ndim > 1 else t),
    "numpy": _as_numpy(lambda a: a),
    "np.matrix": _as_numpy(lambda a: np.asmatrix(a) if a.ndim == 2 else a),
    "batch of one": _reshaped(lambda a: a[None]),
    "batch of two": _reshaped(lambda a: np.stack([a, a])),
    "batch of none": _reshaped(lambda a: np.stack([a, a])[:0]),
    "stride zero": _as_numpy(lambda a: np.broadcast_to(a, (2, *a.shape))),
    "zeros": _reshaped(np.zeros_like),
    "minus zeros": _reshaped(lambda a: -np.zeros_like(a, dtype=np.float64)),
    "negated": _reshaped(lambda a: -a),
    "large": _reshaped(lambda a: a * 1e150),
    "huge": _reshaped(lambda a: a * 1e300),
    "tiny": _reshaped(lambda a: a * 1e-300),
    "subnormal": _reshaped(lambda a: a * 1e-320),
    "one huge entry": _with_entry(1e300),
    "one largest entry": _with_entry(float(np.finfo(np.float64).max)),
    "one tiny entry": _with_entry(1e-300),
    "equal entries": _reshaped(np.ones_like),
    "float16": _as_numpy(lambda a: a.astype(np.float16)),
    "other byte order": _as_numpy(lambda a: a.astype(">f8")),
    "int64": _as_numpy(lambda a: a.astype(np.int64)),
    "uint8": _as_numpy(lambda a: np.abs(a).clip(0, 100).astype(np.uint8)),
    "masked": _as_numpy(lambda a: np.ma.masked_array(a, mask=np.zeros(a.shape, bool))),
    "tensor, bfloat16": _as_torch(lambda t: t.to(torch.bfloat16)),
    "tensor, int64": _as_torch(lambda t: t.to(torch.int64)),
    "tensor, sparse": _as_torch(lambda t: t.to_sparse()),
    "list": lambda value, rng: _array(value).tolist(),
    "tuple": lambda value, rng: tuple(_array(value).tolist()) if np.ndim(_array(value)) else (1.0,),
    "scipy sparse": _as_numpy(
        lambda a: scipy.sparse.csr_array(np.atleast_2d(a)) if a.ndim < 3 else None
    ),
    "frame": _framed(lambda a: a),
    "frame of float32": _framed(lambda a: a.astype(np.float32)),
    "frame of nullable integers": lambda value, rng: _frame(np.rint(_array(value))).astype("Int64"),
    "sparse frame": lambda value, rng: _frame(_array(value)).astype(pd.SparseDtype(float)),
}

BAD_ARRAYS: dict[str, Mutation] = {
    "one NaN": _with_entry(math.nan),
    "one inf": _with_entry(math.inf),
    "one minus inf": _with_entry(-math.inf),
    "all NaN": _reshaped(lambda a: np.full(a.shape, np.nan)),
    "long double": _as_numpy(lambda a: a.astype(np.longdouble)),
    "bool": _as_numpy(lambda a: a > 0),
    "complex": _as_numpy(lambda a: a + 1j),
    "object": _as_numpy(lambda a: a.astype(object)),
    "strings": _as_numpy(lambda a: a.astype(str)),
    "dates": _as_numpy(lambda a: a.astype(np.int64).astype("datetime64[s]")),
    "records": _as_numpy(lambda a: np.zeros(a.shape, dtype=[("x", float)])),
    "tensor, complex": _as_torch(lambda t: t.to(torch.complex128)),
    "tensor, meta": _as_torch(lambda t: t.to("meta")),
    "scipy sparse, complex": _as_numpy(
        lambda a: scipy.sparse.csr_array(np.atleast_2d(a) + 1j) if a.ndim < 3 else None
    ),
    "scipy sparse, NaN": _as_numpy(
        lambda a: scipy.sparse.csr_array(np.atleast_2d(a) * math.nan) if a.ndim < 3 else None
    ),
    "frame of strings": _framed(lambda a: a.astype(str)),
    "frame of flags": _framed(lambda a: a > 0),
    "frame with NaN": lambda value, rng: _frame(_with_entry(math.nan)(_array(value), rng)),
    "frame with missing values": lambda value, rng: (
        _frame(_array(value).astype(int)).astype("Int64").shift(1)
    ),
    "some masked": _as_numpy(lambda a: np.ma.masked_array(a, mask=np.ones(a.shape, bool))),
    "sparse, huge": lambda value, rng: scipy.sparse.csr_array((10**6, 10**6)),
    "tensor, flags": _as_torch(lambda t: t > 0),
    "list of tensors": lambda value, rng: [torch.ones(2), torch.ones(2)],
    "list of None": lambda value, rng: [[None, 1.0]],
    "empty": _reshaped(lambda a: a[:0] if a.ndim else a.reshape(1)[:0]),
    "empty columns": _reshaped(lambda a: a[..., :0] if a.ndim else a.reshape(1)[:0]),
    "empty square": _reshaped(lambda a: np.zeros((0, 0))),
    "zero-dimensional": _reshaped(lambda a: np.array(a.flat[0] if a.size else 1.0)),
    "flat": _reshaped(np.ravel),
    "a row less": _reshaped(_without_row),
    "a column less": _reshaped(_without_column),
    "a row more": _reshaped(lambda a: np.concatenate([a, a[:1]]) if a.ndim else np.stack([a, a])),
    "turned": _reshaped(np.transpose),
    "two dimensions more": _reshaped(lambda a: a[..., None, None]),
    "long list": lambda value, rng: [0.5] * 50_000,
    "ragged list": lambda value, rng: [[1.0], [1.0, 2.0]],
    "None": lambda value, rng: None,
    "string": lambda value, rng: "eye",
    "long string": lambda value, rng: LONG,
    "number": lambda value, rng: 1.0,
    "whole number": lambda value, rng: 3,
    "a bool": lambda value, rng: True,
    "dictionary": lambda value, rng: {"X": 1.0},
    "an object": lambda value, rng: object(),
    "a module": lambda value, rng: np,
    "a function": lambda value, rng: lambda *arguments: None,
}

# -- everything else

ANYTHING: dict[str, Mutation] = {
    "None": lambda value, rng: None,
    "string": lambda value, rng: "3",
    "empty string": lambda value, rng: "",
    "long string": lambda value, rng: LONG,
    "bytes": lambda value, rng: b"3",
    "True": lambda value, rng: True,
    "NaN": lambda value, rng: math.nan,
    "complex": lambda value, rng: 1 + 1j,
    "list": lambda value, rng: [1, 2],
    "long list": lambda value, rng: list(range(50_000)),
    "dictionary": lambda value, rng: {1: 2},
    "array of one": lambda value, rng: np.array([1.0]),
    "array": lambda value, rng: np.ones((3, 2)),
    "tensor of one": lambda value, rng: torch.tensor([1.0]),
    "meta tensor": lambda value, rng: torch.ones((), device="meta"),
    "an object": lambda value, rng: object(),
    "a class": lambda value, rng: int,
}


def _or(value: Any, number: float) -> Any:
    """The value, or a number where it is None or a word such as "auto"."""
    return number if value is None or isinstance(value, str) else value


NUMBERS: dict[str, Mutation] = ANYTHING | {
    "NumPy float32": lambda value, rng: np.float32(_or(value, 1.5)),
    "NumPy float64": lambda value, rng: np.float64(_or(value, 1.5)),
    "NumPy integer": lambda value, rng: np.int64(2),
    "integer": lambda value, rng: 2,
    "fraction": lambda value, rng: fractions.Fraction(3, 2),
    "decimal": lambda value, rng: decimal.Decimal("1.5"),
    "array of none": lambda value, rng: np.array(1.5),
    "tensor of none": lambda value, rng: torch.tensor(1.5),
    "NumPy bool": lambda value, rng: np.bool_(True),
    "inf": lambda value, rng: math.inf,
    "minus inf": lambda value, rng: -math.inf,
    "NumPy NaN": lambda value, rng: np.float32(np.nan),
    "zero": lambda value, rng: 0.0,
    "minus zero": lambda value, rng: -0.0,
    "minus one": lambda value, rng: -1.0,
    "huge": lambda value, rng: 1e300,
    "large": lambda value, rng: 1e30,
    "tiny": lambda value, rng: 1e-300,
    "smallest": lambda value, rng: 5e-324,
    "huge integer": lambda value, rng: 2**63,
    "beyond floats": lambda value, rng: 10**400,
    "huge fraction": lambda value, rng: fractions.Fraction(10**400, 3),
}

COUNTS: dict[str, Mutation] = ANYTHING | {
    "minus one": lambda value, rng: -1,
    "zero": lambda value, rng: 0,
    "one": lambda value, rng: 1,
    "two": lambda value, rng: 2,
    "whole float": lambda value, rng: 3.0,
    "fraction": lambda value, rng: 2.5,
    "exact fraction": lambda value, rng: fractions.Fraction(3, 1),
    "inf": lambda value, rng: math.inf,
    "NumPy integer": lambda value, rng: np.int64(_or(value, 3)),
    "NumPy byte": lambda value, rng: np.uint8(_or(value, 3)),
    "NumPy bool": lambda value, rng: np.bool_(True),
    "array of none": lambda value, rng: np.array(3),
    "tensor of none": lambda value, rng: torch.tensor(3),
    "huge": lambda value, rng: HUGE_COUNTS[rng.integers(len(HUGE_COUNTS))],
    "minus huge": lambda value, rng: -(2**63),
    "huge NumPy integer": lambda value, rng: np.uint64(2**63),
}

SEEDS: dict[str, Mutation] = COUNTS | {
    "generator": lambda value, rng: np.random.default_rng(3),
    "old generator": lambda value, rng: np.random.RandomState(3),
    "torch generator": lambda value, rng: torch.Generator(),
    "huge seed": lambda value, rng: 2**200,
    "seed sequence": lambda value, rng: np.random.SeedSequence(3),
}


def _larger(value: Signature, rng: np.random.Generator) -> Signature:
    return Signature.of([*value.signs.tolist(), 1])


def _smaller(value: Signature, rng: np.random.Generator) -> Signature:
    return Signature.of(value.signs.tolist()[:-1] or [-1, 1])


def _shuffled(value: Signature, rng: np.random.Generator) -> Signature:
    return Signature.of(rng.permutation(value.signs))


SIGNATURES: dict[str, Mutation] = ANYTHING | {
    "pair": lambda value, rng: (2, 1),
    "signs": lambda value, rng: value.signs,
    "list of signs": lambda value, rng: value.signs.tolist(),
    "the class": lambda value, rng: Signature,
    "matrix J": lambda value, rng: np.diag(value.signs.astype(float)),
    "larger": _larger,
    "smaller": _smaller,
    "shuffled": _shuffled,
    "flipped": lambda value, rng: Signature.of(-value.signs),
    "no minus": lambda value, rng: Signature(value.n, 0),
    "no plus": lambda value, rng: Signature(0, value.n),
    "of one": lambda value, rng: Signature(1, 0),
}

CHOICES: dict[str, Mutation] = ANYTHING | {
    "unknown": lambda value, rng: "nonsense",
    "capitals": lambda value, rng: str(value).upper(),
    "with a space": lambda value, rng: f"{value} ",
    "in a list": lambda value, rng: [value],
    "as bytes": lambda value, rng: str(value).encode(),
    "NumPy string": lambda value, rng: np.str_(value),
    "NumPy array of it": lambda value, rng: np.array(value),
    "NumPy array of two": lambda value, rng: np.array([value, value]),
}

FLAGS: dict[str, Mutation] = ANYTHING | {
    "the other": lambda value, rng: not value,
    "NumPy bool": lambda value, rng: np.bool_(value),
    "number": lambda value, rng: 0.5,
    "NumPy array of two": lambda value, rng: np.array([True, False]),
}

SIZES: dict[str, Mutation] = ANYTHING | {
    "empty tuple": lambda value, rng: (),
    "one number": lambda value, rng: 2,
    "longer": lambda value, rng: (*value, 2),
    "shorter": lambda value, rng: value[1:],
    "floats": lambda value, rng: tuple(float(size) for size in value),
    "negative": lambda value, rng: tuple(-size for size in value),
    "NaN in it": lambda value, rng: (math.nan, *value[1:]),
    "None in it": lambda value, rng: (None, *value[1:]),
    "bool in it": lambda value, rng: (True, *value[1:]),
    "array in it": lambda value, rng: (np.ones(2), *value[1:]),
    "huge": lambda value, rng: (2**63, *value[1:]),
    "zeros": lambda value, rng: tuple(0 for _ in value),
    "NumPy integers": lambda value, rng: tuple(np.int64(size) for size in value),
    "as a list": lambda value, rng: list(value),
    "as an array": lambda value, rng: np.array(value),
}


def _returns(answer: Any) -> Mutation:
    return lambda value, rng: lambda *arguments: answer


NOT_CALLABLE = {name: mutation for name, mutation in ANYTHING.items() if name != "a class"}
FUNCTIONS: dict[str, Mutation] = NOT_CALLABLE | {
    "returns None": _returns(None),
    "returns a string": _returns("text"),
    "returns NaN": _returns(math.nan),
    "returns inf": _returns(math.inf),
    "returns a number": _returns(1.5),
    "returns complex": _returns(1 + 1j),
    "returns a list": _returns([1.0, 2.0]),
    "returns an object": _returns(object()),
    "returns a long list": _returns([0.0] * 50_000),
    "returns an array": _returns(np.ones((2, 5))),
    "returns strings": _returns(np.array([["a"]])),
    "returns a tensor": _returns(torch.ones(2, 5)),
    "returns a scalar tensor": _returns(torch.tensor(1.5)),
    "returns a NaN tensor": _returns(torch.tensor(math.nan)),
    "returns a complex tensor": _returns(torch.tensor(1 + 1j)),
    "returns a meta tensor": _returns(torch.ones((), device="meta")),
}

MUTATIONS: dict[str, dict[str, Mutation]] = {
    "array": ODD_ARRAYS | BAD_ARRAYS,
    "number": NUMBERS,
    "count": COUNTS,
    "seed": SEEDS,
    "signature": SIGNATURES,
    "choice": CHOICES,
    "flag": FLAGS,
    "sizes": SIZES,
    "function": FUNCTIONS,
    "path": {name: mutation for name, mutation in ANYTHING.items() if name != "long string"},
    "other": ANYTHING,
}
