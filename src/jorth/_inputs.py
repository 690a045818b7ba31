"""Arrays in, arrays out: checks of arguments, what is converted, and what messages say of it.

Every public function checks its arguments here, so that an error names the argument, what it got
and what it expects. A check takes the value first and then its name. Functions called ``check_...``
return nothing or what they were given; the others convert. NumPy in, NumPy out; torch in, torch
out. Inside there are only tensors. pandas is not imported: a frame is what has columns and turns
into a NumPy array.
"""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.signature import Signature, as_signature

# -- what messages say of a value: its type and size, never the data in it

LONGEST_SHOWN = 40
"""How many characters of a value an error message repeats at most."""
MOST_NAMED = 3
"""How many names an error message lists at most."""


def describe(value: object) -> str:
    """The type and size of an argument for an error message, never the entries of an array."""
    if isinstance(value, (np.ndarray, Tensor)):
        return _array(value)
    if hasattr(value, "tocsr") and hasattr(value, "dtype"):
        return f"{_with_article(value.dtype)} sparse matrix of shape {_shape(value)}"
    kind = cut(type(value).__name__)
    if hasattr(value, "to_numpy") and not isinstance(value, type):  # a frame or a series
        dtype = "" if hasattr(value, "columns") else f"{cut(getattr(value, 'dtype', ''))} "
        return f"{_with_article(dtype + kind)} of shape {_shape(value)}"
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {cut(value.__name__)}"
    short = _short(value)
    if short is not None:
        return f"{kind} {short}"
    if isinstance(value, (str, bytes, list, tuple, dict, set)):
        return f"{kind} of length {len(value)}{_inner(value)}"
    return kind


def shown(value: object) -> str:
    """A number, a string or a small tuple as it is written; anything else is described."""
    return _short(value) or describe(value)


def listed(names: Sequence[object]) -> str:
    """The first names of a list, and how many more there are."""
    some = ", ".join(shown(name) for name in names[:MOST_NAMED])
    return some if len(names) <= MOST_NAMED else f"{some} and {len(names) - MOST_NAMED} more"


def cut(text: object, most: int = LONGEST_SHOWN) -> str:
    """A text that is short enough for a message."""
    written = str(text)
    return written if len(written) <= most else f"{written[: most - 3]}..."


def _inner(value: object) -> str:
    """The lengths of the lists in a list, by the first of them."""
    found = ""
    while isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = value[0]
        found += f" of {cut(type(value).__name__)}s of length {len(value)}"
        if len(found) > 2 * LONGEST_SHOWN:  # or for ever, if a list holds itself
            break
    return found


def _array(value: Any) -> str:
    masked = "masked " if isinstance(value, np.ma.MaskedArray) else ""
    kind = "array" if isinstance(value, np.ndarray) else "tensor"
    sparse = "sparse " if "sparse" in str(getattr(value, "layout", "")) else ""
    nested = "nested " if getattr(value, "is_nested", False) else ""
    place = " on meta" if getattr(value, "is_meta", False) else ""
    kind = f"{masked}{sparse}{nested}{kind}"
    return f"{_with_article(value.dtype)} {kind} of shape {_shape(value)}{place}"


def _with_article(noun: object) -> str:
    text = cut(noun)
    return f"{'an' if text[:1] in 'aeio' else 'a'} {text}"


def _shape(value: Any) -> str:
    if getattr(value, "is_nested", False):  # asked for its shape, torch raises an internal error
        return f"({value.size(0)}, various)"
    return str(tuple(getattr(value, "shape", ())))


def _short(value: object) -> str | None:
    """The value as it is written, or None if that is long."""
    if isinstance(value, int) and abs(value) > 10**LONGEST_SHOWN:
        return f"{'-' if value < 0 else ''}2^{value.bit_length() - 1} or more"
    small = isinstance(value, tuple) and len(value) <= 4 and all(_short(entry) for entry in value)
    if small or value is None or isinstance(value, (numbers.Number, np.generic, str, bytes)):
        written = repr(value)
        return written if len(written) <= LONGEST_SHOWN else None
    return None


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn on behalf of the caller of jorth, however deep inside this is called."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("jorth."):
        frame = frame.f_back
        level += 1
    warnings.warn(text, category, stacklevel=level)


# -- misspelt names

