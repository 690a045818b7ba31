"""Files: replaced atomically, locked, and read with errors that name them."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TRIES = 10  # attempts to create a file and lock it before another process removes it


def lock(handle: int) -> bool | None:
    """Lock an open file or folder until it is closed, as the end of the process does.

    Return whether this has worked; None on a file system without locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
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
    """Return the handle that keeps a folder locked while it is open; None if another has it."""
    handle = os.open(folder, os.O_RDONLY)
    if lock(handle) is False:
        os.close(handle)
        return None
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
        with stream:  # and while it is locked
            yield stream
            stream.flush()
            if before is not None:
                with suppress(PermissionError):
                    os.fchown(stream.fileno(), before.st_uid, before.st_gid)
                os.fchmod(stream.fileno(), stat.S_IMODE(before.st_mode))
            os.fsync(stream.fileno())
            temporary.replace(path)
        with suppress(OSError):  # not every system can write a folder to the disk
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    finally:
        temporary.unlink(missing_ok=True)


def _new_file(path: Path) -> IO[bytes]:
    """Return a new hidden file beside another, locked for as long as it is open."""
    for _ in range(TRIES):
        name = f".{path.name}.{secrets.token_hex(8)}.tmp{path.suffix}"
        stream = path.with_name(name).open("xb")
        if lock(stream.fileno()) is not False and os.fstat(stream.fileno()).st_nlink:
            return stream
        stream.close()  # another process has taken it for a left-over before it was locked
    raise OSError(f"{TRIES} new files beside {path} were removed by other processes")


def _remove_left_overs(path: Path) -> None:
    """Remove the hidden files of `replacing` that no process has locked."""
    pattern = rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.tmp{re.escape(path.suffix)}"
    with suppress(OSError):
        for name in filter(re.compile(pattern).fullmatch, os.listdir(path.parent)):
            with suppress(OSError):  # removed already, a link, or owned by another user
                other = path.with_name(name)
                handle = os.open(other, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if stat.S_ISREG(os.fstat(handle).st_mode) and lock(handle):
                        other.unlink()
                finally:
                    os.close(handle)


@contextmanager
def reading(label: str, advice: str = "") -> Iterator[None]:
    """Turn a library's error about a broken file into a ValueError that begins with ``label``."""
    try:
        yield
    except ImportError:  # an optional package is missing: the file is not to blame
        raise
    except Exception as error:  # each library has its own errors for broken files
        raise ValueError(f"{label} cannot be read ({error}){advice}") from error


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; a ValueError names the file."""
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: bytes | str, where: str) -> Any:
    """Return the value of a JSON text; an error message begins with ``where``."""
    return _parsed(lambda: json.loads(content), "JSON", where)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; a ValueError names the file."""
    content = path.read_bytes()
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(content.decode()), "TOML", str(path))
    return found


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the values of a TOML text; an error message begins with ``where``."""
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(text), "TOML", where)
    return found


def to_json(value: Any, *, indent: int | None = None) -> bytes:
    """Return a value as JSON text. NaN and infinity become null, as JSON has neither."""
    return json.dumps(_without_nan(value), indent=indent, allow_nan=False).encode()


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _without_nan(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    return value


def _parsed(parse: Callable[[], Any], form: str, where: str) -> Any:
    try:
        return parse()
    except ValueError as error:  # also text that is not UTF-8
        raise ValueError(f"{where} is not {form}: {error}") from None
    except RecursionError:
        raise ValueError(f"{where} cannot be read: its {form} is nested too deeply") from None
