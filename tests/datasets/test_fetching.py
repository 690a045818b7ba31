"""`fetch` with a server of our own: right and wrong bytes, 404."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from jorth.datasets import fetch, load

TEXT = b"+1 1:1 3:2.5\n-1 2:4\n"
MATRIX = np.array([[1, 0, 2.5], [0, 4, 0]])
DIGEST = hashlib.sha256(TEXT).hexdigest()
OTHER = hashlib.sha256(b"something else").hexdigest()


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how the server behaves."""

    def do_GET(self):
        self.server.requests.append(self.path)
        if self.path.startswith("/missing"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(TEXT)))
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.requests = []
    running.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs=dict(poll_interval=0.01))
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_right_bytes(server, tmp_path):
    path = fetch("w1a", folder=tmp_path / "new", url=f"{server.url}/good/w1a", sha256=DIGEST)
    assert path == tmp_path / "new" / "w1a"
    assert names(path.parent) == ["w1a"]
    assert path.read_bytes() == TEXT
    np.testing.assert_array_equal(load("w1a", folder=path.parent), MATRIX)


@pytest.mark.parametrize(("behaviour", "error"), [("good", ValueError), ("missing", OSError)])
def test_failures_store_nothing(server, tmp_path, behaviour, error):
    (tmp_path / "w1a").write_bytes(b"old")
    with pytest.raises(error, match=r"hash|404"):
        fetch("w1a", folder=tmp_path, url=f"{server.url}/{behaviour}/w1a", sha256=OTHER)
    assert server.requests
    assert names(tmp_path) == ["w1a"]
    assert (tmp_path / "w1a").read_bytes() == b"old"


def test_without_a_checksum(server, tmp_path):
    assert fetch("w1a", folder=tmp_path, url=f"{server.url}/good/w1a").read_bytes() == TEXT


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    (tmp_path / "w1a.npz").write_bytes(b"")
    assert fetch("w1a", folder=tmp_path) == tmp_path / "w1a.npz"


def test_without_an_address(tmp_path):
    with pytest.raises(ValueError, match="tdt2: it has no public address known here"):
        fetch("tdt2", folder=tmp_path)
