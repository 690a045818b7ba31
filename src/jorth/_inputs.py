"""Arrays in, arrays out: what is converted, and checks of arguments with their messages.

NumPy in, NumPy out; torch in, torch out; inside there are only tensors. An error names the
argument, what it got and what is expected: types and shapes, never data. A check takes the value
first and then its name. Functions called ``check_...`` raise an error or return what they were
given; the others convert.
"""

from __future__ import annotations

import difflib
import math
import numbers
import os
import sys
from collections.abc import Callable, Iterable, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from jorth.signature import Signature

FLOATS = (torch.float64, torch.float32)
HALF = (torch.bfloat16, torch.float16)

if TYPE_CHECKING:  # with a default: what is neither an array nor a tensor gives an array
    from typing_extensions import TypeVar as DefaultTypeVar

    ArrayT = DefaultTypeVar("ArrayT", NDArray[np.floating], Tensor, default=NDArray[np.floating])
else:
    ArrayT = TypeVar("ArrayT", NDArray[np.floating], Tensor)
ResultT = TypeVar("ResultT", float, NDArray[Any])


class _Frame(Protocol):
    """A frame or a series of pandas, which is not imported."""

    def to_numpy(self) -> NDArray[Any]: ...


class _Sparse(Protocol):
    """A matrix or an array of scipy.sparse."""

    def toarray(self) -> NDArray[Any]: ...


Convertible: TypeAlias = Sequence[Any] | NDArray[np.integer] | _Frame | _Sparse
"""What is turned into an array; `ArrayT | Convertible` means that a function takes both."""
ArrayLike: TypeAlias = NDArray[Any] | Tensor | Convertible
"""What is accepted wherever an array is taken.

Arrays and tensors of float64 and float32 are used as they are. Half precision becomes float32, all
other real numbers become float64. The answer is a tensor for a tensor, on its device, and a NumPy
array for anything else.
"""


# -- messages


def describe(value: Any) -> str:
    """Return a short value as it is written, of others the type and size, never their entries."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, (type, np.generic)):
        names = {np.ndarray: "array", Tensor: "tensor"}
        kind = next((names[own] for own in names if isinstance(value, own)), type(value).__name__)
        text = f"{getattr(value, 'dtype', '')} {kind}".strip()
        return f"{'an' if text[0] in 'aeio' else 'a'} {text} of shape {tuple(shape)}"
    if isinstance(value, (type(None), type, numbers.Number, np.generic, str, tuple, torch.dtype)):
        text = repr(value)
        if len(text) <= 40:
            return text
    size = f" of length {len(value)}" if isinstance(value, Sized) else ""
    return f"{type(value).__name__}{size}"


class UnknownName(ValueError):
    """A name is not among those of a model."""

    exit_code = 2
    """What the command line ends with."""


def suggestion(name: object, valid: Iterable[str]) -> str:
    """Return the end of a message: the valid name that is nearest to a wrong one, or nothing."""
    text, names = str(name)[:100], [*valid]
    longer = sorted((own for own in names if text and text.lower() in own.lower()), key=len)
    near = longer or difflib.get_close_matches(text, names, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


# -- arrays and tensors


def is_sparse(value: object) -> bool:
    """Return whether the value is a matrix or an array of scipy.sparse."""
    return hasattr(value, "tocsr")


def check_own_floats(value: object, name: str) -> None:
    """Check that a value is used as it is: weights, and what is changed in place."""
    if not isinstance(value, (np.ndarray, Tensor)) or to_floats(value, name) is not value:
        raise TypeError(f"{name} must be float64 or float32, got {describe(value)}")


def to_tensor(value: object, name: str) -> Tensor:
    """Return a float64 or float32 tensor, which shares memory if possible, see `ArrayLike`."""
    found = to_floats(value, name)
    if isinstance(found, Tensor):
        return found
    try:
        return torch.from_numpy(found if found.flags.writeable else found.copy())
    except ValueError:  # torch has no negative strides
        return torch.from_numpy(found.copy())


def to_floats(value: object, name: str) -> NDArray[Any] | Tensor:
    """Return an array or a tensor of float64 or float32, see `ArrayLike`."""
    if isinstance(value, Tensor):
        if value.is_complex() or value.dtype == torch.bool:
            raise TypeError(f"{name} must hold real numbers, got {describe(value)}")
        dense = value if value.layout is torch.strided else value.to_dense()
        if dense.dtype in FLOATS:
            return dense
        return dense.float() if dense.dtype in HALF else dense.double()
    array = to_array(value, name)
    if array.dtype.kind not in "iuf":
        entries = "" if isinstance(value, np.ndarray) else f" with entries of type {array.dtype}"
        raise TypeError(f"{name} must hold real numbers, got {describe(value)}{entries}")
    single = array.dtype in (np.float32, np.float16) and not isinstance(value, Sequence)
    return array.astype(np.float32 if single else np.float64, copy=False)


def to_array(value: Any, name: str) -> NDArray[Any]:
    """Return a NumPy array of any dtype from anything but a tensor."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries, got {describe(value)} with some")
    if is_sparse(value):
        return np.asarray(value.toarray())
    text = isinstance(value, (type, str, bytes, np.generic))
    if text or not (isinstance(value, Sequence) or hasattr(value, "__array__")):
        kinds = "NumPy, torch, nested lists, pandas or scipy.sparse"
        raise TypeError(f"{name} must be an array ({kinds}), got {describe(value)}")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array of one shape, got {describe(value)}") from error


