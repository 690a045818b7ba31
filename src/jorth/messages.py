"""What error messages say about a value: its type and size, never the data in it."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

LONGEST_SHOWN = 40
"""How many characters of a value an error message repeats at most."""
MOST_NAMED = 3
"""How many names an error message lists at most."""


def describe(value: object) -> str:
    """The type and size of an argument for an error message, never the entries of an array."""
    if isinstance(value, np.ndarray) or _is_tensor(value):
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


def _is_tensor(value: object) -> bool:
    """Whether a value is a tensor: there is none where torch was never imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


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
