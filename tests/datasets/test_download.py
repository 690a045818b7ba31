"""`fetch` with our own server: right, wrong and missing bytes, 404, a slow or absent server."""

import gc
import hashlib
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner

from jorth.cli import main
from jorth.datasets import REGISTRY, DownloadError, fetch, load
from jorth.datasets.registry import DataSet

# the garbage collector, which the fixture below calls, closes connections of failed downloads
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

TEXT = b"+1 1:1 3:2.5\n-1 2:4\n"
MATRIX = np.array([[1, 0, 2.5], [0, 4, 0]])
DIGEST = hashlib.sha256(TEXT).hexdigest()
OTHER = hashlib.sha256(b"something else").hexdigest()


class Handler(BaseHTTPRequestHandler):
    """The first part of the path says how the server behaves."""

    def do_GET(self):
        self.server.requests.append(self.path)
        behaviour = self.path.split("/")[1]
        if behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "silent":
            self.server.over.wait()
            return
        body = {"html": b"<html>Please log in</html>"}.get(behaviour, TEXT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + 100 * (behaviour in ("cut", "stalled"))))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if behaviour == "stalled":
            self.server.over.wait()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.requests, running.over = [], threading.Event()
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


def test_right_bytes(server, tmp_path):
    path = fetch(
        "w1a", folder=tmp_path / "new", url=f"{server.url}/good/w1a", sha256=DIGEST.upper()
    )
    assert path == tmp_path / "new" / "w1a"
    assert names(path.parent) == ["w1a", "w1a.sha256"]
    assert path.read_bytes() == TEXT
    assert (path.parent / "w1a.sha256").read_text() == f"{DIGEST}  w1a\n"
    np.testing.assert_array_equal(load("w1a", folder=path.parent), MATRIX)


def test_the_address_says_the_format(server, tmp_path):
    path = fetch(
        "gisette",
        folder=tmp_path,
        url=f"{server.url}/good/gisette_scale.svm?download=1",
        sha256=DIGEST,
    )
    assert path.name == "gisette.svm"