P = ParamSpec("P")
R = TypeVar("R")
Made = TypeVar("Made", bound="Explained")
LONGEST_LIST = 240
"""How many characters a message spends on the names that there are."""


def meant(name: object, valid: Iterable[str]) -> str | None:
    """Return the valid name that is nearest to ``name``, or None if none is near."""
    if not isinstance(name, str) or len(name) > 200:
        return None
    forms = {_plain(candidate): candidate for candidate in valid}
    wanted = _plain(name)
    longer = [form for form in forms if len(wanted) > 2 and form.startswith(wanted)]
    near = longer or difflib.get_close_matches(wanted, forms, n=1, cutoff=0.7)
    return forms[near[0]] if near else None


def _plain(name: str) -> str:
    """Return a name without case and separators."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a message: which name was meant, or nothing."""
    found = meant(name, valid)
    return "" if found is None else f"; did you mean {found!r}?"


def _all_of(names: Iterable[str]) -> str:
    """Return the names, separated by commas, as far as a message has room for them."""
    text = ", ".join(names)
    return text if len(text) <= LONGEST_LIST else text[:LONGEST_LIST].rpartition(",")[0] + ", ..."


def check_keywords(owner: str, given: Iterable[str], valid: Collection[str]) -> None:
    """Check that all names are valid; a TypeError has the one that was meant, or all."""
    for name in given:
        if name not in valid:
            hint = suggestion(name, valid) or f"; it has {_all_of(valid)}"
            raise TypeError(f"{owner} has no argument {name[:LONGEST_SHOWN]!r}{hint}")


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function so that a wrong keyword gives the error of `check_keywords`.

    Signs that stand for a signature become one.
    """
    names, open_ended = _names(function)
    position = names.index("signature") if "signature" in names else None

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        if named and not open_ended:
            check_keywords(function.__name__, named, names)
        if "signature" in named:
            named["signature"] = as_signature(named["signature"])
        elif position is not None and position < len(arguments):
            given = arguments[position]
            if not isinstance(given, Signature):
                before, after = arguments[:position], arguments[position + 1 :]
                return function(*before, as_signature(given), *after, **named)  # type: ignore
        return function(*arguments, **named)

    return call


class Explained:
    """A class whose constructor does the same, also for what it passes on to the next class."""

    def __new__(cls: type[Made], *arguments: Any, **named: Any) -> Made:
        names, open_ended = _constructor(cls)  # type: ignore[arg-type]
        if not open_ended:
            check_keywords(cls.__name__, named, names)
        return super().__new__(cls)


def _names(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names of the arguments, and whether there may be others."""
    kinds = {name: one.kind for name, one in inspect.signature(function).parameters.items()}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name in kinds if kinds[name] not in several], several[1] in kinds.values()


@cache
def _constructor(cls: type) -> tuple[tuple[str, ...], bool]:
    names: list[str] = []
    for owner in cls.__mro__:
        if "__init__" in vars(owner):
            found, open_ended = _names(vars(owner)["__init__"])
            names += [name for name in found[1:] if name not in names]
            if not open_ended:
                return tuple(names), False
    return tuple(names), True


# -- what is converted

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


Array: TypeAlias = NDArray[np.floating] | Tensor
if TYPE_CHECKING:  # with a default: what is neither an array nor a tensor gives an array
    from typing_extensions import TypeVar as DefaultTypeVar

    ArrayT = DefaultTypeVar("ArrayT", NDArray[np.floating], Tensor, default=NDArray[np.floating])
else:
    ArrayT = TypeVar("ArrayT", NDArray[np.floating], Tensor)
ResultT = TypeVar("ResultT", float, NDArray[Any])

FEW_ENTRIES = 64 * 64
"""The most entries of a matrix on the CPU whose products NumPy starts faster than torch."""
LARGEST_COUNT = 2**31 - 1
"""A larger count would fill any memory, or run for years."""
MOST_BATCH_DIMENSIONS = 60
"""torch allows 64 dimensions in all."""
LONGEST_FILE_NAME = 255
"""How many characters file systems allow in the name of a file."""


# -- arrays and tensors


