"""How large a packed file becomes: looked at before anything of that size is in memory."""

from __future__ import annotations

import math
import os
import struct
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
TAG = 8
FLAGS = 16
"""Bytes of a MATLAB 5 file: its header, the tag of an element, the flags of a variable with their tag."""
LITTLE_ENDIAN = b"IM"
"""The last two bytes of the header of a MATLAB 5 file; SciPy takes any others for big-endian."""
COMPRESSED = 15
"""The kind of an element of a MATLAB 5 file that zlib has packed."""
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Those of NumPy. zipfile unpacks them by the piece, all others at one go."""
SPARSE = 5
"""The class of a sparse variable of a .mat file."""
ENTRY_BYTES = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}
"""The classes of dense numbers, double, single, int8, uint8 to uint64, and how many bytes an entry has."""
MAT_4_CLASSES = {"double": 6, "sparse": SPARSE}
"""Those of version 4, by the words of scipy.io.whosmat."""


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
    """An error where the arrays of an archive take more than allowed, or promise more than is stored of them."""
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        check_size(sum(member.file_size for member in members), limit)
        for member in members:
            if member.compress_type not in PACKINGS:
                method = member.compress_type
                raise ValueError(
                    f"{member.filename} must be stored (0) or packed by deflate (8), got method {method}"
                )
            with archive.open(
                member
            ) as content:  # it gives no more than file_size, whatever is packed
                check_npy(content, member.file_size)


def numbers_in_mat(stream: IO[bytes], limit: int) -> list[str]:
    """The names of the variables of a .mat file that are numbers, unless it takes more than allowed.

    SciPy makes cells and structures as large as their headers say, whatever is stored of them. So they must not be
    loaded, and the size of numbers counts as the header says it, too.
    """
    from scipy.io import whosmat
    from scipy.io.matlab import matfile_version

    version, _ = matfile_version(stream)
    packed = check_mat(stream, limit) if version == 1 else None
    found = whosmat(stream)
    # the words of whosmat do not do for version 5: "logical" may be dense, sparse, or a cell with a wrong flag
    classes = [MAT_4_CLASSES.get(word, 0) for _, _, word in found] if packed is None else packed
    variables = [(name, shape, kind) for (name, shape, _), kind in zip(found, classes, strict=True)]
    check_size(
        sum(math.prod(map(abs, shape)) * ENTRY_BYTES.get(kind, 0) for _, shape, kind in variables),
        limit,
    )
    others = {name for name, _, kind in variables if kind not in (SPARSE, *ENTRY_BYTES)}
    return sorted({name for name, _, _ in variables} - others)


def check_mat(stream: IO[bytes], limit: int) -> list[int]:
    """The classes of the variables of a MATLAB 5 file, or a `TooLarge` where those that are packed take too much."""
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
    """The class in the flags with which a variable starts, behind a tag of their own; 0 where they are cut off."""
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