def tensor_after(value: object, name: str, other: Tensor) -> Tensor:
    """Return `to_tensor` of a second argument: what is converted takes the dtype of the first one.

    Lists, frames and sparse matrices go to its device as well; arrays and tensors of floats stay.
    """
    tensor = to_tensor(value, name)
    if isinstance(value, Tensor):
        return tensor if value.dtype in FLOATS else tensor.to(other.dtype)
    own = isinstance(value, np.ndarray) and value.dtype in (np.float64, np.float32)
    return tensor if own else tensor.to(other)


def tensor_alike(value: object, name: str, other: Tensor, other_name: str) -> Tensor:
    """Return `tensor_after`, with the dtype and the device of ``other``."""
    tensor = tensor_after(value, name, other)
    check_alike(tensor, name, other, other_name)
    return tensor


def check_alike(tensor: Tensor, name: str, other: Tensor, other_name: str) -> None:
    """Check that two tensors have the same dtype and device."""
    if tensor.dtype != other.dtype or tensor.device != other.device:
        expected = f"{other_name} ({other.dtype}, {other.device})"
        found = f"({tensor.dtype}, {tensor.device})"
        raise TypeError(f"{name} must have the dtype and device of {expected}, got {found}")


def like_input(result: Tensor, value: ArrayT | Convertible, *others: object) -> ArrayT:
    """Return ``result`` as a tensor if any of the arguments is one, else as a NumPy array."""
    tensors = any(isinstance(given, Tensor) for given in (value, *others))
    found: Any = result if tensors else result.detach().cpu().numpy()
    return found  # type: ignore[no-any-return]


def numbers_like(result: Tensor, *values: Any) -> Any:
    """Return `like_input` for one number per matrix or point; a float for a single NumPy one."""
    found: Any = like_input(result, *values)
    return found if isinstance(found, Tensor) or found.ndim else found.item()


