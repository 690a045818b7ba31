"""A file is replaced whole or not at all: failures and kills."""

import resource

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


def test_a_link_keeps_its_target(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "link").symlink_to("a")
    put(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{tmp_path / 'a'}'"):
            put(tmp_path / "a", b"content" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not names(tmp_path)
