"""Files that are replaced whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from jorth.storage.locks import held

ENDING = ".tmp"
TRIES = 10
"""To make a file that is not removed before it is held."""


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A stream for the new content of a file, which gets its name at the end if all went well.

    Until then it is a hidden file beside it, made afresh under a name that nobody can foresee: a
    link that waits there is not followed. Content and name are on the disk when this returns. What
    a killed process left is removed first.
    """
    _remove_left_overs(path)
    temporary, stream = _fresh(path)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if sys.platform != "win32":  # while it is held
                temporary.replace(path)
        if sys.platform == "win32":  # where an open file cannot be renamed
            temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _fresh(path: Path) -> tuple[Path, IO[bytes]]:
    """A new file, held by this process for as long as it is open."""
    for _ in range(TRIES):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{ENDING}")
        stream = temporary.open("xb")
        if held(stream.fileno(), wait=True) and os.fstat(stream.fileno()).st_nlink:
            return temporary, stream
        stream.close()  # taken for a left-over before it was held
    raise OSError(f"{TRIES} new files beside {path} were removed by others")


def _remove_left_overs(path: Path) -> None:
    """Remove what writers that are no more have left: files that nobody holds."""
    if sys.platform == "win32":
        return
    left_over = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}{re.escape(ENDING)}")
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if left_over.fullmatch(entry.name):
                _remove_unheld(entry.path)


def _remove_unheld(name: str) -> None:
    with suppress(OSError):  # gone already, a link, or not ours
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode) and held(handle, wait=False):
                os.unlink(name)
        finally:
            os.close(handle)


def _sync_folder(folder: Path) -> None:
    """The new name on the disk, where folders can be asked for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
