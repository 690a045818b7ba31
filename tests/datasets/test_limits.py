"""Limits on downloads and on the size of unpacked files, with a server and files of our own."""

import bz2
import gc
import gzip
import hashlib
import io
import lzma
import os
import struct
import threading
import time
import tracemalloc
import zipfile
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from click.testing import CliRunner

from jorth.cli import main
from jorth.datasets import DownloadError, fetch, load
from jorth.storage.checks import MAX_BYTES, VARIABLE, TooLarge, check_mat, most_bytes
from jorth.storage.matrices import read

TEXT = b"+1 1:1 3:2.5\n-1 2:4\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how the server behaves."""

    def do_GET(self):
        self.send_response(200)
        getattr(self, self.path.split("/")[1])()

    def send(self, *pieces):
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()

    def no_length(self):
        self.end_headers()
        self.send(TEXT)

    def chunked(self, last=b"0\r\n\r\n"):
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send(*(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (TEXT[:7], TEXT[7:])), last)

    def chunked_cut(self):
        self.chunked(last=b"")

    def announced(self):
        """More than the limit, and then nothing: the client has no business to wait for it."""
        self.send_header("Content-Length", str(10**15))
        self.end_headers()
        self.server.over.wait()

    def endless(self):
        self.end_headers()
        try:
            while not self.server.over.is_set():
                self.send(TEXT * 1000)
        except OSError:
            pass

    def slow_header(self):
        """The same with a line of the header, which has no end."""
        self.send(b"HTTP/1.0 200 OK\r\nX-Line: ")
        try:
            while not self.server.over.wait(0.01):
                self.send(b"x")
        except OSError:
            pass

    def slow(self):
        """Byte after byte, each well within the time to wait."""
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        try:
            while not self.server.over.wait(0.01):
                self.send(b"1")
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.over = threading.Event()
    running.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs=dict(poll_interval=0.01))
    thread.start()
    yield running
    running.over.set()
    running.shutdown()
    running.server_close()
    thread.join()
    gc.collect()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