def to_tensor(value: object, name: str, *, meta: bool = False) -> Tensor:
    """A float64 or float32 tensor of the numbers in ``value``, or an error.

    It shares memory with arrays and tensors of these dtypes; all else is converted, see
    `to_floats`. A tensor on the device "meta" has no data; it is accepted where nothing is read.
    """
    if isinstance(value, np.ndarray):
        if value.dtype in NATIVE and not isinstance(value, np.ma.MaskedArray):
            return _shared(value)
    elif isinstance(value, Tensor):
        plain = value.dtype in FLOATS and is_plain(value)
        if plain and (meta or not value.is_meta):
            return value
    found = to_floats(value, name)
    return found if isinstance(found, Tensor) else _shared(found)


def _shared(array: NDArray[Any]) -> Tensor:
    """A tensor in the memory of an array, or of a copy: torch wants it writable, not backwards."""
    if array.flags.writeable:
        try:
            return torch.from_numpy(array)
        except ValueError:
            pass
    return torch.from_numpy(array.copy())


def tensor_after(value: object, name: str, other: Tensor, *, meta: bool = False) -> Tensor:
    """`to_tensor` for a second argument: what is converted takes the dtype of the first one.

    Lists, frames and sparse matrices go to its device as well. Arrays and tensors of floats stay
    as they are, so that nothing is rounded or moved that has a dtype and a device of its own.
    """
    tensor = to_tensor(value, name, meta=meta)
    if carries_floats(value):
        return tensor
    return tensor.to(other.dtype) if isinstance(value, Tensor) else tensor.to(other)


def tensor_alike(
    value: object, name: str, other: Tensor, other_name: str, *, meta: bool = False
) -> Tensor:
    """`tensor_after`, and a TypeError unless the dtype and the device are those of ``other``."""
    tensor = tensor_after(value, name, other, meta=meta)
    check_alike(tensor, name, other, other_name)
    return tensor


def check_own_floats(value: object, name: str) -> None:
    """Raise a TypeError unless a value is used as it is: weights, and what is changed in place."""
    if not carries_floats(value):
        raise TypeError(f"{name} must be float64 or float32, got {describe(value)}")


def real_numbers(value: Any, name: str, expected: str, device: torch.device) -> Tensor:
    """A tensor of real numbers of any dtype, whole or not, or a TypeError."""
    numeric = not isinstance(value, Tensor) or is_plain(value)
    try:
        entries = value if isinstance(value, (Tensor, int, float)) else to_array(value, name)
        if isinstance(entries, np.ndarray):
            numeric = entries.dtype.kind in "iuf"
            entries = entries.astype(entries.dtype.newbyteorder("="), copy=True)
        tensor = torch.as_tensor(entries, device=device)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        numeric = False
    if not numeric or tensor.dtype == torch.bool or tensor.is_complex():
        raise TypeError(f"{name} must be {expected}, got {describe(value)}")
    return tensor.detach()


def like_input(result: Tensor, value: ArrayT | Convertible, *others: object) -> ArrayT:
    """``result`` as a tensor if any of the arguments is one, else as a NumPy array."""
    tensors = any(isinstance(given, Tensor) for given in (value, *others))
    found: Any = result if tensors else result.detach().cpu().numpy()
    return found  # type: ignore[no-any-return]


def numbers_like(result: Tensor, *values: Any) -> Any:
    """`like_input` for one number per matrix or point; a float for a single NumPy one."""
    found: Any = like_input(result, *values)
    return found if isinstance(found, Tensor) or found.ndim else found.item()


def small_as_numpy(X: Tensor, *matrices: Tensor | None) -> tuple[Any, ...]:
    """X and the matrices, as NumPy's views of them if X is small and on the CPU."""
    alike = all(M is None or (M.dtype == X.dtype and M.device == X.device) for M in matrices)
    if X.device.type != "cpu" or X.numel() > FEW_ENTRIES or X.requires_grad or not alike:
        return X, *matrices
    return X.numpy(), *(None if M is None else M.numpy() for M in matrices)


def as_tensors(value: Any, gradient: Any) -> tuple[Tensor, Tensor]:
    """A value and a gradient that were computed from tensors or from NumPy's views."""
    if isinstance(gradient, Tensor):
        return value, gradient
    return torch.from_numpy(np.array(value, dtype=gradient.dtype)), torch.from_numpy(gradient)


def check_signature(signature: object, name: str = "signature") -> Signature:
    """Return the signature that the argument is or stands for, see `as_signature`."""
    found = as_signature(signature)
    if not isinstance(found, Signature):
        given = f"{describe(signature)}{_how_to_write(signature)}"
        raise TypeError(f"{name} must be a jorth.Signature, got {given}")
    return found


