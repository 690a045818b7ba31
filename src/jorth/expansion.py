"""How large a packed file becomes: looked at before anything of that size is in memory."""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

VARIABLE = "JORTH_MAX_BYTES"
MAX_BYTES = 2**31
"""What a file may expand to where nobody says more."""
BLOCK = 1 << 20
MAT_HEADER = 128
MAT_ORDERS = {b"IM": "<", b"MI": ">"}
"""The last two bytes of the header of a MATLAB 5 file, and the order of its bytes."""
COMPRESSED = 15
"""The kind of an element of a MATLAB 5 file that zlib has packed."""


class TooLarge(ValueError):
    """A file would take more memory than is allowed."""


def most_bytes(asked: int | None = None) -> int:
    """The number asked for, else that of the environment variable JORTH_MAX_BYTES, else `MAX_BYTES`."""
    if asked is not None:
        if type(asked) is not int or asked < 1:
            raise ValueError(f"max_bytes must be a whole number of at least 1, got {asked!r}")
        return asked
    text = os.environ.get(VARIABLE, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"{VARIABLE} must be a whole number of at least 1, got {text!r}")
    return int(text) if text else MAX_BYTES


def check_size(size: int, limit: int) -> None:
    """A `TooLarge` for more bytes than allowed."""
    if size > limit:
        raise TooLarge(
            f"it takes {size} bytes of memory or more, and {limit} are allowed; where it can be trusted, raise "
            f"max_bytes or the environment variable {VARIABLE}"
        )


def check_npy(stream: IO[bytes], stored: int) -> None:
    """An error where the header of an array promises more than the ``stored`` bytes that there are."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)
    if version not in headers:
        raise ValueError(f"an array of numbers must be stored in version 1 or 2, got {version[0]}")
    shape, _, dtype = headers[version](stream)
    promised = math.prod(shape) * dtype.itemsize
    if promised > stored:
        raise ValueError(f"it promises {promised} bytes, shape {shape} of {dtype}, and holds {stored} at most")


def check_npz(stream: IO[bytes], limit: int) -> None:
    """An error where the arrays of an archive take more than allowed, or promise more than is stored of them."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        check_size(sum(member.file_size for member in members), limit)
        for member in members:
            with archive.open(member) as content:  # it gives no more than file_size, whatever is packed
                check_npy(content, member.file_size)


def check_mat(stream: IO[bytes], limit: int) -> None:
    """A `TooLarge` where the packed variables of a MATLAB 5 file take more than allowed; others are not packed."""
    order = MAT_ORDERS.get(stream.read(MAT_HEADER)[-2:])
    total = 0
    while order and len(tag := stream.read(8)) == 8:
        kind, size = (int(number) for number in np.frombuffer(tag, dtype=f"{order}u4"))
        if kind != COMPRESSED:
            stream.seek(size, os.SEEK_CUR)
            continue
        for piece in _unpacked(stream, size):
            total += piece
            check_size(total, limit)


def _unpacked(stream: IO[bytes], size: int) -> Iterator[int]:
    """The lengths of the pieces into which ``size`` bytes of a stream unpack."""
    unpack = zlib.decompressobj()
    while size > 0 and (rest := stream.read(min(size, BLOCK))):
        size -= len(rest)
        while rest:
            yield len(unpack.decompress(rest, BLOCK))
            rest = unpack.unconsumed_tail


def check_stream(stream: IO[bytes], limit: int) -> None:
    """A `TooLarge` where there is more in a stream than allowed."""
    total = 0
    while block := stream.read(BLOCK):
        total += len(block)
        check_size(total, limit)


def check_sparse(matrix: Any, limit: int) -> None:
    """A `TooLarge` where a sparse matrix has more rows and columns than numbers for each are allowed."""
    check_size(8 * sum(matrix.shape), limit)


def dense(matrix: Any, limit: int) -> np.ndarray[Any, Any]:
    """A sparse matrix as an array, if that is not too large."""
    check_size(math.prod(matrix.shape) * matrix.dtype.itemsize, limit)
    array: np.ndarray[Any, Any] = matrix.toarray()
    return array
