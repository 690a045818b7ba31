"""A file is replaced whole or not at all: failures, kills, several writers."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from jorth._files import replacing


def put(path, content):
    with replacing(path) as stream:
        stream.write(content)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a"
    put(path, b"old")

    def fail():
        with replacing(path) as stream:
            stream.write(b"half of the n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    put(tmp_path / "a", b"")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    (tmp_path / "link").symlink_to("a")
    put(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_pipes_are_written_to_and_remain(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    put(pipe, b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{tmp_path / 'a'}'"):
            put(tmp_path / "a", b"content" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not names(tmp_path)


KILLED = """
import os, signal, sys
from pathlib import Path
from jorth._files import replacing
with replacing(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    put(path, b"old")
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


def test_several_writers_of_one_file(tmp_path):
    path = tmp_path / "a"
    contents = [bytes([number]) * 4096 for number in range(4)]
    failed = []

    def write_often(content):
        try:
            for _ in range(50):
                put(path, content)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write_often, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["a"]