def broadcast(first: Sequence[int], second: Sequence[int]) -> bool:
    """Return whether two shapes broadcast against each other."""
    pairs = zip(reversed(first), reversed(second), strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


# -- matrices


def check_signature(signature: Any, name: str = "signature") -> Signature:
    """Check that an argument is a signature."""
    if not isinstance(signature, Signature):
        how = "write jorth.Signature(p, q), or jorth.Signature.of a list of signs"
        raise TypeError(f"{name} must be a jorth.Signature, got {describe(signature)}; {how}")
    return signature


def square_matrix(value: object, signature: Signature, name: str = "X") -> Tensor:
    """Return a tensor (..., n, n) that fits the signature."""
    matrix = to_tensor(value, name)
    n = check_signature(signature).n
    if matrix.ndim < 2 or matrix.shape[-2:] != (n, n):
        expected = f"shape (..., {n}, {n}) for {signature} (p + q = {n})"
        raise ValueError(f"{name} must have {expected}, got {describe(value)}")
    return matrix


def is_readable(tensor: Tensor) -> bool:
    """Return whether entries can be read: not under torch.compile, torch.export and torch.func.

    Checks of entries are left out there.
    """
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return not (torch.compiler.is_compiling() or wrapped(tensor))


def check_finite(tensor: Tensor, name: str) -> None:
    """Check that a tensor holds neither NaN nor infinity."""
    finite = torch.isfinite(tensor)
    if is_readable(tensor) and not bool(finite.all()):
        found = f"{int((~finite).sum())} NaN or infinite of {tensor.numel()} entries"
        raise ValueError(f"{name} must be finite, got {found}")


def check_overflow(result: Tensor | NDArray[Any], names: str, what: str) -> None:
    """Check that a result of finite arguments is finite."""
    if isinstance(result, Tensor) and not is_readable(result):
        return
    finite = torch.isfinite(result) if isinstance(result, Tensor) else np.isfinite(result)
    if not bool(finite.all()):
        expected = f"of a size at which {what} is finite in {result.dtype}"
        raise ValueError(f"{names} must be {expected}, got overflow")


def finite_result(result: ResultT, names: str) -> ResultT:
    """Return a result of finite arguments, or raise a ValueError if it has overflowed."""
    check_overflow(np.asarray(result), names, "the result")
    return result


def is_symmetric(matrices: Tensor) -> Tensor:
    """Return whether each matrix (..., n, n) is symmetric up to the rounding of its formation."""
    defect = (matrices - matrices.mT).abs().amax(dim=(-2, -1))
    return defect <= 64 * torch.finfo(matrices.dtype).eps * matrices.abs().amax(dim=(-2, -1))


def check_symmetric(matrices: Tensor, name: str) -> None:
    """Check that all matrices (..., n, n) are symmetric up to rounding."""
    if not bool(is_symmetric(matrices).all()):
        defect = (matrices - matrices.mT).abs().max().item()
        raise ValueError(f"{name} must be symmetric, got max |{name} - {name}^T| = {defect:.3g}")


def unit_roundoff(tensor: Tensor) -> float:
    """Return the unit roundoff u of the tensor's dtype: 2^-53 for float64."""
    return torch.finfo(tensor.dtype).eps / 2


def frobenius(tensor: Tensor) -> float:
    """Return ||tensor||_F; where the squares of entries do not fit, they are scaled first."""
    entries = tensor.detach().reshape(-1)
    square, limits = float(entries @ entries), torch.finfo(tensor.dtype)
    if limits.tiny < limits.eps**2 * square < math.inf:  # lost entries do not count
        return math.sqrt(square)
    size = float(entries.abs().max()) if len(entries) else 0.0
    return size * frobenius(entries / size) if 0 < size < math.inf else size


# -- numbers


def is_number(value: object) -> bool:
    """Return whether a value is a real number in the range of a float, NaN or infinity."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, (float, np.integer, np.floating))


def real_number(value: Any, name: str, expected: str, allowed: Callable[[float], bool]) -> float:
    """Return a float that is ``allowed``; an error says what was ``expected``."""
    if not is_number(value) or not allowed(float(value)):
        raise ValueError(f"{name} must be {expected}, got {describe(value)}")
    return float(value)


def check_number(value: Any, name: str, least: float) -> None:
    """Check that an option is a number of at least ``least``, or infinity."""
    if not is_number(value) or not value >= least:
        expected = "a number" if least == -math.inf else f"a number of at least {least:g}"
        raise ValueError(f"{name} must be {expected}, got {describe(value)}")


def nonnegative_number(value: Any, name: str, *, instead: str = "") -> float:
    """Return a finite float of at least 0."""
    return real_number(value, name, f"{instead}a number of at least 0", lambda x: 0 <= x < math.inf)


def finite_number(value: Any, name: str) -> float:
    """Return a finite float."""
    return real_number(value, name, "a finite number", math.isfinite)


def positive_number(value: Any, name: str, *, instead: str = "") -> float:
    """Return a finite float above 0."""
    return real_number(value, name, f"{instead}a positive number", lambda x: 0 < x < math.inf)


def check_auto(value: object, name: str) -> None:
    """Check that an option is "auto" or a positive number."""
    if not (isinstance(value, str) and value == "auto"):
        positive_number(value, name, instead='"auto" or ')


def check_theta(theta: float | None) -> None:
    """Check that theta is None, for a relative one, or at least zero."""
    if theta is not None:
        nonnegative_number(theta, "theta", instead="None (relative) or ")


def whole_number(value: Any, name: str, least: int, *, instead: str = "") -> int:
    """Return an integer from ``least`` to 2^31 - 1; ``instead`` is accepted elsewhere."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be {instead}an integer, got {describe(value)}")
    if not least <= value < 2**31:  # more would fill any memory, or run for years
        bound = f"at least {least}" if value < least else "at most 2^31 - 1"
        raise ValueError(f"{name} must be {instead}{bound}, got {describe(int(value))}")
    return int(value)