REFUSED = {
    "an end that nobody sees": ("no_length", None, {}, "does not say how long the file is"),
    "pieces, the last one missing": (
        "chunked_cut",
        None,
        {},
        "IncompleteRead|incomplete|InvalidChunkLength|broken",
    ),
    "too large by its own account": (
        "announced",
        DIGEST,
        {},
        f"larger than the {MAX_BYTES} bytes allowed",
    ),
    "too large in the end": (
        "endless",
        DIGEST,
        {"max_bytes": 10**6},
        "larger than the 1000000 bytes allowed",
    ),
    "too slow": ("slow", DIGEST, {"max_time": 1.0}, "not complete after 1 s|timed out"),
    "too slow to begin": ("slow_header", DIGEST, {"max_time": 1.0}, "not complete after 1 s"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_not_stored(server, tmp_path, case):
    behaviour, sha256, limits, reason = REFUSED[case]
    with pytest.raises(DownloadError, match=reason):
        fetch(
            "w1a",
            folder=tmp_path,
            url=f"{server.url}/{behaviour}/w1a",
            sha256=sha256,
            trust=not sha256,
            **limits,
        )
    assert names(tmp_path) == []


def test_a_checksum_makes_up_for_a_missing_length(server, tmp_path):
    assert (
        fetch("w1a", folder=tmp_path, url=f"{server.url}/no_length/w1a", sha256=DIGEST).read_bytes()
        == TEXT
    )


def test_pieces_have_an_end_that_shows(server, tmp_path):
    assert (
        fetch("w1a", folder=tmp_path, url=f"{server.url}/chunked/w1a", trust=True).read_bytes()
        == TEXT
    )


@pytest.mark.parametrize(
    "limits",
    [
        {"timeout": 0},
        {"max_time": float("nan")},
        {"max_time": "1"},
        {"max_bytes": 0},
        {"max_bytes": 1.5},
    ],
)
def test_limits_that_are_none(tmp_path, limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        fetch("w1a", folder=tmp_path, url="http://127.0.0.1:9/w1a", sha256=DIGEST, **limits)


def test_the_command_has_the_limits(server, tmp_path):
    arguments = ["data", "fetch", "w1a", "--folder", str(tmp_path), "--sha256", DIGEST]
    for behaviour, option in (
        ("endless", ("--max-bytes", "1000")),
        ("slow_header", ("--max-time", "0.2")),
    ):
        result = CliRunner().invoke(
            main, [*arguments, "--url", f"{server.url}/{behaviour}/w1a", *option]
        )
        assert result.exit_code == 1
        assert "allowed" in result.output


def test_another_download_goes_on_undisturbed(server, tmp_path):
    def slowly():
        with pytest.raises(DownloadError):
            fetch("w1a", folder=tmp_path, url=f"{server.url}/slow/w1a", sha256=DIGEST)

    left = tmp_path / f".w1a.{'0' * 16}.tmp"
    left.write_bytes(b"half of it")
    begun = threading.Thread(target=slowly)
    begun.start()
    deadline = time.monotonic() + 60
    while not set(names(tmp_path)) - {left.name}:
        assert begun.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    fetch("w1a", folder=tmp_path, url=f"{server.url}/chunked/w1a", sha256=DIGEST)
    assert not left.exists()
    assert len(names(tmp_path)) == 3  # the file, its checksum, and that of the slow download
    server.over.set()
    begun.join()
    assert names(tmp_path) == ["w1a", "w1a.sha256"]


# -- packed files

LIMIT = 10**6
LARGE = 10**8


def header(shape, dtype="<f8"):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "fortran_order": False, "descr": dtype}
    )
    return stream.getvalue()


def npz_bomb(path):
    np.savez_compressed(path, X=np.zeros((10, LARGE // 80)))


def npz_that_promises(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header((10**6, 10**6)) + b"\0" * 80)


def npz_that_says(path, size):
    """There are 10^8 bytes in it; its directory says another number."""
    npz_bomb(path)
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = struct.pack("<I", size)
    path.write_bytes(content)


def sparse_npz(path, shape, form="coo"):
    indices = np.zeros(1, dtype=np.int64)
    places = (
        {"row": indices, "col": indices}
        if form == "coo"
        else {"indices": indices, "indptr": np.array([0, 1])}
    )
    np.savez(path, format=form.encode(), shape=np.array(shape), data=np.ones(1), **places)


def mat_bomb(path):
    scipy.io.savemat(path, {"X": np.zeros((10, LARGE // 80))}, do_compression=True)


def mat_bomb_of_small_shape(path):
    """Behind the number that the shape asks for stand 10^8 bytes more."""
    scipy.io.savemat(path, {"X": np.ones((1, 1))}, do_compression=True)
    content = path.read_bytes()
    packed = zlib.compress(zlib.decompress(content[136:]) + b"\0" * LARGE)
    path.write_bytes(content[:128] + struct.pack("<II", 15, len(packed)) + packed)


BOMBS = {
    "npz": ("w1a.npz", npz_bomb, "takes 100000"),
    "npz, promised": ("w1a.npz", npz_that_promises, "promises 8000000000000 bytes"),
    "sparse, rows": (
        "w1a_csr.npz",
        lambda path: sparse_npz(path, (10**12, 3)),
        "takes 8000000000024 bytes",
    ),
    "sparse, columns": (
        "w1a_csr.npz",
        lambda path: sparse_npz(path, (1, 10**12), "csr"),
        "takes 8000000000008 bytes",
    ),
    "sparse, dense copy": (
        "w1a_csr.npz",
        lambda path: sparse_npz(path, (10**4, 10**4)),
        "takes 800000000 bytes",
    ),
    "mat": ("w1a.mat", mat_bomb, "bytes of memory or more"),
    "mat, small shape": ("w1a.mat", mat_bomb_of_small_shape, "bytes of memory or more"),
    "gz": (
        "w1a.gz",
        lambda path: path.write_bytes(gzip.compress(b"\n" * LARGE)),
        "bytes of memory or more",
    ),
    "bz2": (
        "w1a.bz2",
        lambda path: path.write_bytes(bz2.compress(b"\n" * LARGE)),
        "bytes of memory or more",
    ),
    "xz": (
        "w1a.xz",
        lambda path: path.write_bytes(lzma.compress(b"\n" * LARGE, preset=0)),
        "bytes of memory or more",
    ),
    "an index": ("w1a", lambda path: path.write_bytes(b"1 999999999:1\n"), "takes 8000000"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_packed_file_is_not_unpacked_beyond_the_limit(tmp_path, case):
    """The memory that Python and NumPy took stays below a tenth of what the file would take."""
    name, make, reason = BOMBS[case]
    make(tmp_path / name)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=reason) as raised:
            load("w1a", folder=tmp_path, max_bytes=LIMIT)
        assert tracemalloc.get_traced_memory()[1] < LARGE / 10
    finally:
        tracemalloc.stop()
    assert name in str(raised.value)


def test_a_size_that_lies_gains_nothing(tmp_path):
    npz_that_says(tmp_path / "w1a.npz", 200)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"w1a\.npz"):
            load("w1a", folder=tmp_path, max_bytes=LIMIT)
        assert tracemalloc.get_traced_memory()[1] < LARGE / 10
    finally:
        tracemalloc.stop()


def test_the_limit_can_be_raised(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "w1a.npz", X=np.eye(400))
    with pytest.raises(
        ValueError, match=f"1280128 bytes .* 1000000 are allowed; .*raise max_bytes or .*{VARIABLE}"
    ):
        load("w1a", folder=tmp_path, max_bytes=LIMIT)
    assert load("w1a", folder=tmp_path, max_bytes=2 * LIMIT).shape == (400, 400)
    assert load("w1a", folder=tmp_path).shape == (400, 400)
    monkeypatch.setenv(VARIABLE, str(LIMIT))
    with pytest.raises(ValueError, match="1000000 are allowed"):
        read(tmp_path / "w1a.npz")
    assert read(tmp_path / "w1a.npz", max_bytes=2 * LIMIT).shape == (400, 400)
    for wrong in ("-1", "many", "0", "1.5"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(ValueError, match=VARIABLE):
            most_bytes()


def test_three_gigabytes_are_too_many_unless_they_are_asked_for(tmp_path):
    path = tmp_path / "A.npz"
    npz_that_says(path, 3 * 2**30)
    result = CliRunner().invoke(
        main, ["solve", "eigen", str(path), "-s", "1,1", "-o", str(tmp_path / "X.npy")]
    )
    assert result.exit_code == 1
    assert "3221225" in result.output
    assert VARIABLE in " ".join(result.output.split())


def test_a_first_download_is_not_unpacked_beyond_the_limit(tmp_path, monkeypatch):
    npz_bomb(tmp_path / "bomb.npz")
    monkeypatch.setattr(
        "jorth.datasets.download.receive",
        lambda address, stream, *_, **__: stream.write((tmp_path / "bomb.npz").read_bytes()),
    )
    with pytest.raises(DownloadError, match=r"no matrix .*bytes of memory or more"):
        fetch(
            "w1a",
            folder=tmp_path / "data",
            url="http://127.0.0.1/w1a.npz",
            trust=True,
            max_bytes=LIMIT,
        )
    assert names(tmp_path / "data") == []


def test_an_array_that_promises_more_than_its_file_holds(tmp_path):
    path = tmp_path / "A.npy"
    path.write_bytes(header((10**6, 10**6)) + b"\0" * 80)
    with pytest.raises(
        ValueError, match=r"A\.npy cannot be read \(it promises 8000000000000 bytes"
    ):
        read(path)


def test_sparse_data_whose_square_is_too_large(tmp_path, monkeypatch):
    scipy.sparse.save_npz(
        tmp_path / "D.npz", scipy.sparse.csr_array(([1.0], ([0], [0])), shape=(1000, 1000))
    )
    monkeypatch.setenv(VARIABLE, str(LIMIT))
    arguments = [
        "solve",
        "eigen",
        tmp_path / "D.npz",
        "--data",
        "-s",
        "500,500",
        "-o",
        tmp_path / "X.npy",
    ]
    result = CliRunner().invoke(main, [*map(str, arguments), "--method", "gs-jobcd"])
    assert result.exit_code == 1, result.output
    assert "8000000 bytes" in " ".join(result.output.split())


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_elements_of_either_byte_order_are_counted(compressed, order):
    """Two variables of 700,000 bytes: together they are too large only if they are packed."""
    variable = b"\0" * 700_000
    element = zlib.compress(variable) if compressed else variable
    tag = struct.pack(f"{order}II", 15 if compressed else 14, len(element))
    content = b" " * 124 + (b"\x00\x01IM" if order == "<" else b"\x01\x00MI") + 2 * (tag + element)
    if compressed:
        with pytest.raises(TooLarge):
            check_mat(io.BytesIO(content), LIMIT)
        check_mat(io.BytesIO(content), 2 * LIMIT)
    else:
        check_mat(io.BytesIO(content), LIMIT)


def test_complete_files_are_read(tmp_path):
    matrix = np.arange(12.0).reshape(3, 4)
    scipy.io.savemat(tmp_path / "packed.mat", {"X": matrix, "Y": matrix}, do_compression=True)
    scipy.io.savemat(tmp_path / "old.mat", {"X": matrix}, format="4")
    np.testing.assert_array_equal(read(tmp_path / "packed.mat", key="Y"), matrix)
    np.testing.assert_array_equal(read(tmp_path / "old.mat"), matrix)
    np.savez(tmp_path / "A.npz", X=np.asfortranarray(matrix))
    np.testing.assert_array_equal(
        read(tmp_path / "A.npz", max_bytes=os.path.getsize(tmp_path / "A.npz")), matrix
    )
