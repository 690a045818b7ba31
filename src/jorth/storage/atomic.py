"""Files that are replaced atomically, folders that one process holds, and the locks for both."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

TRIES = 10
"""Attempts to make a file or folder that no other process removes before it is locked."""


def held(handle: int, *, wait: bool) -> bool:
    """Lock an open file or folder for this process, and say whether that has worked.

    The lock ends with the process, however that ends. Where there are no locks, those who wait go
    on without one, and the others are told that they have none.
    """
    if sys.platform == "win32":
        return wait
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return wait
    return True


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream for the new content of a file, which takes the place of the old one on success.

    Until then it is a hidden file beside it with a name that nobody can foresee, so that no link
    waits there. Content and name are on the disk when this returns. Files that killed processes
    have left are removed first.
    """
    prefix = f".{path.name}."
    _remove_left_overs(path.parent, prefix, ".tmp", stat.S_ISREG, os.unlink)
    temporary, handle = _make(path.parent, prefix, ".tmp", _new_file)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # while the lock is held
                temporary.replace(path)
        if sys.platform == "win32":  # where an open file cannot be renamed
            temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def private_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder, removed at the end; those that killed processes left are removed first."""
    if sys.platform == "win32":  # folders have no locks there: none is taken for a left-over
        with tempfile.TemporaryDirectory(
            dir=parent, prefix=prefix, ignore_cleanup_errors=True
        ) as name:
            yield Path(name)
        return
    _remove_left_overs(parent, prefix, "", stat.S_ISDIR, shutil.rmtree)
    folder, handle = _make(parent, prefix, "", _new_folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _make(parent: Path, prefix: str, ending: str, make: Callable[[Path], int]) -> tuple[Path, int]:
    """A new file or folder with its handle, which is locked.

    Until it is locked, another process may take it for a left-over and remove it.
    """
    for _ in range(TRIES):
        path = parent / f"{prefix}{secrets.token_hex(8)}{ending}"
        try:
            handle = make(path)
        except FileNotFoundError:  # removed before it could be opened, unless nothing can be there
            if not parent.is_dir():
                raise
            continue
        if held(handle, wait=True) and _is_at(path, handle):
            return path, handle
        os.close(handle)
    raise OSError(f"{TRIES} new files {prefix}*{ending} in {parent} were removed by others")


def _new_file(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.open(path, flags, 0o666)


def _new_folder(path: Path) -> int:
    path.mkdir(mode=0o700)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open file or folder still has its name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove_left_overs(
    folder: Path,
    prefix: str,
    ending: str,
    is_kind: Callable[[int], bool],
    remove: Callable[[str], None],
) -> None:
    """Remove the files or folders with such names that no process holds."""
    if sys.platform == "win32":
        return
    pattern = re.compile(f"{re.escape(prefix)}[0-9a-f]{{16}}{re.escape(ending)}")
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.path for entry in entries if pattern.fullmatch(entry.name)]:
            with suppress(OSError):  # gone already, a link, or another user's
                handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if is_kind(os.fstat(handle).st_mode) and held(handle, wait=False):
                        remove(name)
                finally:
                    os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, where folders can be asked for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
