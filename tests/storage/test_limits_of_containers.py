"""Ways round the limit on what .npz and .mat files expand to."""

import io
import struct
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from jorth.storage.matrices import read

LIMIT = 10**6
LARGE = 10**8


@contextmanager
def little_memory():
    """What Python and NumPy take within stays below a tenth of what the file would take."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < LARGE / 10
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_unpacks_at_one_go(tmp_path, packing):
    """Its directory says how long the array is; behind that stand 10^8 bytes more."""
    stream = io.BytesIO()
    np.save(stream, np.zeros((10, 100)))
    array = stream.getvalue()
    with zipfile.ZipFile(tmp_path / "A.npz", "w", packing) as archive:
        archive.writestr("X.npy", array + b"\0" * LARGE)
    content = bytearray((tmp_path / "A.npz").read_bytes())
    at = content.index(b"PK\x01\x02") + 16  # the checksum and two sizes: packed and unpacked
    content[at : at + 4] = struct.pack("<I", zlib.crc32(array))
    content[at + 8 : at + 12] = struct.pack("<I", len(array))
    (tmp_path / "A.npz").write_bytes(content)
    reason = rf"A\.npz .*X\.npy must be .*deflate .*got method {packing}"
    with little_memory(), pytest.raises(ValueError, match=reason):
        read(tmp_path / "A.npz", max_bytes=LIMIT)


def element(kind, content, order):
    return struct.pack(f"{order}II", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def matlab_matrix(kind, shape, data, order=">", name=b"X"):
    """A variable of a MATLAB 5 file: class, shape, name, and the element with its entries."""
    flags = element(6, struct.pack(f"{order}II", kind, 0), order)
    sides = element(5, struct.pack(f"{order}ii", *shape), order)
    return element(14, flags + sides + element(1, name, order) + data, order)


def matlab_file(path, *elements, mark=b"MI"):
    version = b"\x00\x01" if mark == b"IM" else b"\x01\x00"
    path.write_bytes(b"MATLAB 5.0".ljust(124) + version + mark + b"".join(elements))


CELL = 1
DOUBLE = 6
LOGICAL = 1 << 9
"""A flag, beside the class."""


@pytest.mark.parametrize("mark", [b"MI", b"XX", b"\0\0"])
def test_any_mark_of_the_order_of_bytes(tmp_path, mark):
    numbers = element(9, b"\0" * LARGE, ">")
    packed = zlib.compress(matlab_matrix(DOUBLE, (LARGE // 80, 10), numbers))
    matlab_file(tmp_path / "A.mat", struct.pack(">II", 15, len(packed)) + packed, mark=mark)
    with little_memory(), pytest.raises(ValueError, match=r"A\.mat .*bytes of memory or more"):
        read(tmp_path / "A.mat", max_bytes=LIMIT)


def cells(order=">", name=b"X", flag=0):
    """A cell array whose header alone says how large it is."""
    return matlab_matrix(CELL | flag, (LARGE // 80, 10), b"", order, name)


def numbers(order=">", name=b"X"):
    return matlab_matrix(
        DOUBLE, (1, 2), element(9, struct.pack(f"{order}2d", 3, 4), order), order, name
    )


@pytest.mark.parametrize("order", [">", "<"])
def test_cells_are_not_made(tmp_path, order):
    mark = b"IM" if order == "<" else b"MI"
    matlab_file(tmp_path / "A.mat", cells(order), mark=mark)
    with little_memory(), pytest.raises(ValueError, match=r"A\.mat .*it holds nothing"):
        read(tmp_path / "A.mat", max_bytes=LIMIT)
    matlab_file(tmp_path / "A.mat", cells(order, b"C"), numbers(order), mark=mark)
    with little_memory():
        assert read(tmp_path / "A.mat", max_bytes=LIMIT).tolist() == [[3, 4]]


def test_cells_under_the_name_of_a_matrix(tmp_path):
    for elements in ((cells(), numbers()), (numbers(), cells())):
        matlab_file(tmp_path / "A.mat", *elements)
        with little_memory(), pytest.raises(ValueError, match=r"A\.mat .*it holds nothing"):
            read(tmp_path / "A.mat", max_bytes=LIMIT)


@pytest.mark.parametrize("packed", [False, True])
def test_cells_that_are_called_logical(tmp_path, packed):
    content = cells(flag=LOGICAL)
    if packed:
        content = zlib.compress(content)
        content = struct.pack(">II", 15, len(content)) + content
    matlab_file(tmp_path / "A.mat", content)
    with little_memory(), pytest.raises(ValueError, match=r"A\.mat .*it holds nothing"):
        read(tmp_path / "A.mat", max_bytes=LARGE)


def test_a_sparse_logical_is_not_taken_for_a_dense_one(tmp_path):
    large = scipy.sparse.coo_array(([True], ([3], [4])), shape=(10**4, 10**4)).tocsc()
    for packed in (False, True):
        scipy.io.savemat(tmp_path / "A.mat", {"X": large}, do_compression=packed)
        assert scipy.io.whosmat(tmp_path / "A.mat") == [("X", large.shape, "logical")]
        assert read(tmp_path / "A.mat", max_bytes=LIMIT).nnz == 1


def test_sides_below_zero_make_no_room_for_others(tmp_path):
    below = matlab_matrix(DOUBLE, (-(10**4), 10**4), b"", name=b"Y")
    matlab_file(tmp_path / "A.mat", below, numbers())
    with pytest.raises(ValueError, match="takes 800000016 bytes"):
        read(tmp_path / "A.mat", key="X", max_bytes=LIMIT)


def test_a_matrix_that_promises_too_much(tmp_path):
    promise = struct.pack(">II", 9, LARGE)
    matlab_file(tmp_path / "A.mat", matlab_matrix(DOUBLE, (LARGE // 80, 10), promise))
    with little_memory(), pytest.raises(ValueError, match=f"takes {LARGE} bytes"):
        read(tmp_path / "A.mat", max_bytes=LIMIT)


def test_a_shape_that_overflows(tmp_path):
    shape = (2**31 - 1, 2**31 - 1)
    matlab_file(
        tmp_path / "A.mat", matlab_matrix(DOUBLE, shape, struct.pack(">II", 9, 8) + b"\0" * 8)
    )
    with little_memory(), pytest.raises(ValueError, match=f"takes {8 * shape[0] ** 2} bytes"):
        read(tmp_path / "A.mat", max_bytes=LIMIT)


def test_bytes_are_counted_as_bytes(tmp_path):
    """900,000 entries of one byte are allowed where 10^6 bytes are, of eight bytes they are not."""
    ones = np.ones((900, 1000), dtype=np.uint8)
    for name, matrix in (("uint8", ones), ("logical", ones.astype(bool)), ("double", ones * 1.0)):
        scipy.io.savemat(tmp_path / f"{name}.mat", {"X": matrix})
    for name in ("uint8", "logical"):
        assert read(tmp_path / f"{name}.mat", max_bytes=LIMIT).shape == (900, 1000)
    with pytest.raises(ValueError, match="takes 7200000 bytes"):
        read(tmp_path / "double.mat", max_bytes=LIMIT)


def test_version_4_needs_no_mark(tmp_path):
    """Its bytes 126 and 127 are entries like any others."""
    matrix = np.arange(100.0).reshape(10, 10)
    scipy.io.savemat(tmp_path / "A.mat", {"X": matrix}, format="4")
    np.testing.assert_array_equal(read(tmp_path / "A.mat"), matrix)


def test_stored_and_deflated_archives_are_read(tmp_path):
    matrix = np.arange(6.0).reshape(2, 3)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "A.npz", X=matrix)
        np.testing.assert_array_equal(read(tmp_path / "A.npz"), matrix)
