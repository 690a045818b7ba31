"""Signatures as people write them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal

import numpy as np

from jorth.file_problems.errors import OptionError
from jorth.signature import Signature
from jorth.storage.matrices import entries, stored

OPTION = "--signature"
EXPECTED = "must be p,q (like 12,8), signs (like ++--+), lorentz, lorentz-first, lorentz-last, or a file of +1 and -1"
COUNTS = re.compile(r"(\d+)\s*,\s*(\d+)")
SIGNS = re.compile("[+-]+")
LORENTZ: dict[str, Literal["first", "last"]] = {
    "lorentz": "first",
    "lorentz-first": "first",
    "lorentz-last": "last",
}


def signature_from(text: str, n: int) -> Signature:
    """The signature of n signs that a text stands for.

    "12,8" is twelve times + and then eight times -; "++--+" gives the signs one by one; "lorentz" and "lorentz-first"
    put one - before n - 1 times +, "lorentz-last" puts it after them. Anything else names a file of n numbers +1 and
    -1, in a row or a column.
    """
    signature = _parse(text.strip(), n)
    if signature.n != n:
        raise OptionError(
            OPTION, f"must have {n} signs, one a column of the data, got {text} with {signature.n}"
        )
    return signature


def file_of(text: str) -> Path | None:
    """The file that a text names, or None where it stands for itself."""
    text = text.strip()
    if COUNTS.fullmatch(text) or SIGNS.fullmatch(text) or text in LORENTZ:
        return None
    if not os.path.isfile(text):  # a Path would raise where the text is too long for a name
        raise OptionError(OPTION, f"{EXPECTED}; got {text!r}, and there is no such file")
    return Path(text)


def _parse(text: str, n: int) -> Signature:
    path, counts = file_of(text), COUNTS.fullmatch(text)
    if path is not None:
        return _from_file(path)
    if text in LORENTZ:
        return Signature.lorentz(n, LORENTZ[text])
    if counts is None:
        return Signature.of([1 if sign == "+" else -1 for sign in text])
    p, q = int(counts[1]), int(counts[2])
    if p + q != n:  # before p + q signs are made
        raise OptionError(
            OPTION, f"must have {n} signs, one a column of the data, got {text} with {p + q}"
        )
    return Signature(p, q)


def _from_file(path: Path) -> Signature:
    found = stored(path)
    signs = entries(found)
    if signs.size != max(found.shape, default=0) or signs.dtype.kind not in "fiu":
        raise OptionError(
            OPTION, f"must name a file with one row or column, got {path} of shape {found.shape}"
        )
    try:
        return Signature.of(np.ravel(signs))
    except ValueError as error:
        raise OptionError(OPTION, f"must name a file of +1 and -1, got {path}: {error}") from error
