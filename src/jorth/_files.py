"""Files: replaced atomically, and read with errors that name them."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def make_folder(folder: Path, name: str) -> None:
    """Make a folder that can be written to; an OSError names the argument that asks for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        why = f"the folder {folder} cannot be made ({error.strerror})"
        raise type(error)(f"{name}: {why}") from error


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a stream for the new content of a file, which replaces the old content on success.

    Until then it is a hidden file beside it. A link is followed.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # or a crash of the machine may leave an empty file
        temporary.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename is None:  # as where the disk is full
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def reading(label: str, advice: str = "") -> Iterator[None]:
    """Turn a library's error about a broken file into a ValueError that begins with ``label``."""
    try:
        yield
    except ImportError:  # an optional package is missing: the file is not to blame
        raise
    except Exception as error:  # each library has its own errors for broken files
        raise ValueError(f"{label} cannot be read ({error}){advice}") from error


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
