"""Files: replaced atomically, folders locked, and read with errors that name them."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def make_folder(folder: Path, name: str) -> None:
    """Make a folder that can be written to; an OSError names the argument that asks for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        why = f"the folder {folder} cannot be made ({error.strerror})"
        raise type(error)(f"{name}: {why}") from error


def lock_folder(folder: Path) -> int | None:
    """Return the handle that keeps a folder locked while it is open; None if another has it.

    What killed processes left there of `replacing` is removed.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError:  # a file system without locks
        pass
    for left in folder.glob(".*.tmp*"):
        left.unlink(missing_ok=True)
    return handle


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a stream for the new content of a file, which replaces the old content on success.

    Until then it is a hidden file beside it, ``stream.name``, with the same suffix. Content and
    name are on the disk when this returns. A link is followed, the mode of an old file is kept, and
    what is no regular file, such as a device or a pipe, is written to as it is.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp{path.suffix}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            if path.exists():
                shutil.copymode(path, temporary)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        _write_folder(path.parent)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # as where the disk is full
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _write_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, where the system can do that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
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
    content = path.read_bytes()
    return _parsed(lambda: json.loads(content), "JSON", str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file; a ValueError names the file."""
    content = path.read_bytes()
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(content.decode()), "TOML", str(path))
    return found


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Return the values of a TOML text; an error message begins with ``where``."""
    found: dict[str, Any] = _parsed(lambda: tomllib.loads(text), "TOML", where)
    return found


def _parsed(parse: Callable[[], Any], form: str, where: str) -> Any:
    try:
        return parse()
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8
        raise ValueError(f"{where} is not {form}: {error}") from None


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
