"""Checks of arguments. NumPy in, NumPy out; torch in, torch out. Inside there are only tensors.

Every public function checks its arguments here, so that an error names the argument, what it got
and what it expects. A check takes the value first and then its name. Functions called ``check_...``
return nothing or what they were given; the others convert.
"""

from __future__ import annotations

import math
import numbers
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.inputs import FLOATS as FLOATS
from jorth.inputs import NATIVE, carries_floats, to_array, to_floats
from jorth.inputs import ArrayLike as ArrayLike
from jorth.inputs import Convertible as Convertible
from jorth.inputs import is_plain as is_plain
from jorth.inputs import is_sparse as is_sparse
from jorth.messages import describe as describe
from jorth.messages import shown as shown
from jorth.signature import Signature, as_signature
from jorth.suggestions import suggestion

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
    `jorth.inputs`. A tensor on the device "meta" has no data; it is accepted where nothing is read.
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
