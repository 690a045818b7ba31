"""`fetch`: download a data set and check it.

No checksum, no trust: without one `fetch` refuses, unless told to trust the first download. It then makes sure that the
file is a matrix, and records its sha256 beside it, against which every later download under that name is checked. A
half-downloaded or wrong file never gets its final name. Size and time have limits.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from jorth.arrays import is_number
from jorth.datasets import files
from jorth.datasets.loading import NEEDS_POOCH, data_folder
from jorth.datasets.registry import DataSet, lookup
from jorth.datasets.transfer import Limits, receive
from jorth.storage.atomic import replacing
from jorth.storage.expansion import TooLarge, most_bytes
from jorth.storage.locks import held
from jorth.storage.matrices import checksum

log = logging.getLogger(__name__)
MAX_TIME = 3600.0
"""Seconds that a download may take."""
TRIES = 10
"""To make a folder that is not removed before it is held."""


class DownloadError(RuntimeError):
    """A download failed or brought something else than expected; nothing was stored."""


def fetch(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    url: str | None = None,
    sha256: str | None = None,
    trust: bool = False,
    timeout: float = 30.0,
    max_time: float = MAX_TIME,
    max_bytes: int | None = None,
) -> Path:
    """Download a data set into the folder where `load` looks, and return the path of the file.

    A set that is there already is left alone, unless ``url`` or ``sha256`` asks for one file. The checksum is the first
    there is of: the argument, the registry's, the record of an earlier download (``FILE.sha256``, as ``sha256sum -c``
    reads it; remove it to forget the record).

    Args:
        name: One of `REGISTRY`.
        folder: Where to put it. Default: the environment variable JORTH_DATA, else the cache of jorth.
        url: An address other than the registry's. Its ending says the format: that of `load`.
        sha256: The checksum that the file must have, 64 hexadecimal digits.
        trust: Accept the first download without a checksum, log its sha256 and record it.
        timeout: Seconds to wait for the server, each time.
        max_time: Seconds for the whole download.
        max_bytes: The size of the largest file, and what a first download may expand to. Default: the environment
            variable JORTH_MAX_BYTES, else 2^31.

    Raises:
        ValueError: There is no address, or no checksum and no ``trust``.
        DownloadError: The server failed or was too slow, the file was too large or cut off, or its checksum differs; or
            there is no checksum, and the server does not say where the file ends. Nothing was stored.
        ImportError: pooch is missing (extra ``data``).
    """
    entry = lookup(name)
    place = data_folder(folder)
    limits = Limits(
        _seconds(timeout, "timeout"), _seconds(max_time, "max_time"), most_bytes(max_bytes)
    )
    there = files.find(entry, place)
    if there is not None and url is None and sha256 is None:
        return there
    address = _address(entry, url, place)
    target = place / f"{entry.name}{files.ending_of(urlsplit(address).path)}"
    known = entry.sha256 if url is None else None
    expected = _digest(sha256) or known or recorded(target)
    if expected is None and not trust:
        raise ValueError(
            f"data set {entry.name}: no checksum is known for {address}, so what it serves cannot be verified; give "
            "one by sha256= (--sha256), or accept and record the first download by trust=True (--trust)"
        )
    if target.is_file() and expected == checksum(target):
        _record(target, expected)
        return target
    _download(entry, address, target, expected, limits)
    return target


def recorded(target: Path) -> str | None:
    """The sha256 recorded for a file by an earlier download, or None."""
    try:
        return _digest(_record_of(target).read_text().split()[0])
    except (FileNotFoundError, IndexError):
        return None


def _address(entry: DataSet, url: str | None, place: Path) -> str:
    address = url or entry.url
    if address is None:
        raise ValueError(
            f"data set {entry.name} has no public address known here; give one by url= and sha256= (--url, --sha256), "
            f"or put {entry.name}.npz, {entry.name}_csr.npz, LIBSVM text or {entry.name}.mat into {place}"
        )
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"url must begin with https:// or http://, got {address!r}")
    return address


def _digest(sha256: str | None) -> str | None:
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return sha256.lower() if sha256 else None


def _seconds(value: float, name: str) -> float:
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name} must be a number of seconds above 0, got {value!r}")
    return float(value)


def _download(
    entry: DataSet, address: str, target: Path, expected: str | None, limits: Limits
) -> None:
    """Download into a folder of its own beside the target, check there, then rename."""
    if importlib.util.find_spec("pooch") is None:
        raise ImportError(f"data set {entry.name}: {NEEDS_POOCH}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _staging(target.parent, entry.name) as staging:
            fresh = staging / target.name
            with fresh.open("xb") as stream:
                receive(address, stream, limits, end_must_show=expected is None)
                os.fsync(stream.fileno())
            found = _verify(entry, fresh, expected, limits.max_bytes)
            fresh.replace(target)
    except (ValueError, OSError) as error:
        raise DownloadError(
            f"data set {entry.name}: the download from {address} failed ({error}); nothing was stored. Try again, give "
            f"another address or checksum (--url, --sha256), or put the file there yourself as {target}"
        ) from error
    if expected is None:
        log.warning(
            "data set %s: trusted on first download from %s, sha256 %s", entry.name, address, found
        )
    _record(target, found)


@contextmanager
def _staging(folder: Path, name: str) -> Iterator[Path]:
    """A folder that this process holds, removed at the end; those that killed processes left go first."""
    if sys.platform == "win32":  # where folders cannot be held: none is taken for a left-over
        prefix = f".jorth-{name}-"
        with tempfile.TemporaryDirectory(
            dir=folder, prefix=prefix, ignore_cleanup_errors=True
        ) as fresh:
            yield Path(fresh)
        return
    left_over = re.compile(rf"\.jorth-{re.escape(name)}-[0-9a-f]{{16}}")
    for path in folder.iterdir():
        if left_over.fullmatch(path.name):
            _remove_unheld(path)
    staging, handle = _held_folder(folder, name)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(handle)


def _held_folder(folder: Path, name: str) -> tuple[Path, int]:
    """A new folder and its handle. Another process may take it for a left-over until it is held: then the next."""
    for _ in range(TRIES):
        path = folder / f".jorth-{name}-{secrets.token_hex(8)}"
        path.mkdir(mode=0o700)
        with suppress(FileNotFoundError):
            handle = _open(path)
            held(handle, wait=True)
            if _is_at(path, handle):
                return path, handle
            os.close(handle)
    raise OSError(f"{TRIES} new folders in {folder} were removed by others")


def _is_at(path: Path, handle: int) -> bool:
    """Whether an open folder still has its name."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _remove_unheld(left: Path) -> None:
    with suppress(OSError):  # gone already, a link, or not ours
        handle = _open(left)
        try:
            if held(handle, wait=False):
                shutil.rmtree(left)
        finally:
            os.close(handle)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _verify(entry: DataSet, fresh: Path, expected: str | None, max_bytes: int) -> str:
    """The sha256 of a download that is the expected one or, where none is expected, that holds a matrix."""
    found = checksum(fresh)
    if expected is None:
        try:
            files.read(entry, fresh, max_bytes=max_bytes)
        except ValueError as error:
            large = f": {error.__cause__}" if isinstance(error.__cause__, TooLarge) else ""
            raise ValueError(
                f"what came is no matrix in the format of {fresh.name}{large}"
            ) from error
    elif found != expected:
        raise ValueError(f"its sha256 is {found}, expected {expected}")
    return found


def _record_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.sha256")


def _record(target: Path, digest: str) -> None:
    with replacing(_record_of(target)) as stream:
        stream.write(f"{digest}  {target.name}\n".encode())
