"""Checks of matrix files before they are trusted: size in memory, and sparse indices."""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from jorth.messages import shown

VARIABLE = "JORTH_MAX_BYTES"
MAX_BYTES = 2**31  # the default for the number of bytes that a file may expand to
BLOCK = 1 << 20
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The methods that NumPy uses. zipfile unpacks these in pieces, but all others at once."""

# MATLAB 5 files: bytes of the header, of the tag of an element, and of a variable's flags with tag
MAT_HEADER = 128
TAG = 8
FLAGS = 16
LITTLE_ENDIAN = b"IM"  # the last two bytes of the header; SciPy takes all others as big-endian
COMPRESSED = 15  # the kind of an element that is packed by zlib
SPARSE = 5  # the class of a sparse variable
ENTRY_BYTES = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}
"""The bytes of an entry of each dense class: double, single, int8, uint8 to uint64."""
MAT_4_CLASSES = {"double": 6, "sparse": SPARSE}
"""The classes of version 4 by their names in scipy.io.whosmat."""


class TooLarge(ValueError):
    """A file would take more memory than is allowed."""


def most_bytes(asked: int | None = None) -> int:
    """The argument, else the environment variable JORTH_MAX_BYTES, else `MAX_BYTES`."""
    if asked is not None:
        if type(asked) is not int or asked < 1:
            raise ValueError(f"max_bytes must be a whole number of at least 1, got {shown(asked)}")
        return asked
    text = os.environ.get(VARIABLE, "")
    if text and not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"{VARIABLE} must be a whole number of at least 1, got {shown(text)}")
    return int(text) if text else MAX_BYTES


def check_size(size: int, limit: int) -> None:
    """Raise `TooLarge` if ``size`` is above the limit."""
    if size > limit:
        raise TooLarge(
            f"it takes {size} bytes of memory or more, and {limit} are allowed; if you trust it, "
            f"raise max_bytes or the environment variable {VARIABLE}"
        )


def check_stream(stream: IO[bytes], limit: int) -> None:
    """Raise `TooLarge` if a stream holds more than the limit."""
    total = 0
    while block := stream.read(BLOCK):
        total += len(block)
        check_size(total, limit)


def check_npy(stream: IO[bytes], stored: int) -> None:
    """Raise a ValueError if the header of an array promises more than ``stored`` bytes."""
    headers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    if version not in headers:
        raise ValueError(f"an array of numbers must be stored in version 1 or 2, got {version[0]}")
    shape, _, dtype = headers[version](stream)
    promised = math.prod(shape) * dtype.itemsize
    if promised > stored:
        raise ValueError(
            f"it promises {promised} bytes, shape {shape} of {dtype}, and holds {stored} at most"
        )


def check_npz(stream: IO[bytes], limit: int) -> None:
    """Raise an error if the arrays of an archive are too large, or promise more than is stored."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        check_size(sum(member.file_size for member in members), limit)
        for member in members:
            if member.compress_type not in PACKINGS:
                raise ValueError(
                    f"{member.filename} must be stored (0) or packed by deflate (8), "
                    f"got method {member.compress_type}"
                )
            with archive.open(member) as content:  # yields at most file_size bytes
                check_npy(content, member.file_size)


def numbers_in_mat(stream: IO[bytes], limit: int) -> list[str]:
    """The names of the numeric variables of a .mat file, unless it is too large.

    SciPy makes cells and structures as large as their headers say, whatever is stored, so they must
    not be loaded. The size of numeric variables is taken from the header, too.
    """
    from scipy.io import whosmat
    from scipy.io.matlab import matfile_version

    version, _ = matfile_version(stream)
    packed = check_mat(stream, limit) if version == 1 else None
    found = whosmat(stream)
    # in version 5 the names of whosmat are ambiguous: "logical" may be dense, sparse or a cell
    classes = [MAT_4_CLASSES.get(word, 0) for _, _, word in found] if packed is None else packed
    numbers: set[str] = set()
    others: set[str] = set()
    total = 0
    for (name, shape, _), kind in zip(found, classes, strict=True):
        total += math.prod(map(abs, shape)) * ENTRY_BYTES.get(kind, 0)
        (numbers if kind == SPARSE or kind in ENTRY_BYTES else others).add(name)
    check_size(total, limit)
    return sorted(numbers - others)


def check_mat(stream: IO[bytes], limit: int) -> list[int]:
    """The classes of the variables of a MATLAB 5 file, unless the packed ones are too large."""
    stream.seek(0)
    order = "<" if stream.read(MAT_HEADER)[-2:] == LITTLE_ENDIAN else ">"
    classes = []
    total = 0
    while len(tag := stream.read(TAG)) == TAG:
        kind, size = struct.unpack(f"{order}II", tag)
        after = stream.tell() + size
        if kind != COMPRESSED:
            classes.append(_class_of(stream.read(min(size, FLAGS)), order))
        else:
            start = b""
            for piece in _unpacked(stream, size):
                total += len(piece)
                check_size(total, limit)
                start += piece[: TAG + FLAGS - len(start)]
            classes.append(_class_of(start[TAG:], order))
        stream.seek(after)
    return classes


def _class_of(start: bytes, order: str) -> int:
    """The class in the flags at the start of a variable; 0 if they are incomplete."""
    flags = start[TAG:FLAGS]
    return int(struct.unpack(f"{order}II", flags)[0]) & 0xFF if len(flags) == FLAGS - TAG else 0


def _unpacked(stream: IO[bytes], size: int) -> Iterator[bytes]:
    """The pieces into which ``size`` bytes of a stream unpack."""
    unpack = zlib.decompressobj()
    while size > 0 and (rest := stream.read(min(size, BLOCK))):
        size -= len(rest)
        while rest:
            yield unpack.decompress(rest, BLOCK)
            rest = unpack.unconsumed_tail


def check_sparse(matrix: Any, limit: int) -> None:
    """Raise an error if a sparse matrix is too large, or if an index is out of range.

    SciPy checks the indices of the COO format, but not those of the others, where its conversions
    and products then read and write wherever the indices point.
    """
    rows, columns = matrix.shape
    check_size(8 * (rows + columns), limit)
    if matrix.format in ("csr", "csc", "bsr"):
        matrix.check_format(full_check=True)
        # check_format misses this if there are no entries or the differences overflow
        if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):
            raise ValueError("indptr must be a non-decreasing sequence")
    if matrix.format == "bsr" and (rows % matrix.blocksize[0] or columns % matrix.blocksize[1]):
        raise ValueError(
            f"shape {matrix.shape} must be a multiple of the size {matrix.blocksize} of the blocks"
        )
    if matrix.format == "dia" and np.any((matrix.offsets <= -rows) | (matrix.offsets >= columns)):
        raise ValueError(f"offsets must be > {-rows} and < {columns}")


def dense(matrix: Any, limit: int) -> np.ndarray[Any, Any]:
    """A sparse matrix as an array, if that is not too large."""
    check_size(math.prod(matrix.shape) * matrix.dtype.itemsize, limit)
    array: np.ndarray[Any, Any] = matrix.toarray()
    return array