def _how_to_write(value: object) -> str:
    """How to write the signature that ``value`` seems to stand for."""
    if isinstance(value, (np.ndarray, Tensor)) and value.ndim != 1:
        return ""
    if isinstance(value, (list, tuple, np.ndarray, Tensor)) and not _is_counts(value):
        return "; jorth.Signature.of takes a list of signs"
    if isinstance(value, str) and value.lower() == "lorentz":
        return "; write jorth.Signature.lorentz(n)"
    counts: Any = value if _is_counts(value) else ("p", "q")
    return f"; write jorth.Signature({counts[0]}, {counts[1]})"


def _is_counts(value: Any) -> bool:
    """Whether a value is a pair of numbers that are not signs."""
    pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_is_integer, value))
    return pair and min(value) >= 0


def square_matrix(value: object, signature: Signature, name: str = "X") -> Tensor:
    """A tensor (..., n, n) that fits the signature."""
    matrix = to_tensor(value, name)
    n = check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
        expected = f"shape (..., {n}, {n}) for {signature} (p + q = {n})"
        raise ValueError(f"{name} must have {expected}, got {describe(value)}")
    return matrix


def check_finite(tensor: Tensor, name: str) -> None:
    """Raise a ValueError if the tensor holds NaN or infinity."""
    few = tensor.device.type == "cpu" and tensor.numel() <= FEW_ENTRIES
    if few and np.isfinite(tensor.detach().numpy()).all():
        return
    if tensor.is_meta:
        raise TypeError(f"{name} must have data, got {describe(tensor)}")
    bad = int((~torch.isfinite(tensor)).sum())
    if bad:
        found = f"{bad} NaN or infinite of {tensor.numel()} entries"
        raise ValueError(f"{name} must be finite, got {found}")


def check_overflow(result: Tensor | NDArray[Any], names: str, what: str) -> None:
    """Raise a ValueError if a result of finite arguments is not finite."""
    finite = torch.isfinite(result) if isinstance(result, Tensor) else np.isfinite(result)
    if not bool(finite.all()):
        expected = f"of a size at which {what} is finite in {result.dtype}"
        raise ValueError(f"{names} must be {expected}, got overflow")


def finite_result(result: ResultT, names: str) -> ResultT:
    """A result of finite arguments, or a ValueError if it has overflowed."""
    check_overflow(np.asarray(result), names, "the result")
    return result


def is_symmetric(matrices: Tensor) -> Tensor:
    """Whether each matrix (..., n, n) is symmetric up to the rounding of its own formation."""
    defect = (matrices - matrices.mT).abs().amax(dim=(-2, -1))
    return defect <= 64 * torch.finfo(matrices.dtype).eps * matrices.abs().amax(dim=(-2, -1))


def check_symmetric(matrices: Tensor, name: str) -> None:
    """Raise a ValueError unless all matrices (..., n, n) are symmetric up to rounding."""
    bad = ~is_symmetric(matrices)
    if bool(bad.any()):
        defect = (matrices - matrices.mT).abs().amax().item()
        count = f" in {int(bad.sum())} of {bad.numel()} matrices" if bad.ndim else ""
        found = f"max |{name} - {name}^T| = {defect:.3g}{count}"
        raise ValueError(f"{name} must be symmetric, got {found}")


def check_alike(tensor: Tensor, name: str, other: Tensor, other_name: str) -> None:
    """Raise a TypeError unless two tensors have the same dtype and device."""
    if tensor.dtype != other.dtype or tensor.device != other.device:
        expected = f"{other_name} ({other.dtype}, {other.device})"
        found = f"({tensor.dtype}, {tensor.device})"
        raise TypeError(f"{name} must have the dtype and device of {expected}, got {found}")


def index_tensor(value: object, name: str, device: torch.device | None = None) -> Tensor:
    """A tensor as it is; whole numbers in lists, arrays and frames as an int64 one on a device."""
    if isinstance(value, Tensor):
        if not is_plain(value):
            raise TypeError(f"{name} must be a dense tensor, got {describe(value)}")
        return value
    array = to_array(value, name)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must hold whole numbers, got {describe(value)}")
    return torch.from_numpy(array.astype(np.int64)).to(device or "cpu")


