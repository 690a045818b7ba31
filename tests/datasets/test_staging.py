"""The folder into which a download goes: where folders have no locks, and where others remove it."""

import hashlib
import os
import shutil

import pytest

from jorth.datasets import DownloadError, download, fetch
from jorth.storage import atomic

TEXT = b"+1 1:1 3:2.5\n-1 2:4\n"
WHERE = dict(url="http://127.0.0.1/w1a", sha256=hashlib.sha256(TEXT).hexdigest())


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    monkeypatch.setattr(download, "receive", lambda address, stream, *_, **__: stream.write(TEXT))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_where_folders_cannot_be_opened(tmp_path, monkeypatch):
    """As on Windows: no flags for folders, no locks; what may be another's is left alone."""
    left = tmp_path / f".jorth-w1a-{'0' * 16}"
    left.mkdir()
    monkeypatch.setattr("sys.platform", "win32")
    for flag in ("O_DIRECTORY", "O_NOFOLLOW"):
        monkeypatch.delattr(os, flag, raising=False)
    assert fetch("w1a", folder=tmp_path, **WHERE).read_bytes() == TEXT
    assert names(tmp_path) == [left.name, "w1a", "w1a.sha256"]


def remover(folder, times):
    """Locks whose owner comes too late at first: another has removed the folder."""
    removed = []
    held = atomic.held

    def late(handle, *, wait):
        if wait and len(removed) < times:
            (path,) = folder.glob(".jorth-*")
            shutil.rmtree(path)
            removed.append(path)
        return held(handle, wait=wait)

    return late


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be held")
def test_a_folder_that_was_taken_for_a_left_over_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "held", remover(tmp_path, 2))
    assert fetch("w1a", folder=tmp_path, **WHERE).read_bytes() == TEXT
    assert names(tmp_path) == ["w1a", "w1a.sha256"]


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be held")
def test_it_is_not_made_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "held", remover(tmp_path, 1000))
    with pytest.raises(DownloadError, match="were removed by others"):
        fetch("w1a", folder=tmp_path, **WHERE)
    assert names(tmp_path) == []


def test_a_new_folder_that_is_gone_before_it_is_opened(tmp_path, monkeypatch):
    gone = []
    opened = os.open

    def late(path, *arguments, **options):
        if not gone and ".jorth-" in str(path):
            gone.append(path)
            path.rmdir()
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", late)
    assert fetch("w1a", folder=tmp_path, **WHERE).read_bytes() == TEXT
    assert len(gone) == 1