FAILURES = {
    "wrong bytes": ("good", OTHER, f"its sha256 is {DIGEST}, expected {OTHER}"),
    "cut off": ("cut", DIGEST, "IncompleteRead|incomplete"),
    "cut off, first download": ("cut", None, "IncompleteRead|incomplete"),
    "not there": ("missing", DIGEST, "404"),
    "no answer": ("silent", DIGEST, "[Tt]imed out"),
    "stops in the middle": ("stalled", DIGEST, "[Tt]imed out"),
    "a login page, first download": ("html", None, "what came is no matrix in the format of w1a"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failures_store_nothing_and_say_what_to_do(server, tmp_path, failure):
    behaviour, sha256, reason = FAILURES[failure]
    url = f"{server.url}/{behaviour}/w1a"
    with pytest.raises(DownloadError, match=reason) as raised:
        fetch("w1a", folder=tmp_path, url=url, sha256=sha256, trust=sha256 is None, timeout=0.3)
    assert server.requests
    assert names(tmp_path) == []
    for part in (
        "data set w1a",
        url,
        "--url",
        "--sha256",
        str(tmp_path / "w1a"),
        "nothing was stored",
    ):
        assert part in str(raised.value)


def test_absent_server(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/w1a"
        with pytest.raises(DownloadError, match=r"data set w1a: .*[Rr]efused"):
            fetch("w1a", folder=tmp_path, url=url, sha256=DIGEST, timeout=5.0)
    assert names(tmp_path) == []


def test_a_failure_leaves_the_old_file(server, tmp_path):
    (tmp_path / "w1a").write_bytes(b"old")
    with pytest.raises(DownloadError, match=r"IncompleteRead|incomplete"):
        fetch("w1a", folder=tmp_path, url=f"{server.url}/cut/w1a", sha256=DIGEST)
    assert names(tmp_path) == ["w1a"]
    assert (tmp_path / "w1a").read_bytes() == b"old"
    fetch("w1a", folder=tmp_path, url=f"{server.url}/good/w1a", sha256=DIGEST)
    assert (tmp_path / "w1a").read_bytes() == TEXT


def test_without_a_checksum_it_is_refused(server, tmp_path):
    with pytest.raises(
        ValueError, match=r"data set w1a: no checksum is known for .*--sha256.*--trust"
    ):
        fetch("w1a", folder=tmp_path, url=f"{server.url}/good/w1a")
    assert not server.requests


def test_trust_is_loud_and_binds_later_downloads(server, tmp_path, caplog):
    url = f"{server.url}/good/w1a"
    path = fetch("w1a", folder=tmp_path, url=url, trust=True)
    assert f"trusted on first download from {url}, sha256 {DIGEST}" in caplog.text
    assert caplog.records[0].levelname == "WARNING"
    path.unlink()
    caplog.clear()
    assert fetch("w1a", folder=tmp_path, url=url) == path  # verified against the record
    assert not caplog.records
    path.unlink()
    with pytest.raises(DownloadError, match=f"expected {DIGEST}"):
        fetch("w1a", folder=tmp_path, url=f"{server.url}/html/w1a", trust=True)
    assert names(tmp_path) == ["w1a.sha256"]


def test_checksum_of_the_registry_holds_for_its_own_address_only(server, tmp_path, monkeypatch):
    url = f"{server.url}/good/w1a"
    entry = DataSet("w1a", "", None, "", "", url=url, sha256=OTHER)
    monkeypatch.setattr("jorth.datasets.download.lookup", lambda name: entry)
    with pytest.raises(DownloadError, match=f"expected {OTHER}"):
        fetch("w1a", folder=tmp_path, trust=True)
    assert fetch("w1a", folder=tmp_path, url=f"{url}?mirror", trust=True).read_bytes() == TEXT


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    np.savez(tmp_path / "w1a.npz", X=MATRIX)
    assert fetch("w1a", folder=tmp_path) == tmp_path / "w1a.npz"
    (tmp_path / "w1a").write_bytes(TEXT)
    assert (
        fetch("w1a", folder=tmp_path, url=f"{server.url}/good/w1a", sha256=DIGEST)
        == tmp_path / "w1a"
    )
    assert not server.requests


def test_into_a_place_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        DownloadError, match=r"data set w1a: the download from .* put the file there yourself"
    ):
        fetch("w1a", folder=tmp_path / "file", url=f"{server.url}/good/w1a", sha256=DIGEST)


def test_without_requests(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)
    message = r'^jorth.datasets.fetch needs requests; install it with: pip install "jorth\[data\]"$'
    with pytest.raises(ImportError, match=message):
        fetch("w1a", folder=tmp_path, sha256=DIGEST)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "tdt2",
            {},
            r"data set tdt2 has no public address known here; .*--url, --sha256.* put tdt2\.npz",
        ),
        ("w1a", dict(sha256="abc"), "sha256 must be 64 hexadecimal digits, got 'abc'"),
        (
            "w1a",
            dict(url="ftp://host/w1a", sha256=DIGEST),
            "url must begin with https:// or http://, got 'ftp",
        ),
        ("w2a", {}, "name must be one of"),
    ],
)
def test_bad_input(tmp_path, name, options, message):
    with pytest.raises(ValueError, match=message):
        fetch(name, folder=tmp_path, **options)


def test_registry_is_well_formed():
    for name, entry in REGISTRY.items():
        assert entry.name == name == name.lower()
        assert entry.url is None or entry.url.startswith("https://")
        assert entry.sha256 is None or (len(entry.sha256) == 64 and entry.url)
        assert all((entry.terms, entry.description, entry.values))
        for size in filter(None, (entry.hevp, entry.hspp)):
            assert entry.shape is None or (size[0] <= entry.shape[0] and size[1] <= entry.shape[1])


def test_the_command_prints_path_and_checksum(server, tmp_path):
    arguments = [
        "data",
        "fetch",
        "w1a",
        "--folder",
        str(tmp_path),
        "--url",
        f"{server.url}/good/w1a",
    ]
    result = CliRunner().invoke(main, [*arguments, "--trust"])
    assert result.exit_code == 0
    assert f"{tmp_path / 'w1a'}\nsha256 {DIGEST}\n" in result.output
    again = CliRunner().invoke(main, [*arguments, "--sha256", OTHER])
    assert again.exit_code == 1
    assert f"expected {OTHER}" in again.output
    assert (tmp_path / "w1a").read_bytes() == TEXT