def check_indices(value: Any, name: str, below: int, device: torch.device) -> Tensor:
    """A tensor of whole numbers from 0 to ``below`` - 1 on a device, or an error."""
    integers = isinstance(value, Tensor) and value.dtype in (torch.int64, torch.int32)
    if not integers or not is_plain(value) or value.device != device:
        raise TypeError(f"{name} must be an int64 tensor on {device}, got {describe(value)}")
    least, largest = (int(value.min()), int(value.max())) if value.numel() else (0, 0)
    if least < 0 or largest >= below:
        raise ValueError(f"{name} must be from 0 to {below - 1}, got {least} to {largest}")
    found: Tensor = value
    return found


def unit_roundoff(tensor: Tensor) -> float:
    """The unit roundoff u of the tensor's dtype: 2^-53 for float64."""
    return torch.finfo(tensor.dtype).eps / 2


def frobenius(tensor: Tensor) -> float:
    """||tensor||_F without overflow or underflow: the entries are divided by the largest one."""
    (entries,) = small_as_numpy(tensor.detach())
    size = float(abs(entries).max()) if tensor.numel() else 0.0
    if not 0 < size < np.inf:
        return size
    scaled = (entries / size).reshape(-1)
    return size * math.sqrt(float(scaled @ scaled))


# -- numbers


def is_number(value: object) -> bool:
    """Whether a value is a real number in the range of a float, NaN or infinity."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


def real_number(value: Any, name: str, expected: str, allowed: Callable[[float], bool]) -> float:
    """A float that is ``allowed``, or an error that says what was ``expected``."""
    if not is_number(value) or not allowed(float(value)):
        raise ValueError(f"{name} must be {expected}, got {shown(value)}")
    return float(value)


def check_number(value: Any, name: str, least: float) -> None:
    """Raise a ValueError unless an option is a number of at least ``least``."""
    expected = "a number" if least == -math.inf else f"a number of at least {least:g}"
    real_number(value, name, expected, lambda number: number >= least)


def nonnegative_number(value: Any, name: str) -> float:
    """A finite float of at least 0."""
    return real_number(value, name, "a number of at least 0", lambda x: 0 <= x < math.inf)


def finite_number(value: Any, name: str, dtype: torch.dtype = torch.float64) -> float:
    """A float that is finite in a dtype."""
    return real_number(value, name, "a number", lambda x: math.isfinite(rounded_to(dtype, x)))


def positive_number(value: Any, name: str, dtype: torch.dtype = torch.float64) -> float:
    """A finite float above 0 in the range of a dtype."""
    in_range = "" if dtype == torch.float64 else f" in the range of {dtype}"
    expected = f"a positive number{in_range}"
    return real_number(value, name, expected, lambda x: 0 < rounded_to(dtype, x) < math.inf)


def squarable_number(value: Any, name: str, dtype: torch.dtype = torch.float64) -> float:
    """A positive number whose square and inverse square a dtype can hold."""
    positive_number(value, name)
    largest = torch.finfo(dtype).max / 16
    expected = f"a number whose square and its inverse are in the range of {dtype}"
    return real_number(value, name, expected, lambda x: 1 / largest < x * x < largest)


def rounded_to(dtype: torch.dtype, number: float) -> float:
    """A float rounded to a dtype; infinity beyond its range."""
    return torch.tensor(number, dtype=torch.float64, device="cpu").to(dtype).item()


def check_auto(value: object, name: str) -> None:
    """Raise a ValueError unless an option is "auto" or a positive number."""
    if not (isinstance(value, str) and value == "auto"):
        real_number(value, name, '"auto" or a positive number', lambda x: 0 < x < math.inf)


def check_theta(theta: float | None) -> None:
    """Raise a ValueError unless theta is None or at least zero."""
    if theta is not None:
        expected = "None (relative) or a number of at least 0"
        real_number(theta, "theta", expected, lambda x: 0 <= x < math.inf)


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def whole_number(value: Any, name: str, least: int, *, instead: str = "") -> int:
    """An integer from ``least`` to `LARGEST_COUNT`, or an error.

    ``instead`` says in the message what else is accepted, such as "None or ".
    """
    if not _is_integer(value):
        raise TypeError(f"{name} must be {instead}an integer, got {describe(value)}")
    count = int(value)
    if count < least:
        raise ValueError(f"{name} must be {instead}at least {least}, got {shown(count)}")
    if count > LARGEST_COUNT:
        raise ValueError(f"{name} must be {instead}at most 2^31 - 1, got {shown(count)}")
    return count


def check_count(value: Any, name: str) -> None:
    """Raise an error unless an option is None or a whole number of at least 1."""
    if value is not None:
        whole_number(value, name, 1, instead="None or ")


def batch_sizes(batch: Any, name: str = "batch") -> tuple[int, ...]:
    """The sizes of a batch of matrices, or an error."""
    if not isinstance(batch, (tuple, list)):
        raise TypeError(f"{name} must be a tuple of sizes, got {describe(batch)}")
    if len(batch) > MOST_BATCH_DIMENSIONS:
        most = MOST_BATCH_DIMENSIONS
        raise ValueError(f"{name} must have at most {most} sizes, got {describe(batch)}")
    return tuple(whole_number(size, f"{name}[{place}]", 0) for place, size in enumerate(batch))


def seed_number(value: Any, name: str = "seed") -> int:
    """An integer of at least 0, however large, or an error."""
    if not _is_integer(value):
        raise TypeError(f"{name} must be an integer, got {describe(value)}")
    if value < 0:
        raise ValueError(f"{name} must be at least 0, got {shown(int(value))}")
    return int(value)


def generator(seed: Any) -> np.random.Generator:
    """The generator for a seed. None is refused: randomness comes from explicit seeds only."""
    if isinstance(seed, np.random.Generator):
        return seed
    if not _is_integer(seed) or seed < 0:
        expected = "an integer of at least 0 or a NumPy generator"
        raise TypeError(f"seed must be {expected}, got {describe(seed)}")
    return np.random.default_rng(int(seed))


# -- other options


def check_choice(value: object, name: str, choices: Sequence[str]) -> None:
    """Raise a ValueError unless an option is one of its choices."""
    if not (isinstance(value, str) and value in choices):
        listed = ", ".join(f'"{choice}"' for choice in choices)
        dtype = isinstance(value, torch.dtype)
        found = f"{value if dtype else shown(value)}{suggestion(str(value), choices)}"
        raise ValueError(f"{name} must be one of {listed}, got {found}")


def check_flag(value: object, name: str) -> None:
    """Raise a TypeError unless an option is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")