def check_count(value: Any, name: str) -> None:
    """Check that an option is None or a whole number of at least 1."""
    if value is not None:
        whole_number(value, name, 1, instead="None or ")


def batch_sizes(batch: Any, name: str = "batch") -> tuple[int, ...]:
    """Return the sizes of a batch of matrices."""
    if not isinstance(batch, (tuple, list)):
        raise TypeError(f"{name} must be a tuple of sizes, got {describe(batch)}")
    return tuple(whole_number(size, f"{name}[{place}]", 0) for place, size in enumerate(batch))


def generator(seed: Any) -> np.random.Generator:
    """Return the generator for a seed."""
    check_seed(seed)
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(int(seed))


def check_seed(seed: Any) -> None:
    """Check that a seed is explicit: a whole number or a generator, and not None."""
    if isinstance(seed, np.random.Generator):
        return
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        expected = "an integer of at least 0 or a NumPy generator"
        raise TypeError(f"seed must be {expected}, got {describe(seed)}")


# -- other options


def check_choice(value: object, name: str, choices: Sequence[str]) -> None:
    """Check that an option is one of its choices."""
    if not (isinstance(value, str) and value in choices):
        expected = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{name} must be one of {expected}, got {describe(value)}")


def check_flag(value: object, name: str) -> None:
    """Check that an option is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")


def check_dtype(dtype: Any, name: str = "dtype", *, optional: bool = False) -> None:
    """Check that a dtype is float64 or float32 of torch, or None if it is optional."""
    if not (dtype in FLOATS if isinstance(dtype, torch.dtype) else optional and dtype is None):
        raise TypeError(f"{name} must be torch.float64 or torch.float32, got {describe(dtype)}")


def check_device(device: Any, name: str = "device") -> None:
    """Check that torch accepts a device; None is its default."""
    try:
        torch.empty(0, device=device)
    except Exception as error:  # RuntimeError, AssertionError, TypeError and others, by torch
        expected = "a device that torch has here"
        raise ValueError(f"{name} must be {expected}, got {describe(device)}") from error


def file_path(value: Any, name: str) -> Path:
    """Return the path of a file or folder."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise TypeError(f"{name} must be a path, got {describe(value)}")
    return Path(value)
