"""Files that are replaced atomically, and locks that show what killed processes left behind."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TRIES = 10  # attempts to create a file and lock it before another process removes it


def held(handle: int, *, wait: bool) -> bool:
    """Lock an open file for this process, and return whether that has worked.

    The lock ends with the process, however that ends. On systems without locks the answer is
    ``wait``: callers that would wait continue without a lock, the others do not get one.
    """
    if sys.platform == "win32":
        return wait
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return wait
    return True


def make_folder(folder: Path, name: str = "") -> None:
    """Make a folder, or raise an OSError before any work is done for it.

    The error names the argument that asks for the folder, if there is one.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except OSError as error:
        if not name:
            raise
        raise type(error)(
            f"{name}: the folder {folder} cannot be made ({error.strerror})"
        ) from error


def lock_folder(folder: Path) -> int | None:
    """Lock a folder for as long as the returned handle is open; None if another one has it."""
    if sys.platform == "win32":  # where folders cannot be opened
        return os.open(os.devnull, os.O_RDONLY)
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks
        pass
    return handle


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a stream for the new content of a file, which replaces the old content on success.

    Until then it is a hidden file beside it, ``stream.name``, with the same suffix and a random
    name, so that nobody can prepare a link there. Content and name are on the disk when this
    returns. Files that killed processes have left are removed first. The new file has the mode and
    the owner of the old one. A link is followed, and what is no regular file, such as a device or a
    pipe, is written to as it is.
    """
    path = Path(os.path.realpath(path))
    before = path.stat() if path.exists() else None
    with _naming(path):
        if before is not None and not stat.S_ISREG(before.st_mode):
            with path.open("wb") as stream:
                yield stream
            return
        yield from _replace(path, before)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of the system that do not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def _replace(path: Path, before: os.stat_result | None) -> Iterator[IO[bytes]]:
    """Yield a stream for the new content of a regular file, as `replacing` describes."""
    _remove_left_overs(path)
    stream = _new_file(path)
    temporary = Path(stream.name)
    try:
        with stream:
            yield stream
            stream.flush()
            if before is not None:
                _make_alike(stream.fileno(), before)
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # while the lock is held
                temporary.replace(path)
        if sys.platform == "win32":  # where an open file cannot be renamed
            temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _make_alike(handle: int, before: os.stat_result) -> None:
    """Give an open file the mode of another, and its owner where that is allowed."""
    if sys.platform == "win32":
        return
    with suppress(PermissionError):
        os.fchown(handle, before.st_uid, before.st_gid)
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _new_file(path: Path) -> IO[bytes]:
    """A new hidden file beside another, locked for as long as it is open."""
    for _ in range(TRIES):
        name = f".{path.name}.{secrets.token_hex(8)}.tmp{path.suffix}"
        stream = path.with_name(name).open("xb")
        if held(stream.fileno(), wait=True) and os.fstat(stream.fileno()).st_nlink:
            return stream
        stream.close()  # another process has removed it as a left-over before it was locked
    raise OSError(f"{TRIES} new files beside {path} were removed by other processes")


def _remove_left_overs(path: Path) -> None:
    """Remove the hidden files of `replacing` that no process has locked."""
    if sys.platform == "win32":
        return
    pattern = rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.tmp{re.escape(path.suffix)}"
    with suppress(OSError):
        for name in os.listdir(path.parent):
            if re.fullmatch(pattern, name):
                _remove_unlocked(path.with_name(name))


def _remove_unlocked(path: Path) -> None:
    with suppress(OSError):  # removed already, a link, or owned by another user
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode) and held(handle, wait=False):
                path.unlink()
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, on systems that can sync a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