def check_dtype(dtype: Any, name: str = "dtype", *, optional: bool = False) -> None:
    """Raise a TypeError unless a dtype is float64 or float32, or None if it is optional."""
    if optional and dtype is None:
        return
    if not isinstance(dtype, torch.dtype) or dtype not in FLOATS:
        listed = " or ".join(map(str, FLOATS))
        found = str(dtype) if isinstance(dtype, torch.dtype) else shown(dtype)
        name_of = {str(one).removeprefix("torch."): str(one) for one in FLOATS}
        wanted = next((name_of[form] for form in _dtype_forms(dtype) if form in name_of), None)
        hint = "" if wanted is None else f"; write {wanted}"
        raise TypeError(f"{name} must be {listed}, got {found}{hint}")


def _dtype_forms(dtype: Any) -> Iterator[str]:
    """The names that a dtype of NumPy, or a text, may have in torch."""
    if isinstance(dtype, str):
        yield dtype.removeprefix("torch.")
    elif isinstance(dtype, (type, np.dtype)) and not isinstance(dtype, torch.dtype):
        with suppress(TypeError):
            yield np.dtype(dtype).name


def check_device(device: Any, name: str = "device") -> None:
    """Raise a ValueError for what torch does not accept as a device; None is its default."""
    try:
        if device is not None:
            torch.empty(0, device=device)
    except Exception as error:  # RuntimeError, AssertionError, TypeError and others, by torch
        expected = "a device that torch has here"
        hint = suggestion(device, ("cpu", "cuda"))
        if str(device).startswith("cuda"):
            hint = f" ({torch.cuda.device_count()} CUDA devices were found)"
        raise ValueError(f"{name} must be {expected}, got {shown(device)}{hint}") from error


def file_path(value: Any, name: str) -> Path:
    """A path that a file can have, or an error."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        raise TypeError(f"{name} must be a path, got {describe(value)}")
    path = Path(value)
    too_long = any(len(part) > LONGEST_FILE_NAME for part in path.parts)
    if too_long or not os.fspath(value) or "\0" in str(path):
        raise ValueError(f"{name} must be a path that a file can have, got {describe(value)}")
    return path
